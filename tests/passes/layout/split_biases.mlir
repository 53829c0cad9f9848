// The pass split-biases: the bias of a convolution is added by an addition of its own.
// RUN: --split-biases
// VALUES: split-biases

func.func @main(%x: tensor<1x4x8x8xbf16>, %w: tensor<2x4x1x1xbf16>, %b: tensor<2xbf16>) -> tensor<1x2x8x8xbf16> attributes {level = "graph"} {
  %y = graph.call_aten %x, %w, %b {arguments = {bias = #aten.operand<2>, dilation = [1 : i64, 1 : i64], groups = 1 : i64, input = #aten.operand<0>, output_padding = [0 : i64, 0 : i64], padding = [0 : i64, 0 : i64], stride = [1 : i64, 1 : i64], transposed = false, weight = #aten.operand<1>}, callee = "aten.convolution.default", eager_strides = [#sym.dims<[128, 64, 8, 1]>], operand_strides = [#sym.dims<[256, 64, 8, 1]>, #sym.dims<[4, 1, 1, 1]>, #sym.dims<[1]>]} : (tensor<1x4x8x8xbf16>, tensor<2x4x1x1xbf16>, tensor<2xbf16>) -> tensor<1x2x8x8xbf16>
  return %y : tensor<1x2x8x8xbf16>
}

// CHECK: builtin.module {
// CHECK-NEXT:   func.func @main(%x: tensor<1x4x8x8xbf16>, %w: tensor<2x4x1x1xbf16>, %b: tensor<2xbf16>) -> tensor<1x2x8x8xbf16> attributes {level = "graph"} {
// CHECK-NEXT:     %0 = graph.call_aten %x, %w {arguments = {bias = #aten.none, dilation = [1 : i64, 1 : i64], groups = 1 : i64, input = #aten.operand<0>, output_padding = [0 : i64, 0 : i64], padding = [0 : i64, 0 : i64], stride = [1 : i64, 1 : i64], transposed = false, weight = #aten.operand<1>}, callee = "aten.convolution.default", eager_strides = [#sym.dims<[128, 64, 8, 1]>], operand_strides = [#sym.dims<[256, 64, 8, 1]>, #sym.dims<[4, 1, 1, 1]>]} : (tensor<1x4x8x8xbf16>, tensor<2x4x1x1xbf16>) -> tensor<1x2x8x8xbf16>
// CHECK-NEXT:     %1 = graph.cast %0 : (tensor<1x2x8x8xbf16>) -> tensor<1x2x8x8xf32>
// CHECK-NEXT:     %2 = graph.cast %b : (tensor<2xbf16>) -> tensor<2xf32>
// CHECK-NEXT:     %3 = graph.broadcast %2 {dims = array<i64: 1>} : (tensor<2xf32>) -> tensor<1x2x8x8xf32>
// CHECK-NEXT:     %4 = graph.add %1, %3 : (tensor<1x2x8x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32>
// CHECK-NEXT:     %y = graph.cast %4 : (tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xbf16>
// CHECK-NEXT:     return %y : tensor<1x2x8x8xbf16>
// CHECK-NEXT:   }
// CHECK-NEXT: }
