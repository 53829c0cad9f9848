func.func @main(%x: i32) -> i32 {
  %0 = func.call @other(%x) : (i32) -> i32
  func.return %0 : i32
}
func.func @other(%x: i32) -> i32 {
  func.return %x : i32
}
