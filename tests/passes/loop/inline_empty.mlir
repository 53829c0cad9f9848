// The pass inline-computes: a map without points costs nothing, whoever reads it: what has no points either, or under a mask.
// RUN: --inline-computes --target=avx512
// VALUES: inline-computes

func.func @main(%x: tensor<[0] x f32, strides [1]>, %y: tensor<[0] x f32, strides [1]>, %z: tensor<[3] x f32, strides [1]>) -> (tensor<[0, 1] x f32, strides [1, 1]>, tensor<[3] x f32, strides [1]>) attributes {level = "loop"} {
  %m = loop.compute par(i0: 0) red(i1: 4) -> reduce(sum, f32) {
    %n = loop.read %x[i0] : f32
    loop.yield %n
  } : tensor<[0] x f32, strides [1]>
  %e = loop.compute par(i0: 0) -> map {
    %a = loop.read %m[i0] : f32
    %b = loop.read %y[i0] : f32
    %o = arith.mulf %a, %b : f32
    %c = math.tanh %o : f32
    loop.yield %c
  } : tensor<[0] x f32, strides [1]>
  %s = loop.compute par(i0: 0, i1: 1) -> map {
    %d = loop.read %e[0] : f32
    loop.yield %d
  } : tensor<[0, 1] x f32, strides [1, 1]>
  %f = loop.compute par(i0: 0) -> map {
    %a = loop.read %m[i0] : f32
    %h = loop.read %y[i0] : f32
    %p = arith.divf %a, %h : f32
    %i = math.tanh %p : f32
    loop.yield %i
  } : tensor<[0] x f32, strides [1]>
  %t = loop.compute par(i0: 3) -> map {
    %j = loop.read %z[i0] : f32
    %k = arith.cmpf one, %j, %j : f32
    %l = loop.read %f[i0] (where %k else %j) : f32
    loop.yield %l
  } : tensor<[3] x f32, strides [1]>
  return %s, %t : tensor<[0, 1] x f32, strides [1, 1]>, tensor<[3] x f32, strides [1]>
}

// CHECK: builtin.module attributes {irc.target = #irc.target<avx512>} {
// CHECK-NEXT:   func.func @main(%x: tensor<[0] x f32, strides [1]>, %y: tensor<[0] x f32, strides [1]>, %z: tensor<[3] x f32, strides [1]>) -> (tensor<[0, 1] x f32, strides [1, 1]>, tensor<[3] x f32, strides [1]>) attributes {level = "loop"} {
// CHECK-NEXT:     %m = loop.compute par(i0: 0) red(i1: 4) -> reduce(sum, f32) {
// CHECK-NEXT:       %n = loop.read %x[i0] : f32
// CHECK-NEXT:       loop.yield %n
// CHECK-NEXT:     } : tensor<[0] x f32, strides [1]>
// CHECK-NEXT:     %s = loop.compute par(i0: 0, i1: 1) -> map {
// CHECK-NEXT:       %0 = loop.read %m[0] : f32
// CHECK-NEXT:       %1 = loop.read %y[0] : f32
// CHECK-NEXT:       %2 = arith.mulf %0, %1 : f32
// CHECK-NEXT:       %d = math.tanh %2 : f32
// CHECK-NEXT:       loop.yield %d
// CHECK-NEXT:     } : tensor<[0, 1] x f32, strides [1, 1]>
// CHECK-NEXT:     %t = loop.compute par(i0: 3) -> map {
// CHECK-NEXT:       %j = loop.read %z[i0] : f32
// CHECK-NEXT:       %k = arith.cmpf one, %j, %j : f32
// CHECK-NEXT:       %3 = loop.read %m[i0] (where %k) : f32
// CHECK-NEXT:       %4 = loop.read %y[i0] (where %k) : f32
// CHECK-NEXT:       %5 = arith.divf %3, %4 : f32
// CHECK-NEXT:       %6 = math.tanh %5 : f32
// CHECK-NEXT:       %l = arith.select %k, %6, %j : f32
// CHECK-NEXT:       loop.yield %l
// CHECK-NEXT:     } : tensor<[3] x f32, strides [1]>
// CHECK-NEXT:     return %s, %t : tensor<[0, 1] x f32, strides [1, 1]>, tensor<[3] x f32, strides [1]>
// CHECK-NEXT:   }
// CHECK-NEXT: }
