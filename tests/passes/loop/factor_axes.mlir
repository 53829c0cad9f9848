// The pass factor-axes: the sums over a flat axis of 12 are read as 3 by 4, so they are made as 3 by 4.
// RUN: --factor-axes --target=avx2
// VALUES: factor-axes

func.func @main(%x: tensor<[12, 8] x f32, strides [8, 1]>) -> tensor<[3, 4, 8] x f32, strides [32, 8, 1]> attributes {level = "loop"} {
  %s = loop.compute par(i0: 12) red(i1: 8) -> reduce(sum, f32) {
    %a = loop.read %x[i0, i1] : f32
    loop.yield %a
  } : tensor<[12] x f32, strides [1]>
  %y = loop.compute par(i0: 3, i1: 4, i2: 8) -> map {
    %b = loop.read %x[i0*4 + i1, i2] : f32
    %c = loop.read %s[i0*4 + i1] : f32
    %d = arith.subf %b, %c : f32
    loop.yield %d
  } : tensor<[3, 4, 8] x f32, strides [32, 8, 1]>
  return %y : tensor<[3, 4, 8] x f32, strides [32, 8, 1]>
}

// CHECK: builtin.module attributes {irc.target = #irc.target<avx2>} {
// CHECK-NEXT:   func.func @main(%x: tensor<[12, 8] x f32, strides [8, 1]>) -> tensor<[3, 4, 8] x f32, strides [32, 8, 1]> attributes {level = "loop"} {
// CHECK-NEXT:     %s = loop.compute par(i0: 3, i1: 4) red(i2: 8) -> reduce(sum, f32) {
// CHECK-NEXT:       %0 = loop.read %x[i0*4 + i1, i2] : f32
// CHECK-NEXT:       loop.yield %0
// CHECK-NEXT:     } : tensor<[3, 4] x f32, strides [4, 1]>
// CHECK-NEXT:     %y = loop.compute par(i0: 3, i1: 4, i2: 8) -> map {
// CHECK-NEXT:       %b = loop.read %x[i0*4 + i1, i2] : f32
// CHECK-NEXT:       %c = loop.read %s[i0, i1] : f32
// CHECK-NEXT:       %d = arith.subf %b, %c : f32
// CHECK-NEXT:       loop.yield %d
// CHECK-NEXT:     } : tensor<[3, 4, 8] x f32, strides [32, 8, 1]>
// CHECK-NEXT:     return %y : tensor<[3, 4, 8] x f32, strides [32, 8, 1]>
// CHECK-NEXT:   }
// CHECK-NEXT: }
