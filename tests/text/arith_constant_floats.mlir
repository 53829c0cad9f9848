func.func @main() {
  %0 = arith.constant 1.000000e+00 : f32
  %1 = arith.constant -0.000000e+00 : f64
  %2 = arith.constant 0x7F800000 : f32
  %3 = arith.constant 0x7FC0 : bf16
  %4 = arith.constant 1.500000e+00 : f16
  %5 = arith.constant 1.000000e-40 : f32
  %6 = arith.constant dense<2.500000e-01> : vector<16xf32>
  %7 = arith.constant dense<[1.000000e+00, -2.000000e+00]> : vector<2xbf16>
  %8 = arith.constant dense<0xFF800000> : vector<4xf32>
  %9 = arith.constant 0x7FF0000000000000 : f64
  return
}
