func.func @main(%x: f64, %v: vector<3xf16>) -> (f64, vector<3xf16>) {
  %0 = arith.negf %x : f64
  %1 = arith.negf %v fastmath<contract> : vector<3xf16>
  return %0, %1 : f64, vector<3xf16>
}
