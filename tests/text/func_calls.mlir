func.func private @declared(f32, i32) -> f32
func.func private @pair() -> (i32, f32)
func.func private @nothing()
func.func @main(%x: f32, %n: i32) -> f32 {
  %0 = call @declared(%x, %n) : (f32, i32) -> f32
  %1:2 = call @pair() : () -> (i32, f32)
  call @nothing() : () -> ()
  %2 = call @twice(%1#1) : (f32) -> f32
  %3 = arith.addf %0, %2 : f32
  return %3 : f32
}

func.func private @twice(%x: f32) -> f32 {
  %0 = arith.addf %x, %x : f32
  return %0 : f32
}
