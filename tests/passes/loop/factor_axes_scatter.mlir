// The pass factor-axes: what is scattered is read at the row and the column of a flat axis, to which
// no place refers, so that axis is two. The places and the mask stay as they are.
// RUN: --factor-axes --target=avx2
// VALUES: factor-axes

func.func @main(%x: tensor<[5, 3, 4] x f32, strides [12, 4, 1]>, %p: tensor<[5, 12] x i64, strides [12, 1]>, %init: tensor<[5, 9] x f32, strides [9, 1]>) -> tensor<[5, 9] x f32, strides [9, 1]> attributes {level = "loop"} {
  %y = loop.compute par(i0: 12, i1: 5) inits(%init) -> scatter(sum, [i1, _0]) {
    %a = loop.read %x[i1, floordiv(i0, 4), mod(i0, 4)] : f32
    %i = loop.read %p[i1, i0] : i64
    %n = arith.constant 9 : i64
    %r = arith.remsi %i, %n : i64
    %z = arith.constant 0 : i64
    %m = arith.cmpi sge, %r, %z : i64
    %k = arith.index_cast %r : i64 to index
    loop.yield %a extra(%k) masks(%m)
  } : tensor<[5, 9] x f32, strides [9, 1]>
  return %y : tensor<[5, 9] x f32, strides [9, 1]>
}

// CHECK: builtin.module attributes {irc.target = #irc.target<avx2>} {
// CHECK-NEXT:   func.func @main(%x: tensor<[5, 3, 4] x f32, strides [12, 4, 1]>, %p: tensor<[5, 12] x i64, strides [12, 1]>, %init: tensor<[5, 9] x f32, strides [9, 1]>) -> tensor<[5, 9] x f32, strides [9, 1]> attributes {level = "loop"} {
// CHECK-NEXT:     %y = loop.compute par(i0: 3, i1: 4, i2: 5) inits(%init) -> scatter(sum, [i2, _0]) {
// CHECK-NEXT:       %0 = loop.read %x[i2, i0, i1] : f32
// CHECK-NEXT:       %1 = loop.read %p[i2, i0*4 + i1] : i64
// CHECK-NEXT:       %2 = arith.constant 9 : i64
// CHECK-NEXT:       %3 = arith.remsi %1, %2 : i64
// CHECK-NEXT:       %4 = arith.constant 0 : i64
// CHECK-NEXT:       %5 = arith.cmpi sge, %3, %4 : i64
// CHECK-NEXT:       %6 = arith.index_cast %3 : i64 to index
// CHECK-NEXT:       loop.yield %0 extra(%6) masks(%5)
// CHECK-NEXT:     } : tensor<[5, 9] x f32, strides [9, 1]>
// CHECK-NEXT:     return %y : tensor<[5, 9] x f32, strides [9, 1]>
// CHECK-NEXT:   }
// CHECK-NEXT: }
