func.func @scalars(%x: f64) -> i8 {
  %0 = arith.fptoui %x : f64 to i8
  %1 = arith.fptoui %x : f64 to i8
  return %1 : i8
}

func.func @lanes(%x: vector<5xf64>) -> vector<5xi8> {
  %0 = arith.fptoui %x {tag = 3 : i64} : vector<5xf64> to vector<5xi8>
  return %0 : vector<5xi8>
}
