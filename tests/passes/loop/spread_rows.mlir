// The pass spread-rows: a softmax of two rows of 65536 elements in 64 parts, whose maxima and sums
// of powers are had in one walk; a norm of rows of 65537, a prime, has no equal parts and stays.
// RUN: --spread-rows --target=sm_90
// VALUES: spread-rows

func.func @main(%x: tensor<[2, 65536] x f32, strides [65536, 1]>, %w: tensor<[2, 65537] x f32, strides [65537, 1]>) -> (tensor<[2, 65536] x f32, strides [65536, 1]>, tensor<[2, 65537] x f32, strides [65537, 1]>) attributes {level = "loop"} {
  %y = loop.group (i0: 2) {
    %m = loop.compute par(i0: 2) red(i1: 65536) -> reduce(max, f32) {
      %a = loop.read %x[i0, i1] : f32
      loop.yield %a
    } : tensor<[2] x f32, strides [1]>
    %e, %s = loop.compute par(i0: 2) red(i1: 65536) -> map, reduce(sum, f32) {
      %a = loop.read %x[i0, i1] : f32
      %b = loop.read %m[i0] : f32
      %c = arith.subf %a, %b : f32
      %d = math.exp %c : f32
      loop.yield %d, %d
    } : tensor<[2, 65536] x f32, strides [65536, 1]>, tensor<[2] x f32, strides [1]>
    %q = loop.compute par(i0: 2, i1: 65536) -> map {
      %a = loop.read %e[i0, i1] : f32
      %b = loop.read %s[i0] : f32
      %c = arith.divf %a, %b : f32
      loop.yield %c
    } : tensor<[2, 65536] x f32, strides [65536, 1]>
    loop.yield %q
  } : tensor<[2, 65536] x f32, strides [65536, 1]>
  %z = loop.group (i0: 2) {
    %mean, %squares = loop.compute par(i0: 2) red(i1: 65537) -> reduce(moments, f32) {
      %a = loop.read %w[i0, i1] : f32
      loop.yield %a
    } : tensor<[2] x f32, strides [1]>, tensor<[2] x f32, strides [1]>
    %q = loop.compute par(i0: 2, i1: 65537) -> map {
      %a = loop.read %w[i0, i1] : f32
      %b = loop.read %mean[i0] : f32
      %c = arith.subf %a, %b : f32
      loop.yield %c
    } : tensor<[2, 65537] x f32, strides [65537, 1]>
    loop.yield %q
  } : tensor<[2, 65537] x f32, strides [65537, 1]>
  return %y, %z : tensor<[2, 65536] x f32, strides [65536, 1]>, tensor<[2, 65537] x f32, strides [65537, 1]>
}

