// The pass inline-computes: the exponential is read once, by the sum, and moves into it.
// RUN: --inline-computes --target=avx512
// VALUES: inline-computes

func.func @main(%x: tensor<[4, 6] x f32, strides [6, 1]>) -> tensor<[4] x f32, strides [1]> attributes {level = "loop"} {
  %e = loop.compute par(i0: 4, i1: 6) -> map {
    %a = loop.read %x[i0, i1] : f32
    %b = math.exp %a : f32
    loop.yield %b
  } : tensor<[4, 6] x f32, strides [6, 1]>
  %s = loop.compute par(i0: 4) red(i1: 6) -> reduce(sum, f32) {
    %c = loop.read %e[i0, i1] : f32
    loop.yield %c
  } : tensor<[4] x f32, strides [1]>
  return %s : tensor<[4] x f32, strides [1]>
}

// CHECK: builtin.module attributes {irc.target = #irc.target<avx512>} {
// CHECK-NEXT:   func.func @main(%x: tensor<[4, 6] x f32, strides [6, 1]>) -> tensor<[4] x f32, strides [1]> attributes {level = "loop"} {
// CHECK-NEXT:     %s = loop.compute par(i0: 4) red(i1: 6) -> reduce(sum, f32) {
// CHECK-NEXT:       %0 = loop.read %x[i0, i1] : f32
// CHECK-NEXT:       %c = math.exp %0 : f32
// CHECK-NEXT:       loop.yield %c
// CHECK-NEXT:     } : tensor<[4] x f32, strides [1]>
// CHECK-NEXT:     return %s : tensor<[4] x f32, strides [1]>
// CHECK-NEXT:   }
// CHECK-NEXT: }
