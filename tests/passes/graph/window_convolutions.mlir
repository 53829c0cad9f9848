// The pass window-convolutions: a convolution channel by channel of an image with channels innermost becomes a sum over windows; of an image that eager has row by row it stays.
// RUN: --window-convolutions --target=avx2
// VALUES: window-convolutions

func.func @innermost(%x: tensor<1x8x2x5xf32>, %w: tensor<8x1x3x3xf32>, %b: tensor<8xf32>) -> tensor<1x8x2x3xf32> attributes {level = "graph"} {
  %y = graph.call_aten %x, %w, %b {arguments = {bias = #aten.operand<2>, dilation = [1 : i64, 1 : i64], groups = 8 : i64, input = #aten.operand<0>, output_padding = [0 : i64, 0 : i64], padding = [1 : i64, 1 : i64], stride = [1 : i64, 2 : i64], transposed = false, weight = #aten.operand<1>}, callee = "aten.convolution.default", eager_strides = [#sym.dims<[48, 1, 24, 8]>], operand_strides = [#sym.dims<[80, 1, 40, 8]>, #sym.dims<[9, 9, 3, 1]>, #sym.dims<[1]>]} : (tensor<1x8x2x5xf32>, tensor<8x1x3x3xf32>, tensor<8xf32>) -> tensor<1x8x2x3xf32>
  return %y : tensor<1x8x2x3xf32>
}

func.func @row_by_row(%x: tensor<1x8x2x5xf32>, %w: tensor<8x1x1x3xf32>) -> tensor<1x8x2x3xf32> attributes {level = "graph"} {
  %y = graph.call_aten %x, %w {arguments = {bias = #aten.none, dilation = [1 : i64, 1 : i64], groups = 8 : i64, input = #aten.operand<0>, output_padding = [0 : i64, 0 : i64], padding = [0 : i64, 0 : i64], stride = [1 : i64, 1 : i64], transposed = false, weight = #aten.operand<1>}, callee = "aten.convolution.default", eager_strides = [#sym.dims<[48, 6, 3, 1]>], operand_strides = [#sym.dims<[80, 10, 5, 1]>, #sym.dims<[3, 3, 3, 1]>]} : (tensor<1x8x2x5xf32>, tensor<8x1x1x3xf32>) -> tensor<1x8x2x3xf32>
  return %y : tensor<1x8x2x3xf32>
}

// CHECK: builtin.module attributes {irc.target = #irc.target<avx2>} {
// CHECK-NEXT:   func.func @innermost(%x: tensor<1x8x2x5xf32>, %w: tensor<8x1x3x3xf32>, %b: tensor<8xf32>) -> tensor<1x8x2x3xf32> attributes {level = "graph"} {
// CHECK-NEXT:     %0 = graph.permute %x {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x8x2x5xf32>) -> tensor<1x2x5x8xf32>
// CHECK-NEXT:     %1 = graph.copy %0 {eager_strides = [#sym.dims<[80, 40, 8, 1]>]} : (tensor<1x2x5x8xf32>) -> tensor<1x2x5x8xf32>
// CHECK-NEXT:     %2 = graph.pad %1 {high = #sym.dims<[0, 1, 1, 0]>, low = #sym.dims<[0, 1, 1, 0]>, value = 0.0 : f32} : (tensor<1x2x5x8xf32>) -> tensor<1x4x7x8xf32>
// CHECK-NEXT:     %3 = graph.window %2 {dilation = 1 : i64, dim = 1 : i64, step = 1 : i64} : (tensor<1x4x7x8xf32>) -> tensor<1x2x7x8x3xf32>
// CHECK-NEXT:     %4 = graph.window %3 {dilation = 1 : i64, dim = 2 : i64, step = 2 : i64} : (tensor<1x2x7x8x3xf32>) -> tensor<1x2x3x8x3x3xf32>
// CHECK-NEXT:     %5 = graph.reshape %w : (tensor<8x1x3x3xf32>) -> tensor<8x3x3xf32>
// CHECK-NEXT:     %6 = graph.permute %5 {permutation = array<i64: 1, 2, 0>} : (tensor<8x3x3xf32>) -> tensor<3x3x8xf32>
// CHECK-NEXT:     %7 = graph.copy %6 {eager_strides = [#sym.dims<[24, 8, 1]>]} : (tensor<3x3x8xf32>) -> tensor<3x3x8xf32>
// CHECK-NEXT:     %8 = graph.broadcast %7 {dims = array<i64: 3, 4, 5>} : (tensor<3x3x8xf32>) -> tensor<1x2x3x3x3x8xf32>
// CHECK-NEXT:     %9 = graph.permute %8 {permutation = array<i64: 0, 1, 2, 5, 3, 4>} : (tensor<1x2x3x3x3x8xf32>) -> tensor<1x2x3x8x3x3xf32>
// CHECK-NEXT:     %10 = graph.mul %4, %9 : (tensor<1x2x3x8x3x3xf32>, tensor<1x2x3x8x3x3xf32>) -> tensor<1x2x3x8x3x3xf32>
// CHECK-NEXT:     %11 = graph.reduce %10 {combiner = "sum", dims = array<i64: 4, 5>} : (tensor<1x2x3x8x3x3xf32>) -> tensor<1x2x3x8xf32>
// CHECK-NEXT:     %12 = graph.broadcast %b {dims = array<i64: 3>} : (tensor<8xf32>) -> tensor<1x2x3x8xf32>
// CHECK-NEXT:     %13 = graph.add %11, %12 : (tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>) -> tensor<1x2x3x8xf32>
// CHECK-NEXT:     %y = graph.permute %13 {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x2x3x8xf32>) -> tensor<1x8x2x3xf32>
// CHECK-NEXT:     return %y : tensor<1x8x2x3xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @row_by_row(%x: tensor<1x8x2x5xf32>, %w: tensor<8x1x1x3xf32>) -> tensor<1x8x2x3xf32> attributes {level = "graph"} {
// CHECK-NEXT:     %y = graph.call_aten %x, %w {arguments = {bias = #aten.none, dilation = [1 : i64, 1 : i64], groups = 8 : i64, input = #aten.operand<0>, output_padding = [0 : i64, 0 : i64], padding = [0 : i64, 0 : i64], stride = [1 : i64, 1 : i64], transposed = false, weight = #aten.operand<1>}, callee = "aten.convolution.default", eager_strides = [#sym.dims<[48, 6, 3, 1]>], operand_strides = [#sym.dims<[80, 10, 5, 1]>, #sym.dims<[3, 3, 3, 1]>]} : (tensor<1x8x2x5xf32>, tensor<8x1x1x3xf32>) -> tensor<1x8x2x3xf32>
// CHECK-NEXT:     return %y : tensor<1x8x2x3xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
