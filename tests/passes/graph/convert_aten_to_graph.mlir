// The pass convert-aten-to-graph: bf16 is computed in f32, and the vector is broadcast explicitly.
// Strides leave the types; those of arguments and results stay beside them.
// RUN: --convert-aten-to-graph
// VALUES: convert-aten-to-graph

func.func @main(%x: tensor<[2, 4] x bf16, strides [4, 1]>, %y: tensor<[4] x bf16, strides [1]>) -> tensor<[2, 4] x bf16, strides [4, 1]> attributes {level = "aten"} {
  %z = aten.add.Tensor %x, %y {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[2, 4] x bf16, strides [4, 1]>, tensor<[4] x bf16, strides [1]>) -> tensor<[2, 4] x bf16, strides [4, 1]>
  return %z : tensor<[2, 4] x bf16, strides [4, 1]>
}

// CHECK: builtin.module {
// CHECK-NEXT:   func.func @main(%x: tensor<2x4xbf16> {irc.strides = #sym.dims<[4, 1]>}, %y: tensor<4xbf16> {irc.strides = #sym.dims<[1]>}) -> tensor<2x4xbf16> attributes {level = "graph"} {
// CHECK-NEXT:     %0 = graph.cast %x : (tensor<2x4xbf16>) -> tensor<2x4xf32>
// CHECK-NEXT:     %1 = graph.cast %y : (tensor<4xbf16>) -> tensor<4xf32>
// CHECK-NEXT:     %2 = graph.broadcast %1 {dims = array<i64: 1>} : (tensor<4xf32>) -> tensor<2x4xf32>
// CHECK-NEXT:     %3 = graph.add %0, %2 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
// CHECK-NEXT:     %z = graph.cast %3 : (tensor<2x4xf32>) -> tensor<2x4xbf16>
// CHECK-NEXT:     return %z : tensor<2x4xbf16>
// CHECK-NEXT:   }
// CHECK-NEXT: }
