func.func @gelu(%x: f32) -> f32 {
  %r = arith.constant 0.707106769 : f32
  %h = arith.constant 5.000000e-01 : f32
  %o = arith.constant 1.000000e+00 : f32
  %0 = arith.mulf %x, %r : f32
  %1 = math.erf %0 : f32
  %2 = arith.addf %1, %o : f32
  %3 = arith.mulf %x, %h : f32
  %4 = arith.mulf %3, %2 : f32
  return %4 : f32
}
