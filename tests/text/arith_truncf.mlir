func.func @scalars(%x: f64) -> f16 {
  %0 = arith.truncf %x : f64 to f16
  %1 = arith.truncf %x : f64 to f16
  return %1 : f16
}

func.func @lanes(%x: vector<5xf64>) -> vector<5xf16> {
  %0 = arith.truncf %x {tag = 3 : i64} : vector<5xf64> to vector<5xf16>
  return %0 : vector<5xf16>
}
