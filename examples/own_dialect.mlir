// A program with an operation of examples/own_dialect.py.
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = mine.scale %x {by = 2.5 : f64} : tensor<4xf32>
  %z = graph.exp %y : (tensor<4xf32>) -> tensor<4xf32>
  return %z : tensor<4xf32>
}
