func.func @scalars(%x: index) -> i32 {
  %0 = arith.index_cast %x : index to i32
  %1 = arith.index_cast %x : index to i32
  return %1 : i32
}

func.func @lanes(%x: vector<5xindex>) -> vector<5xi32> {
  %0 = arith.index_cast %x {tag = 3 : i64} : vector<5xindex> to vector<5xi32>
  return %0 : vector<5xi32>
}
