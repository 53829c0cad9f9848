// The pass canonicalize: constants fold, dead code goes, patterns apply.
// RUN: --canonicalize
// VALUES: canonicalize

func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %one = graph.full {value = 1.0 : f32} : tensor<2x3xf32>
  %a = graph.mul %one, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %t = graph.permute %a {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %u = graph.permute %t {permutation = array<i64: 1, 0>} : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %dead = graph.exp %u : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %y = graph.sin %u : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// CHECK: builtin.module {
// CHECK-NEXT:   func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
// CHECK-NEXT:     %y = graph.sin %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT:     return %y : tensor<2x3xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
