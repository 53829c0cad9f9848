func.func @scalars(%x: i1) -> i64 {
  %0 = arith.extui %x : i1 to i64
  %1 = arith.extui %x : i1 to i64
  return %1 : i64
}

func.func @lanes(%x: vector<5xi1>) -> vector<5xi64> {
  %0 = arith.extui %x {tag = 3 : i64} : vector<5xi1> to vector<5xi64>
  return %0 : vector<5xi64>
}
