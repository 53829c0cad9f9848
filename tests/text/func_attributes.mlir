func.func @main(%x: f32 {mine.first}, %y: f32 {mine.number = 4 : i64}) -> (f32 {mine.flag}) attributes {mine.name = "f"} {
  %0 = arith.addf %x, %y {mine.tag = [1 : i64, true]} : f32
  return %0 : f32
}
func.func nested @nested() {
  return
}
func.func public @public(%x: index) -> index {
  return %x : index
}
