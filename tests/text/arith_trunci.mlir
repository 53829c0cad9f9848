func.func @scalars(%x: i64) -> i8 {
  %0 = arith.trunci %x : i64 to i8
  %1 = arith.trunci %x overflow<nsw> : i64 to i8
  return %1 : i8
}

func.func @lanes(%x: vector<5xi64>) -> vector<5xi8> {
  %0 = arith.trunci %x {tag = 3 : i64} : vector<5xi64> to vector<5xi8>
  return %0 : vector<5xi8>
}
