func.func @scalars(%a: i32, %b: i32) -> i32 {
  %0 = arith.shrui %a, %b : i32
  %1 = arith.shrui %0, %b : i32
  return %1 : i32
}

func.func @indices(%a: index, %b: index) -> index {
  %0 = arith.shrui %a, %b : index
  return %0 : index
}

func.func @lanes(%a: vector<4xi8>, %b: vector<4xi8>) -> vector<4xi8> {
  %0 = arith.shrui %a, %b : vector<4xi8>
  return %0 : vector<4xi8>
}
