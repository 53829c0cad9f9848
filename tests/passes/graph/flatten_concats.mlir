// The pass flatten-concats: slices that were written one after another are one concatenation; what
// something else reads stays.
// RUN: --flatten-concats
// VALUES: flatten-concats

func.func @main(%p: tensor<2x3xf32>, %q: tensor<2x3xf32>, %r: tensor<4x3xf32>, %s: tensor<3x3xf32>) -> (tensor<8x3xf32>, tensor<8x3xf32>, tensor<8x3xf32>) attributes {level = "graph"} {
  %a = graph.concat %p, %q, %r {dim = 0 : i64} : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<8x3xf32>
  %b = graph.slice %a {dim = 0 : i64, start = #sym<0>, step = 1 : i64} : (tensor<8x3xf32>) -> tensor<3x3xf32>
  %c = graph.slice %a {dim = 0 : i64, start = #sym<6>, step = 1 : i64} : (tensor<8x3xf32>) -> tensor<2x3xf32>
  %y = graph.concat %b, %s, %c {dim = 0 : i64} : (tensor<3x3xf32>, tensor<3x3xf32>, tensor<2x3xf32>) -> tensor<8x3xf32>
  %d = graph.concat %r, %r {dim = 0 : i64} : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<8x3xf32>
  %e = graph.slice %d {dim = 0 : i64, start = #sym<3>, step = 1 : i64} : (tensor<8x3xf32>) -> tensor<5x3xf32>
  %z = graph.concat %e, %s {dim = 0 : i64} : (tensor<5x3xf32>, tensor<3x3xf32>) -> tensor<8x3xf32>
  return %y, %d, %z : tensor<8x3xf32>, tensor<8x3xf32>, tensor<8x3xf32>
}

// CHECK: builtin.module {
// CHECK-NEXT:   func.func @main(%p: tensor<2x3xf32>, %q: tensor<2x3xf32>, %r: tensor<4x3xf32>, %s: tensor<3x3xf32>) -> (tensor<8x3xf32>, tensor<8x3xf32>, tensor<8x3xf32>) attributes {level = "graph"} {
// CHECK-NEXT:     %0 = graph.slice %q {dim = 0 : i64, start = #sym<0>, step = 1 : i64} : (tensor<2x3xf32>) -> tensor<1x3xf32>
// CHECK-NEXT:     %1 = graph.slice %r {dim = 0 : i64, start = #sym<2>, step = 1 : i64} : (tensor<4x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT:     %y = graph.concat %p, %0, %s, %1 {dim = 0 : i64} : (tensor<2x3xf32>, tensor<1x3xf32>, tensor<3x3xf32>, tensor<2x3xf32>) -> tensor<8x3xf32>
// CHECK-NEXT:     %d = graph.concat %r, %r {dim = 0 : i64} : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<8x3xf32>
// CHECK-NEXT:     %e = graph.slice %d {dim = 0 : i64, start = #sym<3>, step = 1 : i64} : (tensor<8x3xf32>) -> tensor<5x3xf32>
// CHECK-NEXT:     %z = graph.concat %e, %s {dim = 0 : i64} : (tensor<5x3xf32>, tensor<3x3xf32>) -> tensor<8x3xf32>
// CHECK-NEXT:     return %y, %d, %z : tensor<8x3xf32>, tensor<8x3xf32>, tensor<8x3xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
