// The pass split-reductions: a sum of 1024 elements in four parts, which are then combined. (Without
// the options only much larger ones are split.)
// RUN: --split-reductions='min_points=512 parts=4' --target=avx512
// VALUES: split-reductions{min_points=512 parts=4}

func.func @main(%x: tensor<[1024] x f32, strides [1]>) -> tensor<[] x f32, strides []> attributes {level = "loop"} {
  %s = loop.compute red(i0: 1024) -> reduce(sum, f32) {
    %a = loop.read %x[i0] : f32
    loop.yield %a
  } : tensor<[] x f32, strides []>
  return %s : tensor<[] x f32, strides []>
}

// CHECK: builtin.module attributes {irc.target = #irc.target<avx512>} {
// CHECK-NEXT:   func.func @main(%x: tensor<[1024] x f32, strides [1]>) -> tensor<[] x f32, strides []> attributes {level = "loop"} {
// CHECK-NEXT:     %0 = loop.compute par(i0: 4) red(i1: 256) -> reduce(sum, f32) {
// CHECK-NEXT:       %1 = loop.read %x[i0*256 + i1] : f32
// CHECK-NEXT:       loop.yield %1
// CHECK-NEXT:     } : tensor<[4] x f32, strides [1]>
// CHECK-NEXT:     %s = loop.compute red(i0: 4) -> reduce(sum, f32) {
// CHECK-NEXT:       %2 = loop.read %0[i0] : f32
// CHECK-NEXT:       loop.yield %2
// CHECK-NEXT:     } : tensor<[] x f32, strides []>
// CHECK-NEXT:     return %s : tensor<[] x f32, strides []>
// CHECK-NEXT:   }
// CHECK-NEXT: }
