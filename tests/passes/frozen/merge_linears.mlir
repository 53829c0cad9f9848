// The pass merge-linears: two linears on one input, with weights [out, in] of equal sizes, are one.
// The third has another size.
// RUN: --merge-linears --fold-constants
// VALUES: merge-linears
// VALUES: merge-linears,fold-constants

func.func @main(%x: tensor<3x2xf32>) -> (tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x1xf32>) attributes {level = "graph"} {
  %wa = graph.constant {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>} : tensor<2x2xf32>
  %wb = graph.constant {value = dense<[[0.5, -2.0], [1.5, 0.0]]> : tensor<2x2xf32>} : tensor<2x2xf32>
  %wc = graph.constant {value = dense<[[1.0], [-1.0]]> : tensor<2x1xf32>} : tensor<2x1xf32>
  %ba = graph.constant {value = dense<[1.0, -1.0]> : tensor<2xf32>} : tensor<2xf32>
  %bb = graph.constant {value = dense<[[7.0, 8.0]]> : tensor<1x2xf32>} : tensor<1x2xf32>
  %ta = graph.permute %wa {permutation = array<i64: 1, 0>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %a = graph.call_aten %ba, %x, %ta {callee = "aten.addmm.default", arguments = {mat1 = #aten.operand<1>, mat2 = #aten.operand<2>, self = #aten.operand<0>}, eager_strides = [#sym.dims<[2, 1]>]} : (tensor<2xf32>, tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %tb = graph.permute %wb {permutation = array<i64: 1, 0>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %b = graph.call_aten %bb, %x, %tb {callee = "aten.addmm.default", arguments = {mat1 = #aten.operand<1>, mat2 = #aten.operand<2>, self = #aten.operand<0>}, eager_strides = [#sym.dims<[2, 1]>]} : (tensor<1x2xf32>, tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %c = graph.call_aten %x, %wc {callee = "aten.mm.default", arguments = {mat2 = #aten.operand<1>, self = #aten.operand<0>}, eager_strides = [#sym.dims<[1, 1]>]} : (tensor<3x2xf32>, tensor<2x1xf32>) -> tensor<3x1xf32>
  return %a, %b, %c : tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x1xf32>
}

// CHECK: builtin.module {
// CHECK-NEXT:   func.func @main(%x: tensor<3x2xf32>) -> (tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x1xf32>) attributes {level = "graph"} {
// CHECK-NEXT:     %wc = graph.constant {value = dense<[[1.0], [-1.0]]> : tensor<2x1xf32>} : tensor<2x1xf32>
// CHECK-NEXT:     %0 = graph.constant {value = dense<[[1.0, 2.0], [3.0, 4.0], [0.5, -2.0], [1.5, 0.0]]> : tensor<4x2xf32>} : tensor<4x2xf32>
// CHECK-NEXT:     %1 = graph.constant {value = dense<[1.0, -1.0, 7.0, 8.0]> : tensor<4xf32>} : tensor<4xf32>
// CHECK-NEXT:     %2 = graph.permute %0 {permutation = array<i64: 1, 0>} : (tensor<4x2xf32>) -> tensor<2x4xf32>
// CHECK-NEXT:     %3 = graph.call_aten %x, %2, %1 {arguments = {mat1 = #aten.operand<0>, mat2 = #aten.operand<1>, self = #aten.operand<2>}, callee = "aten.addmm.default", eager_strides = [#sym.dims<[4, 1]>]} : (tensor<3x2xf32>, tensor<2x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
// CHECK-NEXT:     %a = graph.slice %3 {dim = 1 : i64, start = #sym<0>, step = 1 : i64} : (tensor<3x4xf32>) -> tensor<3x2xf32>
// CHECK-NEXT:     %b = graph.slice %3 {dim = 1 : i64, start = #sym<2>, step = 1 : i64} : (tensor<3x4xf32>) -> tensor<3x2xf32>
// CHECK-NEXT:     %c = graph.call_aten %x, %wc {arguments = {mat2 = #aten.operand<1>, self = #aten.operand<0>}, callee = "aten.mm.default", eager_strides = [#sym.dims<[1, 1]>]} : (tensor<3x2xf32>, tensor<2x1xf32>) -> tensor<3x1xf32>
// CHECK-NEXT:     return %a, %b, %c : tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x1xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
