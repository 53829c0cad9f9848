// The pass assign-layouts: a transposed argument is a view, and a pointwise result follows its
// strides; the result has those that the caller must see.
// RUN: --assign-layouts
// VALUES: assign-layouts

func.func @main(%x: tensor<4x6xf32>) -> (tensor<6x4xf32> {irc.strides = #sym.dims<[4, 1]>}) {
  %t = graph.permute %x {permutation = array<i64: 1, 0>} : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %e = graph.exp %t : (tensor<6x4xf32>) -> tensor<6x4xf32>
  %y = graph.neg %e : (tensor<6x4xf32>) -> tensor<6x4xf32>
  return %y : tensor<6x4xf32>
}

// CHECK: builtin.module {
// CHECK-NEXT:   func.func @main(%x: tensor<[4, 6] x f32, strides [6, 1]>) -> (tensor<[6, 4] x f32, strides [4, 1]> {irc.strides = #sym.dims<[4, 1]>}) attributes {level = "layout"} {
// CHECK-NEXT:     %t = graph.permute %x {permutation = array<i64: 1, 0>, view} : (tensor<[4, 6] x f32, strides [6, 1]>) -> tensor<[6, 4] x f32, strides [1, 6]>
// CHECK-NEXT:     %e = graph.exp %t : (tensor<[6, 4] x f32, strides [1, 6]>) -> tensor<[6, 4] x f32, strides [1, 6]>
// CHECK-NEXT:     %y = graph.neg %e : (tensor<[6, 4] x f32, strides [1, 6]>) -> tensor<[6, 4] x f32, strides [4, 1]>
// CHECK-NEXT:     return %y : tensor<[6, 4] x f32, strides [4, 1]>
// CHECK-NEXT:   }
// CHECK-NEXT: }
