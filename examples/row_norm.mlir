// The Euclidean norm of each row, written at the loop level by hand; the first size is symbolic.
//
//   irc run examples/row_norm.mlir --size s0=3
//   irc-opt examples/row_norm.mlir --loop-to-kernel
//   python examples/row_norm.py
func.func @main(%x: tensor<[s0, 20] x f32, strides [20, 1]>) -> tensor<[s0] x f32, strides [1]> {
  %n = sym.bind_size %x {dim = 0 : i64, symbol = "s0", minimum = 0 : i64} : (tensor<[s0, 20] x f32, strides [20, 1]>) -> index
  %squares = loop.compute par(i: s0) red(j: 20) -> reduce(sum, f32) {
    %a = loop.read %x[i, j] : f32
    %b = arith.mulf %a, %a : f32
    loop.yield %b
  } : tensor<[s0] x f32, strides [1]>
  %norms = loop.compute par(i: s0) -> map {
    %c = loop.read %squares[i] : f32
    %d = math.sqrt %c : f32
    loop.yield %d
  } : tensor<[s0] x f32, strides [1]>
  return %norms : tensor<[s0] x f32, strides [1]>
}
