// The pass stream-softmaxes: the sum of powers divides behind the second product; what else is known
// of a row is made of its maximum and that sum.
// RUN: --stream-softmaxes --canonicalize
// VALUES: stream-softmaxes

builtin.module attributes {irc.target = #irc.target<sm_90>} {
  func.func @main(%q: tensor<2x20x16xbf16>, %k: tensor<2x16x24xbf16>, %v: tensor<2x24x8xbf16>) -> (tensor<2x20x8xbf16>, tensor<2x20x1xf32>) attributes {level = "graph"} {
    %s = graph.call_aten %q, %k {arguments = {mat2 = #aten.operand<1>, self = #aten.operand<0>}, callee = "aten.bmm.default", eager_strides = [#sym.dims<[480, 24, 1]>], operand_strides = [#sym.dims<[320, 16, 1]>, #sym.dims<[384, 24, 1]>]} : (tensor<2x20x16xbf16>, tensor<2x16x24xbf16>) -> tensor<2x20x24xbf16>
    %w = graph.cast %s : (tensor<2x20x24xbf16>) -> tensor<2x20x24xf32>
    %x = graph.tanh %w : (tensor<2x20x24xf32>) -> tensor<2x20x24xf32>
    %m = graph.reduce %x {combiner = "max", dims = array<i64: 2>, keepdim} : (tensor<2x20x24xf32>) -> tensor<2x20x1xf32>
    %b = graph.broadcast %m {dims = array<i64: 0, 1, 2>} : (tensor<2x20x1xf32>) -> tensor<2x20x24xf32>
    %g = graph.sub %x, %b : (tensor<2x20x24xf32>, tensor<2x20x24xf32>) -> tensor<2x20x24xf32>
    %e = graph.exp %g {nonpositive} : (tensor<2x20x24xf32>) -> tensor<2x20x24xf32>
    %t = graph.reduce %e {combiner = "sum", dims = array<i64: 2>, keepdim} : (tensor<2x20x24xf32>) -> tensor<2x20x1xf32>
    %u = graph.broadcast %t {dims = array<i64: 0, 1, 2>} : (tensor<2x20x1xf32>) -> tensor<2x20x24xf32>
    %d = graph.div %e, %u : (tensor<2x20x24xf32>, tensor<2x20x24xf32>) -> tensor<2x20x24xf32>
    %p = graph.cast %d : (tensor<2x20x24xf32>) -> tensor<2x20x24xbf16>
    %y = graph.call_aten %p, %v {arguments = {mat2 = #aten.operand<1>, self = #aten.operand<0>}, callee = "aten.bmm.default", eager_strides = [#sym.dims<[160, 8, 1]>], operand_strides = [#sym.dims<[480, 24, 1]>, #sym.dims<[192, 8, 1]>]} : (tensor<2x20x24xbf16>, tensor<2x24x8xbf16>) -> tensor<2x20x8xbf16>
    return %y, %m : tensor<2x20x8xbf16>, tensor<2x20x1xf32>
  }
}

// CHECK: builtin.module attributes {irc.target = #irc.target<sm_90>} {
// CHECK-NEXT:   func.func @main(%q: tensor<2x20x16xbf16>, %k: tensor<2x16x24xbf16>, %v: tensor<2x24x8xbf16>) -> (tensor<2x20x8xbf16>, tensor<2x20x1xf32>) attributes {level = "graph"} {
// CHECK-NEXT:     %0 = graph.dot_general %q, %k {accumulator = f32, left_batch = array<i64: 0>, left_depth = array<i64: 2>, right_batch = array<i64: 0>, right_depth = array<i64: 1>, schedule = #loop.schedule<gpu>} : (tensor<2x20x16xbf16>, tensor<2x16x24xbf16>) -> tensor<2x20x24xf32>
// CHECK-NEXT:     %s = graph.cast %0 : (tensor<2x20x24xf32>) -> tensor<2x20x24xbf16>
// CHECK-NEXT:     %w = graph.cast %s : (tensor<2x20x24xbf16>) -> tensor<2x20x24xf32>
// CHECK-NEXT:     %x = graph.tanh %w : (tensor<2x20x24xf32>) -> tensor<2x20x24xf32>
// CHECK-NEXT:     %m = graph.reduce %x {combiner = "max", dims = array<i64: 2>, keepdim} : (tensor<2x20x24xf32>) -> tensor<2x20x1xf32>
// CHECK-NEXT:     %1 = graph.full {value = 0xFF800000 : f32} : tensor<2x20x1xf32>
// CHECK-NEXT:     %2 = graph.eq %m, %1 : (tensor<2x20x1xf32>, tensor<2x20x1xf32>) -> tensor<2x20x1xi1>
// CHECK-NEXT:     %3 = graph.full {value = 0.0 : f32} : tensor<2x20x1xf32>
// CHECK-NEXT:     %4 = graph.select %2, %3, %m : (tensor<2x20x1xi1>, tensor<2x20x1xf32>, tensor<2x20x1xf32>) -> tensor<2x20x1xf32>
// CHECK-NEXT:     %5 = graph.broadcast %4 {dims = array<i64: 0, 1, 2>} : (tensor<2x20x1xf32>) -> tensor<2x20x24xf32>
// CHECK-NEXT:     %6 = graph.sub %x, %5 : (tensor<2x20x24xf32>, tensor<2x20x24xf32>) -> tensor<2x20x24xf32>
// CHECK-NEXT:     %7 = graph.exp %6 {nonpositive} : (tensor<2x20x24xf32>) -> tensor<2x20x24xf32>
// CHECK-NEXT:     %t = graph.reduce %7 {combiner = "sum", dims = array<i64: 2>, keepdim} : (tensor<2x20x24xf32>) -> tensor<2x20x1xf32>
// CHECK-NEXT:     %8 = graph.cast %7 : (tensor<2x20x24xf32>) -> tensor<2x20x24xbf16>
// CHECK-NEXT:     %9 = graph.dot_general %8, %v {accumulator = f32, left_batch = array<i64: 0>, left_depth = array<i64: 2>, right_batch = array<i64: 0>, right_depth = array<i64: 1>, schedule = #loop.schedule<gpu>} : (tensor<2x20x24xbf16>, tensor<2x24x8xbf16>) -> tensor<2x20x8xf32>
// CHECK-NEXT:     %10 = graph.broadcast %t {dims = array<i64: 0, 1, 2>} : (tensor<2x20x1xf32>) -> tensor<2x20x8xf32>
// CHECK-NEXT:     %11 = graph.div %9, %10 : (tensor<2x20x8xf32>, tensor<2x20x8xf32>) -> tensor<2x20x8xf32>
// CHECK-NEXT:     %y = graph.cast %11 : (tensor<2x20x8xf32>) -> tensor<2x20x8xbf16>
// CHECK-NEXT:     return %y, %m : tensor<2x20x8xbf16>, tensor<2x20x1xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
