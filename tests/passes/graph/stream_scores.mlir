// The pass stream-scores: a product with a function of another product's result, which is turned
// round before, is one with a function of a product that is turned round.
// RUN: --stream-scores --dce
// VALUES: stream-scores

builtin.module attributes {irc.target = #irc.target<sm_90, streamed_scores = 0>} {
  func.func @main(%q: tensor<2x20x16xbf16>, %k: tensor<2x16x24xbf16>, %v: tensor<2x20x8xbf16>) -> tensor<2x24x8xbf16> attributes {level = "graph"} {
    %s = graph.call_aten %q, %k {arguments = {mat2 = #aten.operand<1>, self = #aten.operand<0>}, callee = "aten.bmm.default", eager_strides = [#sym.dims<[480, 24, 1]>], operand_strides = [#sym.dims<[320, 16, 1]>, #sym.dims<[384, 24, 1]>]} : (tensor<2x20x16xbf16>, tensor<2x16x24xbf16>) -> tensor<2x20x24xbf16>
    %w = graph.cast %s : (tensor<2x20x24xbf16>) -> tensor<2x20x24xf32>
    %h = graph.tanh %w : (tensor<2x20x24xf32>) -> tensor<2x20x24xf32>
    %x = graph.cast %h : (tensor<2x20x24xf32>) -> tensor<2x20x24xbf16>
    %t = graph.permute %x {permutation = array<i64: 0, 2, 1>} : (tensor<2x20x24xbf16>) -> tensor<2x24x20xbf16>
    %y = graph.call_aten %t, %v {arguments = {mat2 = #aten.operand<1>, self = #aten.operand<0>}, callee = "aten.bmm.default", eager_strides = [#sym.dims<[192, 8, 1]>], operand_strides = [#sym.dims<[480, 1, 24]>, #sym.dims<[160, 8, 1]>]} : (tensor<2x24x20xbf16>, tensor<2x20x8xbf16>) -> tensor<2x24x8xbf16>
    return %y : tensor<2x24x8xbf16>
  }
}

// CHECK: builtin.module attributes {irc.target = #irc.target<gpu, chip = "sm_90", streamed_scores = 0>} {
// CHECK-NEXT:   func.func @main(%q: tensor<2x20x16xbf16>, %k: tensor<2x16x24xbf16>, %v: tensor<2x20x8xbf16>) -> tensor<2x24x8xbf16> attributes {level = "graph"} {
// CHECK-NEXT:     %0 = graph.permute %k {permutation = array<i64: 0, 2, 1>} : (tensor<2x16x24xbf16>) -> tensor<2x24x16xbf16>
// CHECK-NEXT:     %1 = graph.permute %q {permutation = array<i64: 0, 2, 1>} : (tensor<2x20x16xbf16>) -> tensor<2x16x20xbf16>
// CHECK-NEXT:     %2 = graph.dot_general %0, %1 {accumulator = f32, left_batch = array<i64: 0>, left_depth = array<i64: 2>, right_batch = array<i64: 0>, right_depth = array<i64: 1>, schedule = #loop.schedule<gpu>} : (tensor<2x24x16xbf16>, tensor<2x16x20xbf16>) -> tensor<2x24x20xf32>
// CHECK-NEXT:     %3 = graph.cast %2 : (tensor<2x24x20xf32>) -> tensor<2x24x20xbf16>
// CHECK-NEXT:     %4 = graph.cast %3 : (tensor<2x24x20xbf16>) -> tensor<2x24x20xf32>
// CHECK-NEXT:     %5 = graph.tanh %4 : (tensor<2x24x20xf32>) -> tensor<2x24x20xf32>
// CHECK-NEXT:     %6 = graph.cast %5 : (tensor<2x24x20xf32>) -> tensor<2x24x20xbf16>
// CHECK-NEXT:     %7 = graph.dot_general %6, %v {accumulator = f32, left_batch = array<i64: 0>, left_depth = array<i64: 2>, right_batch = array<i64: 0>, right_depth = array<i64: 1>, schedule = #loop.schedule<gpu>} : (tensor<2x24x20xbf16>, tensor<2x20x8xbf16>) -> tensor<2x24x8xf32>
// CHECK-NEXT:     %y = graph.cast %7 : (tensor<2x24x8xf32>) -> tensor<2x24x8xbf16>
// CHECK-NEXT:     return %y : tensor<2x24x8xbf16>
// CHECK-NEXT:   }
// CHECK-NEXT: }
