// The pass group-computes: the quotients of a row need that row's exponentials and sum only, so both
// computes share the axis of the rows.
// RUN: --group-computes --target=avx512
// VALUES: group-computes

func.func @main(%x: tensor<[4, 6] x f32, strides [6, 1]>) -> tensor<[4, 6] x f32, strides [6, 1]> attributes {level = "loop"} {
  %e, %s = loop.compute par(i0: 4) red(i1: 6) -> map, reduce(sum, f32) {
    %a = loop.read %x[i0, i1] : f32
    %b = math.exp %a : f32
    loop.yield %b, %b
  } : tensor<[4, 6] x f32, strides [6, 1]>, tensor<[4] x f32, strides [1]>
  %y = loop.compute par(i0: 4, i1: 6) -> map {
    %d = loop.read %e[i0, i1] : f32
    %f = loop.read %s[i0] : f32
    %g = arith.divf %d, %f : f32
    loop.yield %g
  } : tensor<[4, 6] x f32, strides [6, 1]>
  return %y : tensor<[4, 6] x f32, strides [6, 1]>
}

// CHECK: builtin.module attributes {irc.target = #irc.target<avx512>} {
// CHECK-NEXT:   func.func @main(%x: tensor<[4, 6] x f32, strides [6, 1]>) -> tensor<[4, 6] x f32, strides [6, 1]> attributes {level = "loop"} {
// CHECK-NEXT:     %y = loop.group (i0: 4) {
// CHECK-NEXT:       %e, %s = loop.compute par(i0: 4) red(i1: 6) -> map, reduce(sum, f32) {
// CHECK-NEXT:         %a = loop.read %x[i0, i1] : f32
// CHECK-NEXT:         %b = math.exp %a : f32
// CHECK-NEXT:         loop.yield %b, %b
// CHECK-NEXT:       } : tensor<[4, 6] x f32, strides [6, 1]>, tensor<[4] x f32, strides [1]>
// CHECK-NEXT:       %y_0 = loop.compute par(i0: 4, i1: 6) -> map {
// CHECK-NEXT:         %d = loop.read %e[i0, i1] : f32
// CHECK-NEXT:         %f = loop.read %s[i0] : f32
// CHECK-NEXT:         %g = arith.divf %d, %f : f32
// CHECK-NEXT:         loop.yield %g
// CHECK-NEXT:       } : tensor<[4, 6] x f32, strides [6, 1]>
// CHECK-NEXT:       loop.yield %y_0
// CHECK-NEXT:     } : tensor<[4, 6] x f32, strides [6, 1]>
// CHECK-NEXT:     return %y : tensor<[4, 6] x f32, strides [6, 1]>
// CHECK-NEXT:   }
// CHECK-NEXT: }
