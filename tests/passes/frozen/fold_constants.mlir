// The pass fold-constants: the weight's cast and its reciprocal are computed once. Its transposed
// view costs nothing and stays, and so does the mask, which is made of positions alone.
// RUN: --fold-constants
// VALUES: fold-constants

func.func @main(%x: tensor<2x2xbf16>) -> (tensor<2x2xbf16>, tensor<2x2xi1>) attributes {level = "graph"} {
  %w = graph.constant {value = dense<[[0.5, 1.5], [2.0, -4.0]]> : tensor<2x2xf32>} : tensor<2x2xf32>
  %r = graph.reciprocal %w : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %h = graph.cast %r : (tensor<2x2xf32>) -> tensor<2x2xbf16>
  %t = graph.permute %h {permutation = array<i64: 1, 0>} : (tensor<2x2xbf16>) -> tensor<2x2xbf16>
  %y = graph.call_aten %x, %t {callee = "aten.mm.default", arguments = {mat2 = #aten.operand<1>, self = #aten.operand<0>}, eager_strides = [#sym.dims<[2, 1]>]} : (tensor<2x2xbf16>, tensor<2x2xbf16>) -> tensor<2x2xbf16>
  %i = graph.iota {dim = 0 : i64} : tensor<2x2xi64>
  %j = graph.iota {dim = 1 : i64} : tensor<2x2xi64>
  %m = graph.le %j, %i : (tensor<2x2xi64>, tensor<2x2xi64>) -> tensor<2x2xi1>
  return %y, %m : tensor<2x2xbf16>, tensor<2x2xi1>
}

// CHECK: builtin.module {
// CHECK-NEXT:   func.func @main(%x: tensor<2x2xbf16>) -> (tensor<2x2xbf16>, tensor<2x2xi1>) attributes {level = "graph"} {
// CHECK-NEXT:     %h = graph.constant {value = dense<[[2.0, 0.668], [0.5, -0.25]]> : tensor<2x2xbf16>} : tensor<2x2xbf16>
// CHECK-NEXT:     %t = graph.permute %h {permutation = array<i64: 1, 0>} : (tensor<2x2xbf16>) -> tensor<2x2xbf16>
// CHECK-NEXT:     %y = graph.call_aten %x, %t {arguments = {mat2 = #aten.operand<1>, self = #aten.operand<0>}, callee = "aten.mm.default", eager_strides = [#sym.dims<[2, 1]>]} : (tensor<2x2xbf16>, tensor<2x2xbf16>) -> tensor<2x2xbf16>
// CHECK-NEXT:     %i = graph.iota {dim = 0 : i64} : tensor<2x2xi64>
// CHECK-NEXT:     %j = graph.iota {dim = 1 : i64} : tensor<2x2xi64>
// CHECK-NEXT:     %m = graph.le %j, %i : (tensor<2x2xi64>, tensor<2x2xi64>) -> tensor<2x2xi1>
// CHECK-NEXT:     return %y, %m : tensor<2x2xbf16>, tensor<2x2xi1>
// CHECK-NEXT:   }
// CHECK-NEXT: }
