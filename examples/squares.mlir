// irc-opt --load examples/squares.py examples/squares.mlir --squares
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %two = graph.full {value = 2.0 : f32} : tensor<8xf32>
  %y = graph.pow %x, %two : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
