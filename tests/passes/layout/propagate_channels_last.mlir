// The pass propagate-channels-last: the image that a convolution reads and the one that it gives have channels
// innermost.
// RUN: --propagate-channels-last --target=avx512
// VALUES: propagate-channels-last

func.func @main(%x: tensor<1x4x8x8xf32>, %w: tensor<2x4x1x1xf32>) -> tensor<1x2x8x8xf32> attributes {level = "graph"} {
  %e = graph.exp %x : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %y = graph.call_aten %e, %w {arguments = {bias = #aten.none, dilation = [1 : i64, 1 : i64], groups = 1 : i64, input = #aten.operand<0>, output_padding = [0 : i64, 0 : i64], padding = [0 : i64, 0 : i64], stride = [1 : i64, 1 : i64], transposed = false, weight = #aten.operand<1>}, callee = "aten.convolution.default", eager_strides = [#sym.dims<[128, 64, 8, 1]>], operand_strides = [#sym.dims<[256, 64, 8, 1]>, #sym.dims<[4, 1, 1, 1]>]} : (tensor<1x4x8x8xf32>, tensor<2x4x1x1xf32>) -> tensor<1x2x8x8xf32>
  return %y : tensor<1x2x8x8xf32>
}

// CHECK: builtin.module attributes {irc.target = #irc.target<avx512>} {
// CHECK-NEXT:   func.func @main(%x: tensor<1x4x8x8xf32>, %w: tensor<2x4x1x1xf32>) -> tensor<1x2x8x8xf32> attributes {channels_last = {convolutions = 1 : i64, operations = 3 : i64, reason = "as many images are returned, in eager's strides", returned_images = 1 : i64, wanted = false}, level = "graph"} {
// CHECK-NEXT:     %e = graph.exp %x : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
// CHECK-NEXT:     %y = graph.call_aten %e, %w {arguments = {bias = #aten.none, dilation = [1 : i64, 1 : i64], groups = 1 : i64, input = #aten.operand<0>, output_padding = [0 : i64, 0 : i64], padding = [0 : i64, 0 : i64], stride = [1 : i64, 1 : i64], transposed = false, weight = #aten.operand<1>}, callee = "aten.convolution.default", eager_strides = [#sym.dims<[128, 64, 8, 1]>], operand_strides = [#sym.dims<[256, 64, 8, 1]>, #sym.dims<[4, 1, 1, 1]>]} : (tensor<1x4x8x8xf32>, tensor<2x4x1x1xf32>) -> tensor<1x2x8x8xf32>
// CHECK-NEXT:     return %y : tensor<1x2x8x8xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
