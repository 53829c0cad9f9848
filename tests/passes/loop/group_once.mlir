// The pass group-computes: the roots differ by column only, which inline-computes leaves: computed once.
// RUN: --inline-computes --group-computes --target=avx512
// VALUES: inline-computes,group-computes

func.func @main(%x: tensor<[40, 6] x f32, strides [6, 1]>, %variance: tensor<[6] x f32, strides [1]>) -> tensor<[40, 6] x f32, strides [6, 1]> attributes {level = "loop"} {
  %r = loop.compute par(i0: 6) -> map {
    %a = loop.read %variance[i0] : f32
    %b = math.absf %a : f32
    %c = math.sqrt %b : f32
    loop.yield %c
  } : tensor<[6] x f32, strides [1]>
  %y = loop.compute par(i0: 40, i1: 6) -> map {
    %a = loop.read %x[i0, i1] : f32
    %b = loop.read %r[i1] : f32
    %c = arith.mulf %a, %b : f32
    loop.yield %c
  } : tensor<[40, 6] x f32, strides [6, 1]>
  return %y : tensor<[40, 6] x f32, strides [6, 1]>
}

// CHECK: builtin.module attributes {irc.target = #irc.target<avx512>} {
// CHECK-NEXT:   func.func @main(%x: tensor<[40, 6] x f32, strides [6, 1]>, %variance: tensor<[6] x f32, strides [1]>) -> tensor<[40, 6] x f32, strides [6, 1]> attributes {level = "loop"} {
// CHECK-NEXT:     %y = loop.group (i0: 40, i1: 6) {
// CHECK-NEXT:       %r = loop.compute par(c0: 6) -> map {
// CHECK-NEXT:         %0 = loop.read %variance[c0] : f32
// CHECK-NEXT:         %1 = math.absf %0 : f32
// CHECK-NEXT:         %2 = math.sqrt %1 : f32
// CHECK-NEXT:         loop.yield %2
// CHECK-NEXT:       } : tensor<[6] x f32, strides [1]>
// CHECK-NEXT:       %y_0 = loop.compute par(i0: 40, i1: 6) -> map {
// CHECK-NEXT:         %a = loop.read %x[i0, i1] : f32
// CHECK-NEXT:         %b = loop.read %r[i1] : f32
// CHECK-NEXT:         %c = arith.mulf %a, %b : f32
// CHECK-NEXT:         loop.yield %c
// CHECK-NEXT:       } : tensor<[40, 6] x f32, strides [6, 1]>
// CHECK-NEXT:       loop.yield %y_0
// CHECK-NEXT:     } : tensor<[40, 6] x f32, strides [6, 1]>
// CHECK-NEXT:     return %y : tensor<[40, 6] x f32, strides [6, 1]>
// CHECK-NEXT:   }
// CHECK-NEXT: }
