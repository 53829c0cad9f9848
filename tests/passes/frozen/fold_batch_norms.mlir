// The pass fold-batch-norms: the scale and the shift per channel after the convolution become part
// of its weight and its bias; fold-constants then computes them. The sum of both convolutions has
// no constant and stays.
// RUN: --fold-batch-norms --fold-constants
// VALUES: fold-batch-norms
// VALUES: fold-batch-norms,fold-constants

func.func @main(%x: tensor<1x1x3x3xf32>) -> tensor<1x2x3x3xf32> attributes {level = "graph"} {
  %w = graph.constant {value = dense<[[[[2.0]]], [[[-1.0]]]]> : tensor<2x1x1x1xf32>} : tensor<2x1x1x1xf32>
  %mean = graph.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : tensor<2xf32>
  %scale = graph.constant {value = dense<[3.0, 0.5]> : tensor<2xf32>} : tensor<2xf32>
  %a = graph.call_aten %x, %w {callee = "aten.convolution.default", arguments = {bias = #aten.none, dilation = [1 : i64, 1 : i64], groups = 1 : i64, input = #aten.operand<0>, output_padding = [0 : i64, 0 : i64], padding = [0 : i64, 0 : i64], stride = [1 : i64, 1 : i64], transposed = false, weight = #aten.operand<1>}, eager_strides = [#sym.dims<[18, 9, 3, 1]>]} : (tensor<1x1x3x3xf32>, tensor<2x1x1x1xf32>) -> tensor<1x2x3x3xf32>
  %m = graph.broadcast %mean {dims = array<i64: 1>} : (tensor<2xf32>) -> tensor<1x2x3x3xf32>
  %s = graph.broadcast %scale {dims = array<i64: 1>} : (tensor<2xf32>) -> tensor<1x2x3x3xf32>
  %b = graph.sub %a, %m : (tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %c = graph.mul %b, %s : (tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %d = graph.call_aten %x, %w {callee = "aten.convolution.default", arguments = {bias = #aten.none, dilation = [1 : i64, 1 : i64], groups = 1 : i64, input = #aten.operand<0>, output_padding = [0 : i64, 0 : i64], padding = [0 : i64, 0 : i64], stride = [1 : i64, 1 : i64], transposed = false, weight = #aten.operand<1>}, eager_strides = [#sym.dims<[18, 9, 3, 1]>]} : (tensor<1x1x3x3xf32>, tensor<2x1x1x1xf32>) -> tensor<1x2x3x3xf32>
  %e = graph.add %c, %d : (tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  return %e : tensor<1x2x3x3xf32>
}

// CHECK: builtin.module {
// CHECK-NEXT:   func.func @main(%x: tensor<1x1x3x3xf32>) -> tensor<1x2x3x3xf32> attributes {level = "graph"} {
// CHECK-NEXT:     %w = graph.constant {value = dense<[[[[2.0]]], [[[-1.0]]]]> : tensor<2x1x1x1xf32>} : tensor<2x1x1x1xf32>
// CHECK-NEXT:     %0 = graph.constant {value = dense<[-3.0, -1.0]> : tensor<2xf32>} : tensor<2xf32>
// CHECK-NEXT:     %1 = graph.constant {value = dense<[[[[6.0]]], [[[-0.5]]]]> : tensor<2x1x1x1xf32>} : tensor<2x1x1x1xf32>
// CHECK-NEXT:     %c = graph.call_aten %x, %1, %0 {arguments = {bias = #aten.operand<2>, dilation = [1 : i64, 1 : i64], groups = 1 : i64, input = #aten.operand<0>, output_padding = [0 : i64, 0 : i64], padding = [0 : i64, 0 : i64], stride = [1 : i64, 1 : i64], transposed = false, weight = #aten.operand<1>}, callee = "aten.convolution.default", eager_strides = [#sym.dims<[18, 9, 3, 1]>]} : (tensor<1x1x3x3xf32>, tensor<2x1x1x1xf32>, tensor<2xf32>) -> tensor<1x2x3x3xf32>
// CHECK-NEXT:     %d = graph.call_aten %x, %w {arguments = {bias = #aten.none, dilation = [1 : i64, 1 : i64], groups = 1 : i64, input = #aten.operand<0>, output_padding = [0 : i64, 0 : i64], padding = [0 : i64, 0 : i64], stride = [1 : i64, 1 : i64], transposed = false, weight = #aten.operand<1>}, callee = "aten.convolution.default", eager_strides = [#sym.dims<[18, 9, 3, 1]>]} : (tensor<1x1x3x3xf32>, tensor<2x1x1x1xf32>) -> tensor<1x2x3x3xf32>
// CHECK-NEXT:     %e = graph.add %c, %d : (tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
// CHECK-NEXT:     return %e : tensor<1x2x3x3xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
