// The pass localize: nobody reads the exponentials and the sums after the group, so it gives the
// quotients alone.
// RUN: --localize
// VALUES: localize

func.func @main(%x: tensor<[4, 6] x f32, strides [6, 1]>) -> tensor<[4, 6] x f32, strides [6, 1]> attributes {level = "loop"} {
  %all, %sums, %y = loop.group (i0: 4) {
    %e, %s = loop.compute par(i0: 4) red(i1: 6) -> map, reduce(sum, f32) {
      %a = loop.read %x[i0, i1] : f32
      %b = math.exp %a : f32
      loop.yield %b, %b
    } : tensor<[4, 6] x f32, strides [6, 1]>, tensor<[4] x f32, strides [1]>
    %q = loop.compute par(i0: 4, i1: 6) -> map {
      %d = loop.read %e[i0, i1] : f32
      %f = loop.read %s[i0] : f32
      %g = arith.divf %d, %f : f32
      loop.yield %g
    } : tensor<[4, 6] x f32, strides [6, 1]>
    loop.yield %e, %s, %q
  } : tensor<[4, 6] x f32, strides [6, 1]>, tensor<[4] x f32, strides [1]>, tensor<[4, 6] x f32, strides [6, 1]>
  return %y : tensor<[4, 6] x f32, strides [6, 1]>
}

// CHECK: builtin.module {
// CHECK-NEXT:   func.func @main(%x: tensor<[4, 6] x f32, strides [6, 1]>) -> tensor<[4, 6] x f32, strides [6, 1]> attributes {level = "loop"} {
// CHECK-NEXT:     %y = loop.group (i0: 4) {
// CHECK-NEXT:       %e, %s = loop.compute par(i0: 4) red(i1: 6) -> map, reduce(sum, f32) {
// CHECK-NEXT:         %a = loop.read %x[i0, i1] : f32
// CHECK-NEXT:         %b = math.exp %a : f32
// CHECK-NEXT:         loop.yield %b, %b
// CHECK-NEXT:       } : tensor<[4, 6] x f32, strides [6, 1]>, tensor<[4] x f32, strides [1]>
// CHECK-NEXT:       %q = loop.compute par(i0: 4, i1: 6) -> map {
// CHECK-NEXT:         %d = loop.read %e[i0, i1] : f32
// CHECK-NEXT:         %f = loop.read %s[i0] : f32
// CHECK-NEXT:         %g = arith.divf %d, %f : f32
// CHECK-NEXT:         loop.yield %g
// CHECK-NEXT:       } : tensor<[4, 6] x f32, strides [6, 1]>
// CHECK-NEXT:       loop.yield %q
// CHECK-NEXT:     } : tensor<[4, 6] x f32, strides [6, 1]>
// CHECK-NEXT:     return %y : tensor<[4, 6] x f32, strides [6, 1]>
// CHECK-NEXT:   }
// CHECK-NEXT: }
