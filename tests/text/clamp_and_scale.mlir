func.func @clamp(%x: vector<8xf32>) -> vector<8xf32> {
  %lo = arith.constant dense<0.000000e+00> : vector<8xf32>
  %hi = arith.constant dense<6.000000e+00> : vector<8xf32>
  %a = arith.maximumf %x, %lo : vector<8xf32>
  %b = arith.minimumf %a, %hi : vector<8xf32>
  %s = arith.constant dense<0x3E2AAAAB> : vector<8xf32>
  %c = arith.mulf %b, %s : vector<8xf32>
  return %c : vector<8xf32>
}