// CHECK: builtin.module attributes {irc.target = #irc.target<sm_90>} {
// CHECK-NEXT:   func.func @main(%x: tensor<[2, 65536] x f32, strides [65536, 1]>, %w: tensor<[2, 65537] x f32, strides [65537, 1]>) -> (tensor<[2, 65536] x f32, strides [65536, 1]>, tensor<[2, 65537] x f32, strides [65537, 1]>) attributes {level = "loop"} {
// CHECK-NEXT:     %0, %1 = loop.group (i0: 2, i1: 64) {
// CHECK-NEXT:       %2 = loop.compute par(i0: 2, i1: 64) red(i2: 1024) -> reduce(max, f32) {
// CHECK-NEXT:         %3 = loop.read %x[i0, i1*1024 + i2] : f32
// CHECK-NEXT:         loop.yield %3
// CHECK-NEXT:       } : tensor<[2, 64] x f32, strides [64, 1]>
// CHECK-NEXT:       %4 = loop.compute par(i0: 2, i1: 64) red(i2: 1024) -> reduce(sum, f32) {
// CHECK-NEXT:         %5 = loop.read %x[i0, i1*1024 + i2] : f32
// CHECK-NEXT:         %6 = loop.read %2[i0, i1] : f32
// CHECK-NEXT:         %7 = arith.subf %5, %6 : f32
// CHECK-NEXT:         %8 = math.exp %7 : f32
// CHECK-NEXT:         loop.yield %8
// CHECK-NEXT:       } : tensor<[2, 64] x f32, strides [64, 1]>
// CHECK-NEXT:       loop.yield %2, %4
// CHECK-NEXT:     } : tensor<[2, 64] x f32, strides [64, 1]>, tensor<[2, 64] x f32, strides [64, 1]>
// CHECK-NEXT:     %9 = loop.group (i0: 2, i1: 64) {
// CHECK-NEXT:       %10 = loop.compute par(i0: 2, i1: 64) red(i2: 64) -> reduce(max, f32) {
// CHECK-NEXT:         %11 = loop.read %0[i0, i2] : f32
// CHECK-NEXT:         loop.yield %11
// CHECK-NEXT:       } : tensor<[2, 64] x f32, strides [64, 1]>
// CHECK-NEXT:       %12 = loop.compute par(i0: 2, i1: 64, i2: 1024) -> map {
// CHECK-NEXT:         %13 = loop.read %x[i0, i1*1024 + i2] : f32
// CHECK-NEXT:         %14 = loop.read %10[i0, i1] : f32
// CHECK-NEXT:         %15 = arith.subf %13, %14 : f32
// CHECK-NEXT:         %16 = math.exp %15 : f32
// CHECK-NEXT:         loop.yield %16
// CHECK-NEXT:       } : tensor<[2, 64, 1024] x f32, strides [65536, 1024, 1]>
// CHECK-NEXT:       %17 = loop.compute par(i0: 2, i1: 64) red(i2: 64) -> reduce(sum, f32) {
// CHECK-NEXT:         %18 = loop.read %1[i0, i2] : f32
// CHECK-NEXT:         %19 = loop.read %0[i0, i2] : f32
// CHECK-NEXT:         %20 = loop.read %10[i0, i1] : f32
// CHECK-NEXT:         %21 = arith.constant 0xFF800000 : f32
// CHECK-NEXT:         %22 = arith.cmpf oeq, %19, %21 : f32
// CHECK-NEXT:         %23 = arith.constant 0.0 : f32
// CHECK-NEXT:         %24 = arith.select %22, %23, %18 : f32
// CHECK-NEXT:         %25 = arith.subf %19, %20 : f32
// CHECK-NEXT:         %26 = math.exp %25 : f32
// CHECK-NEXT:         %27 = arith.mulf %24, %26 : f32
// CHECK-NEXT:         loop.yield %27
// CHECK-NEXT:       } : tensor<[2, 64] x f32, strides [64, 1]>
// CHECK-NEXT:       %28 = loop.compute par(i0: 2, i1: 64, i2: 1024) -> map {
// CHECK-NEXT:         %29 = loop.read %12[i0, i1, i2] : f32
// CHECK-NEXT:         %30 = loop.read %17[i0, i1] : f32
// CHECK-NEXT:         %31 = arith.divf %29, %30 : f32
// CHECK-NEXT:         loop.yield %31
// CHECK-NEXT:       } : tensor<[2, 64, 1024] x f32, strides [65536, 1024, 1]>
// CHECK-NEXT:       loop.yield %28
// CHECK-NEXT:     } : tensor<[2, 64, 1024] x f32, strides [65536, 1024, 1]>
// CHECK-NEXT:     %y = layout.view %9 {offset = #sym<0>} : (tensor<[2, 64, 1024] x f32, strides [65536, 1024, 1]>) -> tensor<[2, 65536] x f32, strides [65536, 1]>
// CHECK-NEXT:     %z = loop.group (i0: 2) {
// CHECK-NEXT:       %mean, %squares = loop.compute par(i0: 2) red(i1: 65537) -> reduce(moments, f32) {
// CHECK-NEXT:         %a = loop.read %w[i0, i1] : f32
// CHECK-NEXT:         loop.yield %a
// CHECK-NEXT:       } : tensor<[2] x f32, strides [1]>, tensor<[2] x f32, strides [1]>
// CHECK-NEXT:       %q = loop.compute par(i0: 2, i1: 65537) -> map {
// CHECK-NEXT:         %a_0 = loop.read %w[i0, i1] : f32
// CHECK-NEXT:         %b = loop.read %mean[i0] : f32
// CHECK-NEXT:         %c = arith.subf %a_0, %b : f32
// CHECK-NEXT:         loop.yield %c
// CHECK-NEXT:       } : tensor<[2, 65537] x f32, strides [65537, 1]>
// CHECK-NEXT:       loop.yield %q
// CHECK-NEXT:     } : tensor<[2, 65537] x f32, strides [65537, 1]>
// CHECK-NEXT:     return %y, %z : tensor<[2, 65536] x f32, strides [65536, 1]>, tensor<[2, 65537] x f32, strides [65537, 1]>
// CHECK-NEXT:   }
// CHECK-NEXT: }
