func.func @main(%a: i32, %b: i32) -> i1 {
  %0 = arith.cmpi eq, %a, %b : i32
  %1 = arith.cmpi ne, %a, %b : i32
  %2 = arith.cmpi slt, %a, %b : i32
  %3 = arith.cmpi sle, %a, %b : i32
  %4 = arith.cmpi sgt, %a, %b : i32
  %5 = arith.cmpi sge, %a, %b : i32
  %6 = arith.cmpi ult, %a, %b : i32
  %7 = arith.cmpi ule, %a, %b : i32
  %8 = arith.cmpi ugt, %a, %b : i32
  %9 = arith.cmpi uge, %a, %b : i32
  return %9 : i1
}

func.func @lanes(%a: vector<4xindex>, %b: vector<4xindex>) -> vector<4xi1> {
  %0 = arith.cmpi ult, %a, %b : vector<4xindex>
  return %0 : vector<4xi1>
}
