// The pass convert-to-loop: the parts of a softmax as computes over named axes.
// RUN: --convert-to-loop --target=avx512
// VALUES: convert-to-loop

func.func @main(%x: tensor<[4, 6] x f32, strides [6, 1]>) -> tensor<[4, 6] x f32, strides [6, 1]> attributes {level = "layout"} {
  %e = graph.exp %x : (tensor<[4, 6] x f32, strides [6, 1]>) -> tensor<[4, 6] x f32, strides [6, 1]>
  %s = graph.reduce %e {combiner = "sum", dims = array<i64: 1>} : (tensor<[4, 6] x f32, strides [6, 1]>) -> tensor<[4] x f32, strides [1]>
  %b = graph.broadcast %s {dims = array<i64: 0>, view} : (tensor<[4] x f32, strides [1]>) -> tensor<[4, 6] x f32, strides [1, 0]>
  %y = graph.div %e, %b : (tensor<[4, 6] x f32, strides [6, 1]>, tensor<[4, 6] x f32, strides [1, 0]>) -> tensor<[4, 6] x f32, strides [6, 1]>
  return %y : tensor<[4, 6] x f32, strides [6, 1]>
}

// CHECK: builtin.module attributes {irc.target = #irc.target<avx512>} {
// CHECK-NEXT:   func.func @main(%x: tensor<[4, 6] x f32, strides [6, 1]>) -> tensor<[4, 6] x f32, strides [6, 1]> attributes {level = "loop"} {
// CHECK-NEXT:     %e = loop.compute par(i0: 4, i1: 6) -> map {
// CHECK-NEXT:       %0 = loop.read %x[i0, i1] : f32
// CHECK-NEXT:       %1 = math.exp %0 : f32
// CHECK-NEXT:       loop.yield %1
// CHECK-NEXT:     } : tensor<[4, 6] x f32, strides [6, 1]>
// CHECK-NEXT:     %s = loop.compute par(i0: 4) red(i1: 6) -> reduce(sum, f32) {
// CHECK-NEXT:       %2 = loop.read %e[i0, i1] : f32
// CHECK-NEXT:       loop.yield %2
// CHECK-NEXT:     } : tensor<[4] x f32, strides [1]>
// CHECK-NEXT:     %b = loop.compute par(i0: 4, i1: 6) -> map {
// CHECK-NEXT:       %3 = loop.read %s[i0] : f32
// CHECK-NEXT:       loop.yield %3
// CHECK-NEXT:     } : tensor<[4, 6] x f32, strides [6, 1]>
// CHECK-NEXT:     %y = loop.compute par(i0: 4, i1: 6) -> map {
// CHECK-NEXT:       %4 = loop.read %e[i0, i1] : f32
// CHECK-NEXT:       %5 = loop.read %b[i0, i1] : f32
// CHECK-NEXT:       %6 = arith.divf %4, %5 : f32
// CHECK-NEXT:       loop.yield %6
// CHECK-NEXT:     } : tensor<[4, 6] x f32, strides [6, 1]>
// CHECK-NEXT:     return %y : tensor<[4, 6] x f32, strides [6, 1]>
// CHECK-NEXT:   }
// CHECK-NEXT: }
