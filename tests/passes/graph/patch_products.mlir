// The pass patch-products: the windows of three channels don't overlap, so that the convolution is a
// product of patches. The second one has windows that do.
// RUN: --patch-products --target='#irc.target<sm_90, narrow_convolution = 1>'
// VALUES: patch-products

func.func @main(%x: tensor<2x3x8x10xbf16>, %w: tensor<5x3x4x5xbf16>, %b: tensor<5xbf16>) -> (tensor<2x5x2x2xbf16>, tensor<2x5x5x6xbf16>) attributes {level = "graph"} {
  %y = graph.call_aten %x, %w, %b {callee = "aten.convolution.default", arguments = {bias = #aten.operand<2>, dilation = [1 : i64, 1 : i64], groups = 1 : i64, input = #aten.operand<0>, output_padding = [0 : i64, 0 : i64], padding = [0 : i64, 0 : i64], stride = [4 : i64, 5 : i64], transposed = false, weight = #aten.operand<1>}, eager_strides = [#sym.dims<[20, 4, 2, 1]>]} : (tensor<2x3x8x10xbf16>, tensor<5x3x4x5xbf16>, tensor<5xbf16>) -> tensor<2x5x2x2xbf16>
  %z = graph.call_aten %x, %w {callee = "aten.convolution.default", arguments = {bias = #aten.none, dilation = [1 : i64, 1 : i64], groups = 1 : i64, input = #aten.operand<0>, output_padding = [0 : i64, 0 : i64], padding = [0 : i64, 0 : i64], stride = [1 : i64, 1 : i64], transposed = false, weight = #aten.operand<1>}, eager_strides = [#sym.dims<[150, 30, 6, 1]>]} : (tensor<2x3x8x10xbf16>, tensor<5x3x4x5xbf16>) -> tensor<2x5x5x6xbf16>
  return %y, %z : tensor<2x5x2x2xbf16>, tensor<2x5x5x6xbf16>
}

// CHECK: builtin.module attributes {irc.target = #irc.target<sm_90, narrow_convolution = 1>} {
// CHECK-NEXT:   func.func @main(%x: tensor<2x3x8x10xbf16>, %w: tensor<5x3x4x5xbf16>, %b: tensor<5xbf16>) -> (tensor<2x5x2x2xbf16>, tensor<2x5x5x6xbf16>) attributes {level = "graph"} {
// CHECK-NEXT:     %0 = graph.reshape %w : (tensor<5x3x4x5xbf16>) -> tensor<5x60xbf16>
// CHECK-NEXT:     %1 = graph.reshape %x : (tensor<2x3x8x10xbf16>) -> tensor<2x3x2x4x2x5xbf16>
// CHECK-NEXT:     %2 = graph.permute %1 {permutation = array<i64: 0, 2, 4, 1, 3, 5>} : (tensor<2x3x2x4x2x5xbf16>) -> tensor<2x2x2x3x4x5xbf16>
// CHECK-NEXT:     %3 = graph.reshape %2 : (tensor<2x2x2x3x4x5xbf16>) -> tensor<8x60xbf16>
// CHECK-NEXT:     %4 = graph.permute %0 {permutation = array<i64: 1, 0>} : (tensor<5x60xbf16>) -> tensor<60x5xbf16>
// CHECK-NEXT:     %5 = graph.call_aten %b, %3, %4 {arguments = {mat1 = #aten.operand<1>, mat2 = #aten.operand<2>, self = #aten.operand<0>}, callee = "aten.addmm.default", eager_strides = [#sym.dims<[5, 1]>]} : (tensor<5xbf16>, tensor<8x60xbf16>, tensor<60x5xbf16>) -> tensor<8x5xbf16>
// CHECK-NEXT:     %6 = graph.reshape %5 : (tensor<8x5xbf16>) -> tensor<2x2x2x5xbf16>
// CHECK-NEXT:     %y = graph.permute %6 {permutation = array<i64: 0, 3, 1, 2>} : (tensor<2x2x2x5xbf16>) -> tensor<2x5x2x2xbf16>
// CHECK-NEXT:     %z = graph.call_aten %x, %w {arguments = {bias = #aten.none, dilation = [1 : i64, 1 : i64], groups = 1 : i64, input = #aten.operand<0>, output_padding = [0 : i64, 0 : i64], padding = [0 : i64, 0 : i64], stride = [1 : i64, 1 : i64], transposed = false, weight = #aten.operand<1>}, callee = "aten.convolution.default", eager_strides = [#sym.dims<[150, 30, 6, 1]>]} : (tensor<2x3x8x10xbf16>, tensor<5x3x4x5xbf16>) -> tensor<2x5x5x6xbf16>
// CHECK-NEXT:     return %y, %z : tensor<2x5x2x2xbf16>, tensor<2x5x5x6xbf16>
// CHECK-NEXT:   }
// CHECK-NEXT: }
