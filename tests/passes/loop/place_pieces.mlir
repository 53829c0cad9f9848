// The pass place-pieces: %t and %v are computed where they lie in the joined arrays; %u, which is
// read in another order, and what is copied of an argument are not.
// RUN: --place-pieces
// VALUES: place-pieces

func.func @main(%x: tensor<[8] x f32, strides [1]>, %w: tensor<[8, 2] x f32, strides [2, 1]>) -> (tensor<[4, 8] x f32, strides [8, 1]>, tensor<[8] x f32, strides [1]>, tensor<[8, 4] x f32, strides [4, 1]>) attributes {level = "loop"} {
  %t = loop.compute par(i0: 8) -> map {
    %0 = loop.read %x[i0] : f32
    %1 = arith.negf %0 : f32
    loop.yield %1
  } : tensor<[8] x f32, strides [1]>
  %u = loop.compute par(i0: 8, i1: 2) -> map {
    %0 = loop.read %w[i0, i1] : f32
    %1 = loop.read %t[i0] : f32
    %2 = arith.addf %0, %1 : f32
    loop.yield %2
  } : tensor<[8, 2] x f32, strides [2, 1]>
  %p = loop.compute par(i0: 1, i1: 8) -> map {
    %0 = loop.read %t[i1] : f32
    loop.yield %0
  } : tensor<[1, 8] x f32, strides [8, 1]>
  %q = loop.compute par(i0: 1, i1: 8) -> map {
    %0 = loop.read %x[i1] : f32
    loop.yield %0
  } : tensor<[1, 8] x f32, strides [8, 1]>
  %r = loop.compute par(i0: 2, i1: 8) -> map {
    %0 = loop.read %u[i1, i0] : f32
    loop.yield %0
  } : tensor<[2, 8] x f32, strides [8, 1]>
  %v = loop.compute par(i0: 8, i1: 2) -> map {
    %0 = loop.read %w[i0, i1] : f32
    %1 = arith.mulf %0, %0 : f32
    loop.yield %1
  } : tensor<[8, 2] x f32, strides [2, 1]>
  %s = loop.compute par(i0: 8, i1: 2) -> map {
    %0 = loop.read %v[i0, i1] : f32
    loop.yield %0
  } : tensor<[8, 2] x f32, strides [4, 1]>
  %e = loop.compute par(i0: 8, i1: 2) -> map {
    %0 = loop.read %w[i0, -i1 + 1] : f32
    loop.yield %0
  } : tensor<[8, 2] x f32, strides [4, 1]>
  %a = layout.join %s, %e {dim = 1 : i64} : (tensor<[8, 2] x f32, strides [4, 1]>, tensor<[8, 2] x f32, strides [4, 1]>) -> tensor<[8, 4] x f32, strides [4, 1]>
  %y = layout.join %p, %q, %r {dim = 0 : i64} : (tensor<[1, 8] x f32, strides [8, 1]>, tensor<[1, 8] x f32, strides [8, 1]>, tensor<[2, 8] x f32, strides [8, 1]>) -> tensor<[4, 8] x f32, strides [8, 1]>
  %z = loop.compute par(i0: 8) -> map {
    %0 = loop.read %t[i0] : f32
    %1 = arith.addf %0, %0 : f32
    loop.yield %1
  } : tensor<[8] x f32, strides [1]>
  return %y, %z, %a : tensor<[4, 8] x f32, strides [8, 1]>, tensor<[8] x f32, strides [1]>, tensor<[8, 4] x f32, strides [4, 1]>
}

// CHECK: builtin.module {
// CHECK-NEXT:   func.func @main(%x: tensor<[8] x f32, strides [1]>, %w: tensor<[8, 2] x f32, strides [2, 1]>) -> (tensor<[4, 8] x f32, strides [8, 1]>, tensor<[8] x f32, strides [1]>, tensor<[8, 4] x f32, strides [4, 1]>) attributes {level = "loop"} {
// CHECK-NEXT:     %t = loop.compute par(i0: 8) -> map {
// CHECK-NEXT:       %0 = loop.read %x[i0] : f32
// CHECK-NEXT:       %1 = arith.negf %0 : f32
// CHECK-NEXT:       loop.yield %1
// CHECK-NEXT:     } : tensor<[8] x f32, strides [1]>
// CHECK-NEXT:     %u = loop.compute par(i0: 8, i1: 2) -> map {
// CHECK-NEXT:       %2 = loop.read %w[i0, i1] : f32
// CHECK-NEXT:       %3 = loop.read %t[i0] : f32
// CHECK-NEXT:       %4 = arith.addf %2, %3 : f32
// CHECK-NEXT:       loop.yield %4
// CHECK-NEXT:     } : tensor<[8, 2] x f32, strides [2, 1]>
// CHECK-NEXT:     %q = loop.compute par(i0: 1, i1: 8) -> map {
// CHECK-NEXT:       %5 = loop.read %x[i1] : f32
// CHECK-NEXT:       loop.yield %5
// CHECK-NEXT:     } : tensor<[1, 8] x f32, strides [8, 1]>
// CHECK-NEXT:     %r = loop.compute par(i0: 2, i1: 8) -> map {
// CHECK-NEXT:       %6 = loop.read %u[i1, i0] : f32
// CHECK-NEXT:       loop.yield %6
// CHECK-NEXT:     } : tensor<[2, 8] x f32, strides [8, 1]>
// CHECK-NEXT:     %v = loop.compute par(i0: 8, i1: 2) -> map {
// CHECK-NEXT:       %7 = loop.read %w[i0, i1] : f32
// CHECK-NEXT:       %8 = arith.mulf %7, %7 : f32
// CHECK-NEXT:       loop.yield %8
// CHECK-NEXT:     } : tensor<[8, 2] x f32, strides [4, 1]>
// CHECK-NEXT:     %e = loop.compute par(i0: 8, i1: 2) -> map {
// CHECK-NEXT:       %9 = loop.read %w[i0, -i1 + 1] : f32
// CHECK-NEXT:       loop.yield %9
// CHECK-NEXT:     } : tensor<[8, 2] x f32, strides [4, 1]>
// CHECK-NEXT:     %a = layout.join %v, %e {dim = 1 : i64} : (tensor<[8, 2] x f32, strides [4, 1]>, tensor<[8, 2] x f32, strides [4, 1]>) -> tensor<[8, 4] x f32, strides [4, 1]>
// CHECK-NEXT:     %y = layout.join %t, %q, %r {dim = 0 : i64} : (tensor<[8] x f32, strides [1]>, tensor<[1, 8] x f32, strides [8, 1]>, tensor<[2, 8] x f32, strides [8, 1]>) -> tensor<[4, 8] x f32, strides [8, 1]>
// CHECK-NEXT:     %z = loop.compute par(i0: 8) -> map {
// CHECK-NEXT:       %10 = loop.read %t[i0] : f32
// CHECK-NEXT:       %11 = arith.addf %10, %10 : f32
// CHECK-NEXT:       loop.yield %11
// CHECK-NEXT:     } : tensor<[8] x f32, strides [1]>
// CHECK-NEXT:     return %y, %z, %a : tensor<[4, 8] x f32, strides [8, 1]>, tensor<[8] x f32, strides [1]>, tensor<[8, 4] x f32, strides [4, 1]>
// CHECK-NEXT:   }
// CHECK-NEXT: }
