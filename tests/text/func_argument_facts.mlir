func.func @main(%x: tensor<4x3xf32> {irc.name = "x", irc.offset = #sym<2>, irc.strides = #sym.dims<[3, 1]>, mine.first}, %n: index) -> (tensor<4x3xf32> {irc.alias_of = 0 : i64, irc.strides = #sym.dims<[3, 1]>}, index) {
  return %x, %n : tensor<4x3xf32>, index
}
func.func private @declared(tensor<2xf32> {irc.kind = "parameter"}) -> (tensor<2xf32> {irc.saved})
