func.func @main(%x: f32, %y: f32) -> f32 {
  %0 = math.atan2 %x, %y : f32
  %1 = math.powf %0, %y fastmath<fast> : f32
  %2 = math.copysign %1, %x : f32
  %3 = math.fma %0, %1, %2 : f32
  return %3 : f32
}
