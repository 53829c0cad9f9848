// The parts of a sum in a group move out of it, and with them the array that they store as well.
// RUN: --split-reductions='min_points=512 parts=4' --target=avx512
// VALUES: split-reductions{min_points=512 parts=4}

func.func @main(%x: tensor<[64, 32] x f32, strides [32, 1]>) -> (tensor<[64, 32] x f32, strides [32, 1]>, tensor<[] x f32, strides []>) attributes {level = "loop"} {
  %y, %r = loop.group () {
    %n, %s = loop.compute red(i0: 64, i1: 32) -> map, reduce(sum, f32) {
      %a = loop.read %x[i0, i1] : f32
      %b = arith.negf %a : f32
      loop.yield %b, %b
    } : tensor<[64, 32] x f32, strides [32, 1]>, tensor<[] x f32, strides []>
    %q = loop.compute -> map {
      %c = loop.read %s[] : f32
      %d = math.exp %c : f32
      loop.yield %d
    } : tensor<[] x f32, strides []>
    loop.yield %n, %q
  } : tensor<[64, 32] x f32, strides [32, 1]>, tensor<[] x f32, strides []>
  return %y, %r : tensor<[64, 32] x f32, strides [32, 1]>, tensor<[] x f32, strides []>
}

// CHECK: builtin.module attributes {irc.target = #irc.target<avx512>} {
// CHECK-NEXT:   func.func @main(%x: tensor<[64, 32] x f32, strides [32, 1]>) -> (tensor<[64, 32] x f32, strides [32, 1]>, tensor<[] x f32, strides []>) attributes {level = "loop"} {
// CHECK-NEXT:     %n, %0 = loop.compute par(i0: 64) red(i1: 32) -> map, reduce(sum, f32) {
// CHECK-NEXT:       %a = loop.read %x[i0, i1] : f32
// CHECK-NEXT:       %b = arith.negf %a : f32
// CHECK-NEXT:       loop.yield %b, %b
// CHECK-NEXT:     } : tensor<[64, 32] x f32, strides [32, 1]>, tensor<[64] x f32, strides [1]>
// CHECK-NEXT:     %r = loop.group () {
// CHECK-NEXT:       %s = loop.compute red(i0: 64) -> reduce(sum, f32) {
// CHECK-NEXT:         %1 = loop.read %0[i0] : f32
// CHECK-NEXT:         loop.yield %1
// CHECK-NEXT:       } : tensor<[] x f32, strides []>
// CHECK-NEXT:       %q = loop.compute -> map {
// CHECK-NEXT:         %c = loop.read %s[] : f32
// CHECK-NEXT:         %d = math.exp %c : f32
// CHECK-NEXT:         loop.yield %d
// CHECK-NEXT:       } : tensor<[] x f32, strides []>
// CHECK-NEXT:       loop.yield %q
// CHECK-NEXT:     } : tensor<[] x f32, strides []>
// CHECK-NEXT:     return %n, %r : tensor<[64, 32] x f32, strides [32, 1]>, tensor<[] x f32, strides []>
// CHECK-NEXT:   }
// CHECK-NEXT: }
