// The pass stream-attention: a query of each of four heads, two of which share keys, is streamed with
// its bias; of many heads that share none it stays the library's.
// RUN: --stream-attention --dce
// VALUES: stream-attention

builtin.module attributes {irc.target = #irc.target<sm_90>} {
  func.func @main(%q: tensor<1x4x1x16xbf16>, %k: tensor<1x2x2048x16xbf16>, %v: tensor<1x2x2048x16xbf16>, %b: tensor<1x1x1x2048xbf16>) -> tensor<1x4x1x16xbf16> attributes {level = "graph"} {
    %k5 = graph.reshape %k : (tensor<1x2x2048x16xbf16>) -> tensor<1x2x1x2048x16xbf16>
    %kw = graph.broadcast %k5 {dims = array<i64: 0, 1, 2, 3, 4>} : (tensor<1x2x1x2048x16xbf16>) -> tensor<1x2x2x2048x16xbf16>
    %k4 = graph.reshape %kw : (tensor<1x2x2x2048x16xbf16>) -> tensor<1x4x2048x16xbf16>
    %v5 = graph.reshape %v : (tensor<1x2x2048x16xbf16>) -> tensor<1x2x1x2048x16xbf16>
    %vw = graph.broadcast %v5 {dims = array<i64: 0, 1, 2, 3, 4>} : (tensor<1x2x1x2048x16xbf16>) -> tensor<1x2x2x2048x16xbf16>
    %v4 = graph.reshape %vw : (tensor<1x2x2x2048x16xbf16>) -> tensor<1x4x2048x16xbf16>
    %bw = graph.broadcast %b {dims = array<i64: 0, 1, 2, 3>} : (tensor<1x1x1x2048xbf16>) -> tensor<1x4x1x2048xbf16>
    %y, %l, %s, %o = graph.call_aten %q, %k4, %v4, %bw {arguments = {attn_bias = #aten.operand<3>, compute_log_sumexp = false, key = #aten.operand<1>, query = #aten.operand<0>, value = #aten.operand<2>}, callee = "aten._scaled_dot_product_efficient_attention.default"} : (tensor<1x4x1x16xbf16>, tensor<1x4x2048x16xbf16>, tensor<1x4x2048x16xbf16>, tensor<1x4x1x2048xbf16>) -> (tensor<1x4x1x16xbf16>, tensor<1x4x0xf32>, tensor<i64>, tensor<i64>)
    return %y : tensor<1x4x1x16xbf16>
  }
  func.func @kept(%q: tensor<16x9x1x16xbf16>, %k: tensor<16x9x2048x16xbf16>, %v: tensor<16x9x2048x16xbf16>) -> tensor<16x9x1x16xbf16> attributes {level = "graph"} {
    %y, %l, %s, %o = graph.call_aten %q, %k, %v {arguments = {attn_bias = #aten.none, compute_log_sumexp = false, key = #aten.operand<1>, query = #aten.operand<0>, value = #aten.operand<2>}, callee = "aten._scaled_dot_product_efficient_attention.default"} : (tensor<16x9x1x16xbf16>, tensor<16x9x2048x16xbf16>, tensor<16x9x2048x16xbf16>) -> (tensor<16x9x1x16xbf16>, tensor<16x9x0xf32>, tensor<i64>, tensor<i64>)
    return %y : tensor<16x9x1x16xbf16>
  }
}

// CHECK: builtin.module attributes {irc.target = #irc.target<sm_90>} {
// CHECK-NEXT:   func.func @main(%q: tensor<1x4x1x16xbf16>, %k: tensor<1x2x2048x16xbf16>, %v: tensor<1x2x2048x16xbf16>, %b: tensor<1x1x1x2048xbf16>) -> tensor<1x4x1x16xbf16> attributes {level = "graph"} {
// CHECK-NEXT:     %k5 = graph.reshape %k : (tensor<1x2x2048x16xbf16>) -> tensor<1x2x1x2048x16xbf16>
// CHECK-NEXT:     %kw = graph.broadcast %k5 {dims = array<i64: 0, 1, 2, 3, 4>} : (tensor<1x2x1x2048x16xbf16>) -> tensor<1x2x2x2048x16xbf16>
// CHECK-NEXT:     %k4 = graph.reshape %kw : (tensor<1x2x2x2048x16xbf16>) -> tensor<1x4x2048x16xbf16>
// CHECK-NEXT:     %v5 = graph.reshape %v : (tensor<1x2x2048x16xbf16>) -> tensor<1x2x1x2048x16xbf16>
// CHECK-NEXT:     %vw = graph.broadcast %v5 {dims = array<i64: 0, 1, 2, 3, 4>} : (tensor<1x2x1x2048x16xbf16>) -> tensor<1x2x2x2048x16xbf16>
// CHECK-NEXT:     %v4 = graph.reshape %vw : (tensor<1x2x2x2048x16xbf16>) -> tensor<1x4x2048x16xbf16>
// CHECK-NEXT:     %bw = graph.broadcast %b {dims = array<i64: 0, 1, 2, 3>} : (tensor<1x1x1x2048xbf16>) -> tensor<1x4x1x2048xbf16>
// CHECK-NEXT:     %0 = graph.permute %k4 {permutation = array<i64: 0, 1, 3, 2>} : (tensor<1x4x2048x16xbf16>) -> tensor<1x4x16x2048xbf16>
// CHECK-NEXT:     %1 = graph.dot_general %q, %0 {accumulator = f32, left_batch = array<i64: 0, 1>, left_depth = array<i64: 3>, right_batch = array<i64: 0, 1>, right_depth = array<i64: 2>, schedule = #loop.schedule<gpu>} : (tensor<1x4x1x16xbf16>, tensor<1x4x16x2048xbf16>) -> tensor<1x4x1x2048xf32>
// CHECK-NEXT:     %2 = graph.full {value = 0.25 : f32} : tensor<1x4x1x2048xf32>
// CHECK-NEXT:     %3 = graph.mul %1, %2 : (tensor<1x4x1x2048xf32>, tensor<1x4x1x2048xf32>) -> tensor<1x4x1x2048xf32>
// CHECK-NEXT:     %4 = graph.cast %bw : (tensor<1x4x1x2048xbf16>) -> tensor<1x4x1x2048xf32>
// CHECK-NEXT:     %5 = graph.add %3, %4 : (tensor<1x4x1x2048xf32>, tensor<1x4x1x2048xf32>) -> tensor<1x4x1x2048xf32>
// CHECK-NEXT:     %6 = graph.reduce %5 {combiner = "max", dims = array<i64: 3>, keepdim} : (tensor<1x4x1x2048xf32>) -> tensor<1x4x1x1xf32>
// CHECK-NEXT:     %7 = graph.full {value = 0xFF800000 : f32} : tensor<1x4x1x1xf32>
// CHECK-NEXT:     %8 = graph.eq %6, %7 : (tensor<1x4x1x1xf32>, tensor<1x4x1x1xf32>) -> tensor<1x4x1x1xi1>
// CHECK-NEXT:     %9 = graph.full {value = 0.0 : f32} : tensor<1x4x1x1xf32>
// CHECK-NEXT:     %10 = graph.select %8, %9, %6 : (tensor<1x4x1x1xi1>, tensor<1x4x1x1xf32>, tensor<1x4x1x1xf32>) -> tensor<1x4x1x1xf32>
// CHECK-NEXT:     %11 = graph.broadcast %10 {dims = array<i64: 0, 1, 2, 3>} : (tensor<1x4x1x1xf32>) -> tensor<1x4x1x2048xf32>
// CHECK-NEXT:     %12 = graph.sub %5, %11 : (tensor<1x4x1x2048xf32>, tensor<1x4x1x2048xf32>) -> tensor<1x4x1x2048xf32>
// CHECK-NEXT:     %13 = graph.exp %12 {nonpositive} : (tensor<1x4x1x2048xf32>) -> tensor<1x4x1x2048xf32>
// CHECK-NEXT:     %14 = graph.reduce %13 {combiner = "sum", dims = array<i64: 3>, keepdim} : (tensor<1x4x1x2048xf32>) -> tensor<1x4x1x1xf32>
// CHECK-NEXT:     %15 = graph.cast %13 : (tensor<1x4x1x2048xf32>) -> tensor<1x4x1x2048xbf16>
// CHECK-NEXT:     %16 = graph.dot_general %15, %v4 {accumulator = f32, left_batch = array<i64: 0, 1>, left_depth = array<i64: 3>, right_batch = array<i64: 0, 1>, right_depth = array<i64: 2>, schedule = #loop.schedule<gpu>} : (tensor<1x4x1x2048xbf16>, tensor<1x4x2048x16xbf16>) -> tensor<1x4x1x16xf32>
// CHECK-NEXT:     %17 = graph.broadcast %14 {dims = array<i64: 0, 1, 2, 3>} : (tensor<1x4x1x1xf32>) -> tensor<1x4x1x16xf32>
// CHECK-NEXT:     %18 = graph.div %16, %17 : (tensor<1x4x1x16xf32>, tensor<1x4x1x16xf32>) -> tensor<1x4x1x16xf32>
// CHECK-NEXT:     %19 = graph.full {value = 0.0 : f32} : tensor<1x4x1x1xf32>
// CHECK-NEXT:     %20 = graph.eq %14, %19 : (tensor<1x4x1x1xf32>, tensor<1x4x1x1xf32>) -> tensor<1x4x1x1xi1>
// CHECK-NEXT:     %21 = graph.broadcast %20 {dims = array<i64: 0, 1, 2, 3>} : (tensor<1x4x1x1xi1>) -> tensor<1x4x1x16xi1>
// CHECK-NEXT:     %22 = graph.full {value = 0.0 : f32} : tensor<1x4x1x16xf32>
// CHECK-NEXT:     %23 = graph.select %21, %22, %18 : (tensor<1x4x1x16xi1>, tensor<1x4x1x16xf32>, tensor<1x4x1x16xf32>) -> tensor<1x4x1x16xf32>
// CHECK-NEXT:     %y = graph.cast %23 : (tensor<1x4x1x16xf32>) -> tensor<1x4x1x16xbf16>
// CHECK-NEXT:     return %y : tensor<1x4x1x16xbf16>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @kept(%q: tensor<16x9x1x16xbf16>, %k: tensor<16x9x2048x16xbf16>, %v: tensor<16x9x2048x16xbf16>) -> tensor<16x9x1x16xbf16> attributes {level = "graph"} {
// CHECK-NEXT:     %y, %l, %s, %o = graph.call_aten %q, %k, %v {arguments = {attn_bias = #aten.none, compute_log_sumexp = false, key = #aten.operand<1>, query = #aten.operand<0>, value = #aten.operand<2>}, callee = "aten._scaled_dot_product_efficient_attention.default"} : (tensor<16x9x1x16xbf16>, tensor<16x9x2048x16xbf16>, tensor<16x9x2048x16xbf16>) -> (tensor<16x9x1x16xbf16>, tensor<16x9x0xf32>, tensor<i64>, tensor<i64>)
// CHECK-NEXT:     return %y : tensor<16x9x1x16xbf16>
// CHECK-NEXT:   }
// CHECK-NEXT: }
