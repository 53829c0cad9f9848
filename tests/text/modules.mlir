module @named attributes {mine.kind = "test"} {
  func.func @main() {
    return
  }
}
