// The pass panel-convolutions: a 1x1 convolution becomes a product whose constant weights lie in panels of a vector; others stay.
// RUN: --panel-convolutions="choosy=false" --target=avx512
// VALUES: panel-convolutions{choosy=false}

// Every second pixel of every row; three channels to ten, so that six columns of the only panel are zeros.
func.func @strided(%x: tensor<1x3x2x5xf32>) -> tensor<1x10x2x3xf32> attributes {level = "graph"} {
  %w = graph.constant {value = dense<[[[[0.5]], [[1.0]], [[-2.0]]], [[[0.0]], [[3.0]], [[1.5]]], [[[-1.0]], [[0.25]], [[2.0]]], [[[1.0]], [[-0.5]], [[0.75]]], [[[2.0]], [[1.0]], [[-1.0]]], [[[0.5]], [[0.0]], [[4.0]]], [[[1.0]], [[1.0]], [[1.0]]], [[[-3.0]], [[0.5]], [[0.0]]], [[[0.125]], [[2.0]], [[-1.0]]], [[[6.0]], [[0.5]], [[-0.5]]]]> : tensor<10x3x1x1xf32>} : tensor<10x3x1x1xf32>
  %b = graph.constant {value = dense<[0.25, -3.0, 1.0, 0.0, 2.0, 0.5, 1.5, -1.0, 0.75, -0.25]> : tensor<10xf32>} : tensor<10xf32>
  %y = graph.call_aten %x, %w, %b {arguments = {bias = #aten.operand<2>, dilation = [1 : i64, 1 : i64], groups = 1 : i64, input = #aten.operand<0>, output_padding = [0 : i64, 0 : i64], padding = [0 : i64, 0 : i64], stride = [1 : i64, 2 : i64], transposed = false, weight = #aten.operand<1>}, callee = "aten.convolution.default", eager_strides = [#sym.dims<[60, 6, 3, 1]>]} : (tensor<1x3x2x5xf32>, tensor<10x3x1x1xf32>, tensor<10xf32>) -> tensor<1x10x2x3xf32>
  return %y : tensor<1x10x2x3xf32>
}

// The weight is an argument.
func.func @not_constant(%x: tensor<1x2x6x5xf32>, %w: tensor<1x2x1x1xf32>) -> tensor<1x1x6x5xf32> attributes {level = "graph"} {
  %y = graph.call_aten %x, %w {arguments = {bias = #aten.none, dilation = [1 : i64, 1 : i64], groups = 1 : i64, input = #aten.operand<0>, output_padding = [0 : i64, 0 : i64], padding = [0 : i64, 0 : i64], stride = [1 : i64, 1 : i64], transposed = false, weight = #aten.operand<1>}, callee = "aten.convolution.default", eager_strides = [#sym.dims<[30, 30, 5, 1]>]} : (tensor<1x2x6x5xf32>, tensor<1x2x1x1xf32>) -> tensor<1x1x6x5xf32>
  return %y : tensor<1x1x6x5xf32>
}

// CHECK: builtin.module attributes {irc.target = #irc.target<avx512>} {
// CHECK-NEXT:   func.func @strided(%x: tensor<1x3x2x5xf32>) -> tensor<1x10x2x3xf32> attributes {level = "graph"} {
// CHECK-NEXT:     %b = graph.constant {value = dense<[0.25, -3.0, 1.0, 0.0, 2.0, 0.5, 1.5, -1.0, 0.75, -0.25]> : tensor<10xf32>} : tensor<10xf32>
// CHECK-NEXT:     %0 = graph.slice %x {dim = 3 : i64, start = #sym<0>, step = 2 : i64} : (tensor<1x3x2x5xf32>) -> tensor<1x3x2x3xf32>
// CHECK-NEXT:     %1 = graph.constant {value = dense<[[[0.5, 0.0, -1.0, 1.0, 2.0, 0.5, 1.0, -3.0, 0.125, 6.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [1.0, 3.0, 0.25, -0.5, 1.0, 0.0, 1.0, 0.5, 2.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [-2.0, 1.5, 2.0, 0.75, -1.0, 4.0, 1.0, 0.0, -1.0, -0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]]> : tensor<1x3x16xf32>} : tensor<1x3x16xf32>
// CHECK-NEXT:     %2 = graph.permute %1 {permutation = array<i64: 0, 2, 1>} : (tensor<1x3x16xf32>) -> tensor<1x16x3xf32>
// CHECK-NEXT:     %3 = graph.reshape %2 : (tensor<1x16x3xf32>) -> tensor<16x3xf32>
// CHECK-NEXT:     %4 = graph.slice %3 {dim = 0 : i64, start = #sym<0>, step = 1 : i64} : (tensor<16x3xf32>) -> tensor<10x3xf32>
// CHECK-NEXT:     %5 = graph.dot_general %0, %4 {accumulator = f32, left_batch = array<i64>, left_depth = array<i64: 1>, right_batch = array<i64>, right_depth = array<i64: 1>, schedule = #loop.schedule<cpu, tile_vectors = 1 : i64>} : (tensor<1x3x2x3xf32>, tensor<10x3xf32>) -> tensor<1x2x3x10xf32>
// CHECK-NEXT:     %6 = graph.broadcast %b {dims = array<i64: 3>} : (tensor<10xf32>) -> tensor<1x2x3x10xf32>
// CHECK-NEXT:     %7 = graph.add %5, %6 : (tensor<1x2x3x10xf32>, tensor<1x2x3x10xf32>) -> tensor<1x2x3x10xf32>
// CHECK-NEXT:     %y = graph.permute %7 {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x2x3x10xf32>) -> tensor<1x10x2x3xf32>
// CHECK-NEXT:     return %y : tensor<1x10x2x3xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @not_constant(%x: tensor<1x2x6x5xf32>, %w: tensor<1x2x1x1xf32>) -> tensor<1x1x6x5xf32> attributes {level = "graph"} {
// CHECK-NEXT:     %y = graph.call_aten %x, %w {arguments = {bias = #aten.none, dilation = [1 : i64, 1 : i64], groups = 1 : i64, input = #aten.operand<0>, output_padding = [0 : i64, 0 : i64], padding = [0 : i64, 0 : i64], stride = [1 : i64, 1 : i64], transposed = false, weight = #aten.operand<1>}, callee = "aten.convolution.default", eager_strides = [#sym.dims<[30, 30, 5, 1]>]} : (tensor<1x2x6x5xf32>, tensor<1x2x1x1xf32>) -> tensor<1x1x6x5xf32>
// CHECK-NEXT:     return %y : tensor<1x1x6x5xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
