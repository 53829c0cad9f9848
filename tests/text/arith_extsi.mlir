func.func @scalars(%x: i8) -> i32 {
  %0 = arith.extsi %x : i8 to i32
  %1 = arith.extsi %x : i8 to i32
  return %1 : i32
}

func.func @lanes(%x: vector<5xi8>) -> vector<5xi32> {
  %0 = arith.extsi %x {tag = 3 : i64} : vector<5xi8> to vector<5xi32>
  return %0 : vector<5xi32>
}
