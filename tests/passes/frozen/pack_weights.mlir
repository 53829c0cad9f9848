// The pass pack-weights: constant weights of convolutions and linears are packed; others stay.
// RUN: --pack-weights --cse --target=avx512
// VALUES: pack-weights

func.func @convolution(%x: tensor<2x2x5x4xf32>, %v: tensor<2x2x1x1xf32>) -> tensor<2x2x5x4xf32> attributes {level = "graph"} {
  %w = graph.constant {value = dense<[[[[0.5]], [[1.0]]], [[[2.0]], [[-1.0]]]]> : tensor<2x2x1x1xf32>} : tensor<2x2x1x1xf32>
  %b = graph.constant {value = dense<[0.25, -3.0]> : tensor<2xf32>} : tensor<2xf32>
  %y = graph.call_aten %x, %w, %b {arguments = {bias = #aten.operand<2>, dilation = [1 : i64, 1 : i64], groups = 1 : i64, input = #aten.operand<0>, output_padding = [0 : i64, 0 : i64], padding = [0 : i64, 0 : i64], stride = [1 : i64, 1 : i64], transposed = false, weight = #aten.operand<1>}, callee = "aten.convolution.default", eager_strides = [#sym.dims<[40, 20, 4, 1]>]} : (tensor<2x2x5x4xf32>, tensor<2x2x1x1xf32>, tensor<2xf32>) -> tensor<2x2x5x4xf32>
  %z = graph.call_aten %y, %v {arguments = {bias = #aten.none, dilation = [1 : i64, 1 : i64], groups = 1 : i64, input = #aten.operand<0>, output_padding = [0 : i64, 0 : i64], padding = [0 : i64, 0 : i64], stride = [1 : i64, 1 : i64], transposed = false, weight = #aten.operand<1>}, callee = "aten.convolution.default", eager_strides = [#sym.dims<[40, 20, 4, 1]>]} : (tensor<2x2x5x4xf32>, tensor<2x2x1x1xf32>) -> tensor<2x2x5x4xf32>
  return %z : tensor<2x2x5x4xf32>
}

func.func @linear(%x: tensor<4x2xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>) attributes {level = "graph"} {
  %w = graph.constant {value = dense<[[0.5, 1.0], [2.0, -1.0], [0.0, 4.0]]> : tensor<3x2xf32>} : tensor<3x2xf32>
  %b = graph.constant {value = dense<[0.25, -3.0, 1.0]> : tensor<3xf32>} : tensor<3xf32>
  %t = graph.permute %w {permutation = array<i64: 1, 0>} : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %y = graph.call_aten %b, %x, %t {arguments = {mat1 = #aten.operand<1>, mat2 = #aten.operand<2>, self = #aten.operand<0>}, callee = "aten.addmm.default", eager_strides = [#sym.dims<[3, 1]>]} : (tensor<3xf32>, tensor<4x2xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  %u = graph.constant {value = dense<[[0.5, 1.0, 2.0], [-1.0, 0.0, 4.0]]> : tensor<2x3xf32>} : tensor<2x3xf32>
  %z = graph.call_aten %x, %u {arguments = {mat2 = #aten.operand<1>, self = #aten.operand<0>}, callee = "aten.mm.default", eager_strides = [#sym.dims<[3, 1]>]} : (tensor<4x2xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  return %y, %z : tensor<4x3xf32>, tensor<4x3xf32>
}

// CHECK: builtin.module attributes {irc.target = #irc.target<avx512>} {
// CHECK-NEXT:   func.func @convolution(%x: tensor<2x2x5x4xf32>, %v: tensor<2x2x1x1xf32>) -> tensor<2x2x5x4xf32> attributes {level = "graph"} {
// CHECK-NEXT:     %w = graph.constant {value = dense<[[[[0.5]], [[1.0]]], [[[2.0]], [[-1.0]]]]> : tensor<2x2x1x1xf32>} : tensor<2x2x1x1xf32>
// CHECK-NEXT:     %b = graph.constant {value = dense<[0.25, -3.0]> : tensor<2xf32>} : tensor<2xf32>
// CHECK-NEXT:     %0 = graph.pack %w {dilation = array<i64: 1, 1>, format = "convolution", groups = 1 : i64, input = array<i64: 2, 2, 5, 4>, padding = array<i64: 0, 0>, stride = array<i64: 1, 1>} : (tensor<2x2x1x1xf32>) -> !graph.packed<tensor<2x2x1x1xf32>>
// CHECK-NEXT:     %y = graph.packed_conv %x, %0, %b {dilation = array<i64: 1, 1>, groups = 1 : i64, padding = array<i64: 0, 0>, stride = array<i64: 1, 1>} : (tensor<2x2x5x4xf32>, !graph.packed<tensor<2x2x1x1xf32>>, tensor<2xf32>) -> tensor<2x2x5x4xf32>
// CHECK-NEXT:     %z = graph.call_aten %y, %v {arguments = {bias = #aten.none, dilation = [1 : i64, 1 : i64], groups = 1 : i64, input = #aten.operand<0>, output_padding = [0 : i64, 0 : i64], padding = [0 : i64, 0 : i64], stride = [1 : i64, 1 : i64], transposed = false, weight = #aten.operand<1>}, callee = "aten.convolution.default", eager_strides = [#sym.dims<[40, 20, 4, 1]>]} : (tensor<2x2x5x4xf32>, tensor<2x2x1x1xf32>) -> tensor<2x2x5x4xf32>
// CHECK-NEXT:     return %z : tensor<2x2x5x4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @linear(%x: tensor<4x2xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>) attributes {level = "graph"} {
// CHECK-NEXT:     %w = graph.constant {value = dense<[[0.5, 1.0], [2.0, -1.0], [0.0, 4.0]]> : tensor<3x2xf32>} : tensor<3x2xf32>
// CHECK-NEXT:     %b = graph.constant {value = dense<[0.25, -3.0, 1.0]> : tensor<3xf32>} : tensor<3xf32>
// CHECK-NEXT:     %0 = graph.pack %w {format = "linear", input = array<i64: 4, 2>} : (tensor<3x2xf32>) -> !graph.packed<tensor<3x2xf32>>
// CHECK-NEXT:     %y = graph.packed_linear %x, %0, %b : (tensor<4x2xf32>, !graph.packed<tensor<3x2xf32>>, tensor<3xf32>) -> tensor<4x3xf32>
// CHECK-NEXT:     %u = graph.constant {value = dense<[[0.5, 1.0, 2.0], [-1.0, 0.0, 4.0]]> : tensor<2x3xf32>} : tensor<2x3xf32>
// CHECK-NEXT:     %1 = graph.pack %u {format = "linear", input = array<i64: 4, 2>, transposed} : (tensor<2x3xf32>) -> !graph.packed<tensor<3x2xf32>>
// CHECK-NEXT:     %z = graph.packed_linear %x, %1 : (tensor<4x2xf32>, !graph.packed<tensor<3x2xf32>>) -> tensor<4x3xf32>
// CHECK-NEXT:     return %y, %z : tensor<4x3xf32>, tensor<4x3xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
