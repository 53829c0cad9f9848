func.func @main(%x: f32, %y: f32) -> bf16 {
  %0 = arith.addf %x, %y to_nearest_even : f32
  %1 = arith.subf %0, %y to_nearest_even fastmath<nnan> : f32
  %2 = arith.mulf %1, %y to_nearest_even fastmath<fast> {mine.tag} : f32
  %3 = arith.divf %2, %y to_nearest_even : f32
  %4 = math.fma %3, %x, %y to_nearest_even fastmath<contract> : f32
  %5 = arith.truncf %4 to_nearest_even fastmath<ninf> : f32 to bf16
  %6 = arith.truncf %4 toward_zero : f32 to bf16
  %7 = arith.truncf %4 to_nearest_away : f32 to bf16
  %8 = arith.addf %6, %7 : bf16
  return %8 : bf16
}
