// The pass merge-computes: the sum takes each exponential where it is made.
// RUN: --merge-computes --target=avx512
// VALUES: merge-computes

func.func @main(%x: tensor<[4, 6] x f32, strides [6, 1]>) -> tensor<[4, 6] x f32, strides [6, 1]> attributes {level = "loop"} {
  %e = loop.compute par(i0: 4, i1: 6) -> map {
    %a = loop.read %x[i0, i1] : f32
    %b = math.exp %a : f32
    loop.yield %b
  } : tensor<[4, 6] x f32, strides [6, 1]>
  %s = loop.compute par(i0: 4) red(i1: 6) -> reduce(sum, f32) {
    %c = loop.read %e[i0, i1] : f32
    loop.yield %c
  } : tensor<[4] x f32, strides [1]>
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
// CHECK-NEXT:     %e, %s = loop.compute par(i0: 4) red(i1: 6) -> map, reduce(sum, f32) {
// CHECK-NEXT:       %a = loop.read %x[i0, i1] : f32
// CHECK-NEXT:       %b = math.exp %a : f32
// CHECK-NEXT:       loop.yield %b, %b
// CHECK-NEXT:     } : tensor<[4, 6] x f32, strides [6, 1]>, tensor<[4] x f32, strides [1]>
// CHECK-NEXT:     %y = loop.compute par(i0: 4, i1: 6) -> map {
// CHECK-NEXT:       %d = loop.read %e[i0, i1] : f32
// CHECK-NEXT:       %f = loop.read %s[i0] : f32
// CHECK-NEXT:       %g = arith.divf %d, %f : f32
// CHECK-NEXT:       loop.yield %g
// CHECK-NEXT:     } : tensor<[4, 6] x f32, strides [6, 1]>
// CHECK-NEXT:     return %y : tensor<[4, 6] x f32, strides [6, 1]>
// CHECK-NEXT:   }
// CHECK-NEXT: }
