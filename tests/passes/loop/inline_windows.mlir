// The pass inline-computes: windows that overlap evaluate a map again at each element that they
// share, but only what differs along the windows: the scale of a channel is computed once.
// RUN: --inline-computes --target=avx512
// VALUES: inline-computes

func.func @main(%x: tensor<[2, 5, 4000] x f32, strides [20000, 4000, 1]>, %v: tensor<[5] x f32, strides [1]>, %w: tensor<[5] x f32, strides [1]>) -> tensor<[2, 5, 1999] x f32, strides [9995, 1999, 1]> attributes {level = "loop"} {
  %n = loop.compute par(i0: 2, i1: 5, i2: 4000) -> map {
    %a = loop.read %x[i0, i1, i2] : f32
    %b = loop.read %v[i1] : f32
    %c = math.absf %b : f32
    %e = arith.constant 1.0 : f32
    %d = arith.addf %c, %e : f32
    %r = math.rsqrt %d : f32
    %s = loop.read %w[i1] : f32
    %t = arith.mulf %r, %s : f32
    %u = arith.divf %t, %d : f32
    %y = arith.mulf %a, %u : f32
    loop.yield %y
  } : tensor<[2, 5, 4000] x f32, strides [20000, 4000, 1]>
  %m = loop.compute par(i0: 2, i1: 5, i2: 1999) red(i3: 3) -> reduce(max, f32) {
    %f = loop.read %n[i0, i1, i2*2 + i3] : f32
    loop.yield %f
  } : tensor<[2, 5, 1999] x f32, strides [9995, 1999, 1]>
  return %m : tensor<[2, 5, 1999] x f32, strides [9995, 1999, 1]>
}
// Here the exponential differs along the windows, and stays a kernel of its own.
func.func @other(%x: tensor<[2, 5, 4000] x f32, strides [20000, 4000, 1]>) -> tensor<[2, 5, 1999] x f32, strides [9995, 1999, 1]> attributes {level = "loop"} {
  %n = loop.compute par(i0: 2, i1: 5, i2: 4000) -> map {
    %a = loop.read %x[i0, i1, i2] : f32
    %b = math.exp %a : f32
    loop.yield %b
  } : tensor<[2, 5, 4000] x f32, strides [20000, 4000, 1]>
  %m = loop.compute par(i0: 2, i1: 5, i2: 1999) red(i3: 3) -> reduce(max, f32) {
    %f = loop.read %n[i0, i1, i2*2 + i3] : f32
    loop.yield %f
  } : tensor<[2, 5, 1999] x f32, strides [9995, 1999, 1]>
  return %m : tensor<[2, 5, 1999] x f32, strides [9995, 1999, 1]>
}

// CHECK: builtin.module attributes {irc.target = #irc.target<avx512>} {
// CHECK-NEXT:   func.func @main(%x: tensor<[2, 5, 4000] x f32, strides [20000, 4000, 1]>, %v: tensor<[5] x f32, strides [1]>, %w: tensor<[5] x f32, strides [1]>) -> tensor<[2, 5, 1999] x f32, strides [9995, 1999, 1]> attributes {level = "loop"} {
// CHECK-NEXT:     %m = loop.compute par(i0: 2, i1: 5, i2: 1999) red(i3: 3) -> reduce(max, f32) {
// CHECK-NEXT:       %0 = loop.read %x[i0, i1, i2*2 + i3] : f32
// CHECK-NEXT:       %1 = loop.read %v[i1] : f32
// CHECK-NEXT:       %2 = math.absf %1 : f32
// CHECK-NEXT:       %3 = arith.constant 1.0 : f32
// CHECK-NEXT:       %4 = arith.addf %2, %3 : f32
// CHECK-NEXT:       %5 = math.rsqrt %4 : f32
// CHECK-NEXT:       %6 = loop.read %w[i1] : f32
// CHECK-NEXT:       %7 = arith.mulf %5, %6 : f32
// CHECK-NEXT:       %8 = arith.divf %7, %4 : f32
// CHECK-NEXT:       %f = arith.mulf %0, %8 : f32
// CHECK-NEXT:       loop.yield %f
// CHECK-NEXT:     } : tensor<[2, 5, 1999] x f32, strides [9995, 1999, 1]>
// CHECK-NEXT:     return %m : tensor<[2, 5, 1999] x f32, strides [9995, 1999, 1]>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @other(%x: tensor<[2, 5, 4000] x f32, strides [20000, 4000, 1]>) -> tensor<[2, 5, 1999] x f32, strides [9995, 1999, 1]> attributes {level = "loop"} {
// CHECK-NEXT:     %m = loop.compute par(i0: 2, i1: 5, i2: 1999) red(i3: 3) -> reduce(max, f32) {
// CHECK-NEXT:       %0 = loop.read %x[i0, i1, i2*2 + i3] : f32
// CHECK-NEXT:       %f = math.exp %0 : f32
// CHECK-NEXT:       loop.yield %f
// CHECK-NEXT:     } : tensor<[2, 5, 1999] x f32, strides [9995, 1999, 1]>
// CHECK-NEXT:     return %m : tensor<[2, 5, 1999] x f32, strides [9995, 1999, 1]>
// CHECK-NEXT:   }
// CHECK-NEXT: }
