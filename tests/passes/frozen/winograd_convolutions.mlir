// The pass winograd-convolutions: a 3x3 convolution with constant weights gets them transformed; others stay.
// RUN: --winograd-convolutions="gain=0.0 vector_bits=128" --target=avx512
// VALUES: winograd-convolutions{gain=0.0 vector_bits=128}

// Two channels to one, six rows and five columns around which lie zeros: three tiles of two by two of three. The weights are transformed in f64 along both
// directions, padded to the eight channels that a kernel computes at once, and rounded.
func.func @padded(%x: tensor<1x2x6x5xf32>) -> tensor<1x1x6x5xf32> attributes {level = "graph"} {
  %w = graph.constant {value = dense<[[[[0.5, 1.0, -2.0], [0.0, 3.0, 1.5], [-1.0, 0.25, 2.0]], [[1.0, -0.5, 0.75], [2.0, 1.0, -1.0], [0.5, 0.0, 4.0]]]]> : tensor<1x2x3x3xf32>} : tensor<1x2x3x3xf32>
  %b = graph.constant {value = dense<[0.25]> : tensor<1xf32>} : tensor<1xf32>
  %y = graph.call_aten %x, %w, %b {arguments = {bias = #aten.operand<2>, dilation = [1 : i64, 1 : i64], groups = 1 : i64, input = #aten.operand<0>, output_padding = [0 : i64, 0 : i64], padding = [1 : i64, 1 : i64], stride = [1 : i64, 1 : i64], transposed = false, weight = #aten.operand<1>}, callee = "aten.convolution.default", eager_strides = [#sym.dims<[30, 30, 5, 1]>]} : (tensor<1x2x6x5xf32>, tensor<1x2x3x3xf32>, tensor<1xf32>) -> tensor<1x1x6x5xf32>
  return %y : tensor<1x1x6x5xf32>
}

// Every other row and column: those are two taps, and one between them.
func.func @strided(%x: tensor<1x2x7x9xf32>) -> tensor<1x1x4x5xf32> attributes {level = "graph"} {
  %w = graph.constant {value = dense<[[[[0.5, 1.0, -2.0], [0.0, 3.0, 1.5], [-1.0, 0.25, 2.0]], [[1.0, -0.5, 0.75], [2.0, 1.0, -1.0], [0.5, 0.0, 4.0]]]]> : tensor<1x2x3x3xf32>} : tensor<1x2x3x3xf32>
  %y = graph.call_aten %x, %w {arguments = {bias = #aten.none, dilation = [1 : i64, 1 : i64], groups = 1 : i64, input = #aten.operand<0>, output_padding = [0 : i64, 0 : i64], padding = [1 : i64, 1 : i64], stride = [2 : i64, 2 : i64], transposed = false, weight = #aten.operand<1>}, callee = "aten.convolution.default", eager_strides = [#sym.dims<[20, 20, 5, 1]>]} : (tensor<1x2x7x9xf32>, tensor<1x2x3x3xf32>) -> tensor<1x1x4x5xf32>
  return %y : tensor<1x1x4x5xf32>
}

// The weight is an argument.
func.func @not_constant(%x: tensor<1x2x6x5xf32>, %w: tensor<1x2x3x3xf32>) -> tensor<1x1x4x3xf32> attributes {level = "graph"} {
  %y = graph.call_aten %x, %w {arguments = {bias = #aten.none, dilation = [1 : i64, 1 : i64], groups = 1 : i64, input = #aten.operand<0>, output_padding = [0 : i64, 0 : i64], padding = [0 : i64, 0 : i64], stride = [1 : i64, 1 : i64], transposed = false, weight = #aten.operand<1>}, callee = "aten.convolution.default", eager_strides = [#sym.dims<[12, 12, 3, 1]>]} : (tensor<1x2x6x5xf32>, tensor<1x2x3x3xf32>) -> tensor<1x1x4x3xf32>
  return %y : tensor<1x1x4x3xf32>
}

// CHECK: builtin.module attributes {irc.target = #irc.target<avx512>} {
// CHECK-NEXT:   func.func @padded(%x: tensor<1x2x6x5xf32>) -> tensor<1x1x6x5xf32> attributes {level = "graph"} {
// CHECK-NEXT:     %w = graph.constant {value = dense<[[[[0.5, 1.0, -2.0], [0.0, 3.0, 1.5], [-1.0, 0.25, 2.0]], [[1.0, -0.5, 0.75], [2.0, 1.0, -1.0], [0.5, 0.0, 4.0]]]]> : tensor<1x2x3x3xf32>} : tensor<1x2x3x3xf32>
// CHECK-NEXT:     %b = graph.constant {value = dense<0.25> : tensor<1xf32>} : tensor<1xf32>
// CHECK-NEXT:     %0 = graph.cast %w : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf64>
// CHECK-NEXT:     %1 = graph.pad %0 {high = #sym.dims<[7, 0, 0, 0]>, low = #sym.dims<[0, 0, 0, 0]>, value = 0.0 : f64} : (tensor<1x2x3x3xf64>) -> tensor<8x2x3x3xf64>
// CHECK-NEXT:     %2 = graph.reshape %1 : (tensor<8x2x3x3xf64>) -> tensor<48x3xf64>
// CHECK-NEXT:     %3 = graph.constant {value = dense<[[-0.7619047619047619, 0.7619047619047619, 0.3047619047619048, -0.3047619047619048, 0.0], [-0.38095238095238093, -0.38095238095238093, 0.38095238095238093, 0.38095238095238093, 0.0], [-0.19047619047619047, 0.19047619047619047, 0.47619047619047616, -0.47619047619047616, 1.0]]> : tensor<3x5xf64>} : tensor<3x5xf64>
// CHECK-NEXT:     %4 = graph.call_aten %2, %3 {arguments = {mat2 = #aten.operand<1>, self = #aten.operand<0>}, callee = "aten.mm.default", eager_strides = [#sym.dims<[5, 1]>]} : (tensor<48x3xf64>, tensor<3x5xf64>) -> tensor<48x5xf64>
// CHECK-NEXT:     %5 = graph.reshape %4 : (tensor<48x5xf64>) -> tensor<16x3x5xf64>
// CHECK-NEXT:     %6 = graph.permute %5 {permutation = array<i64: 0, 2, 1>} : (tensor<16x3x5xf64>) -> tensor<16x5x3xf64>
// CHECK-NEXT:     %7 = graph.reshape %6 : (tensor<16x5x3xf64>) -> tensor<80x3xf64>
// CHECK-NEXT:     %8 = graph.constant {value = dense<[[-1.0, 0.5, 0.5, 0.0], [0.0, 0.5, -0.5, 0.0], [0.0, 0.5, 0.5, 1.0]]> : tensor<3x4xf64>} : tensor<3x4xf64>
// CHECK-NEXT:     %9 = graph.call_aten %7, %8 {arguments = {mat2 = #aten.operand<1>, self = #aten.operand<0>}, callee = "aten.mm.default", eager_strides = [#sym.dims<[4, 1]>]} : (tensor<80x3xf64>, tensor<3x4xf64>) -> tensor<80x4xf64>
// CHECK-NEXT:     %10 = graph.reshape %9 : (tensor<80x4xf64>) -> tensor<1x8x2x5x4xf64>
// CHECK-NEXT:     %11 = graph.permute %10 {permutation = array<i64: 0, 4, 3, 2, 1>} : (tensor<1x8x2x5x4xf64>) -> tensor<1x4x5x2x8xf64>
// CHECK-NEXT:     %12 = graph.reshape %11 : (tensor<1x4x5x2x8xf64>) -> tensor<1x20x2x8xf64>
// CHECK-NEXT:     %13 = graph.cast %12 : (tensor<1x20x2x8xf64>) -> tensor<1x20x2x8xf32>
// CHECK-NEXT:     %y = graph.winograd_conv %x, %13, %b {padding = array<i64: 1, 1>, stride = array<i64: 1, 1>, taps = array<i64: 3, 3>, tile = array<i64: 2, 3>} : (tensor<1x2x6x5xf32>, tensor<1x20x2x8xf32>, tensor<1xf32>) -> tensor<1x1x6x5xf32>
// CHECK-NEXT:     return %y : tensor<1x1x6x5xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @strided(%x: tensor<1x2x7x9xf32>) -> tensor<1x1x4x5xf32> attributes {level = "graph"} {
// CHECK-NEXT:     %w = graph.constant {value = dense<[[[[0.5, 1.0, -2.0], [0.0, 3.0, 1.5], [-1.0, 0.25, 2.0]], [[1.0, -0.5, 0.75], [2.0, 1.0, -1.0], [0.5, 0.0, 4.0]]]]> : tensor<1x2x3x3xf32>} : tensor<1x2x3x3xf32>
// CHECK-NEXT:     %0 = graph.cast %w : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf64>
// CHECK-NEXT:     %1 = graph.pad %0 {high = #sym.dims<[7, 0, 0, 0]>, low = #sym.dims<[0, 0, 0, 0]>, value = 0.0 : f64} : (tensor<1x2x3x3xf64>) -> tensor<8x2x3x3xf64>
// CHECK-NEXT:     %2 = graph.reshape %1 : (tensor<8x2x3x3xf64>) -> tensor<48x3xf64>
// CHECK-NEXT:     %3 = graph.constant {value = dense<[[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]> : tensor<3x3xf64>} : tensor<3x3xf64>
// CHECK-NEXT:     %4 = graph.call_aten %2, %3 {arguments = {mat2 = #aten.operand<1>, self = #aten.operand<0>}, callee = "aten.mm.default", eager_strides = [#sym.dims<[3, 1]>]} : (tensor<48x3xf64>, tensor<3x3xf64>) -> tensor<48x3xf64>
// CHECK-NEXT:     %5 = graph.reshape %4 : (tensor<48x3xf64>) -> tensor<16x3x3xf64>
// CHECK-NEXT:     %6 = graph.permute %5 {permutation = array<i64: 0, 2, 1>} : (tensor<16x3x3xf64>) -> tensor<16x3x3xf64>
// CHECK-NEXT:     %7 = graph.reshape %6 : (tensor<16x3x3xf64>) -> tensor<48x3xf64>
// CHECK-NEXT:     %8 = graph.constant {value = dense<[[0.8, -0.8, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, 1.0], [0.5, 0.5, 1.0, 0.0, 0.0]]> : tensor<3x5xf64>} : tensor<3x5xf64>
// CHECK-NEXT:     %9 = graph.call_aten %7, %8 {arguments = {mat2 = #aten.operand<1>, self = #aten.operand<0>}, callee = "aten.mm.default", eager_strides = [#sym.dims<[5, 1]>]} : (tensor<48x3xf64>, tensor<3x5xf64>) -> tensor<48x5xf64>
// CHECK-NEXT:     %10 = graph.reshape %9 : (tensor<48x5xf64>) -> tensor<1x8x2x3x5xf64>
// CHECK-NEXT:     %11 = graph.permute %10 {permutation = array<i64: 0, 4, 3, 2, 1>} : (tensor<1x8x2x3x5xf64>) -> tensor<1x5x3x2x8xf64>
// CHECK-NEXT:     %12 = graph.reshape %11 : (tensor<1x5x3x2x8xf64>) -> tensor<1x15x2x8xf64>
// CHECK-NEXT:     %13 = graph.cast %12 : (tensor<1x15x2x8xf64>) -> tensor<1x15x2x8xf32>
// CHECK-NEXT:     %y = graph.winograd_conv %x, %13 {padding = array<i64: 1, 1>, stride = array<i64: 2, 2>, taps = array<i64: 3, 3>, tile = array<i64: 2, 1>} : (tensor<1x2x7x9xf32>, tensor<1x15x2x8xf32>) -> tensor<1x1x4x5xf32>
// CHECK-NEXT:     return %y : tensor<1x1x4x5xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @not_constant(%x: tensor<1x2x6x5xf32>, %w: tensor<1x2x3x3xf32>) -> tensor<1x1x4x3xf32> attributes {level = "graph"} {
// CHECK-NEXT:     %y = graph.call_aten %x, %w {arguments = {bias = #aten.none, dilation = [1 : i64, 1 : i64], groups = 1 : i64, input = #aten.operand<0>, output_padding = [0 : i64, 0 : i64], padding = [0 : i64, 0 : i64], stride = [1 : i64, 1 : i64], transposed = false, weight = #aten.operand<1>}, callee = "aten.convolution.default", eager_strides = [#sym.dims<[12, 12, 3, 1]>]} : (tensor<1x2x6x5xf32>, tensor<1x2x3x3xf32>) -> tensor<1x1x4x3xf32>
// CHECK-NEXT:     return %y : tensor<1x1x4x3xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
