// The pass split-scans: a running sum of 256 elements in parts of 64, one of 130 columns' rows in
// parts that are not all full. (Without the options only much longer ones are split.)
// RUN: --split-scans='least_points=128 part_points=64 most_points=64' --target=sm_90
// VALUES: split-scans{least_points=128 part_points=64 most_points=64}

func.func @main(%x: tensor<[256] x f32, strides [1]>, %w: tensor<[130, 3] x bf16, strides [3, 1]>) -> (tensor<[256] x f32, strides [1]>, tensor<[130, 3] x bf16, strides [3, 1]>) attributes {level = "loop"} {
  %y = loop.compute scan(i0: 256) -> scan(sum, f32) {
    %a = loop.read %x[i0] : f32
    loop.yield %a
  } : tensor<[256] x f32, strides [1]>
  %z = loop.compute scan(i0: 130) par(i1: 3) -> scan(max, f32) {
    %a = loop.read %w[i0, i1] : bf16
    loop.yield %a
  } : tensor<[130, 3] x bf16, strides [3, 1]>
  return %y, %z : tensor<[256] x f32, strides [1]>, tensor<[130, 3] x bf16, strides [3, 1]>
}

// CHECK: builtin.module attributes {irc.target = #irc.target<sm_90>} {
// CHECK-NEXT:   func.func @main(%x: tensor<[256] x f32, strides [1]>, %w: tensor<[130, 3] x bf16, strides [3, 1]>) -> (tensor<[256] x f32, strides [1]>, tensor<[130, 3] x bf16, strides [3, 1]>) attributes {level = "loop"} {
// CHECK-NEXT:     %0 = loop.compute par(i0: 4) red(i1: 64) -> reduce(sum, f32) {
// CHECK-NEXT:       %1 = loop.read %x[i0*64 + i1] : f32
// CHECK-NEXT:       loop.yield %1
// CHECK-NEXT:     } : tensor<[4] x f32, strides [1]>
// CHECK-NEXT:     %2 = loop.compute scan(i0: 4) -> scan(sum, f32) {
// CHECK-NEXT:       %3 = loop.read %0[i0] : f32
// CHECK-NEXT:       loop.yield %3
// CHECK-NEXT:     } : tensor<[4] x f32, strides [1]>
// CHECK-NEXT:     %4 = loop.compute par(i0: 4) scan(i1: 64) -> scan(sum, f32) {
// CHECK-NEXT:       %5 = loop.read %x[i0*64 + i1] : f32
// CHECK-NEXT:       %6 = loop.index {expression = #sym<i1>} : index
// CHECK-NEXT:       %7 = arith.constant 0 : index
// CHECK-NEXT:       %8 = arith.cmpi eq, %6, %7 : index
// CHECK-NEXT:       %9 = loop.index {expression = #sym<i0>} : index
// CHECK-NEXT:       %10 = arith.cmpi sgt, %9, %7 : index
// CHECK-NEXT:       %11 = arith.andi %8, %10 : i1
// CHECK-NEXT:       %12 = arith.constant 0.0 : f32
// CHECK-NEXT:       %13 = loop.read %2[i0 - 1] (where %11 else %12) : f32
// CHECK-NEXT:       %14 = arith.addf %13, %5 : f32
// CHECK-NEXT:       %15 = arith.select %11, %14, %5 : f32
// CHECK-NEXT:       loop.yield %15
// CHECK-NEXT:     } : tensor<[4, 64] x f32, strides [64, 1]>
// CHECK-NEXT:     %y = layout.view %4 {offset = #sym<0>} : (tensor<[4, 64] x f32, strides [64, 1]>) -> tensor<[256] x f32, strides [1]>
// CHECK-NEXT:     %16 = loop.compute par(i0: 3) red(i1: 64) par(i2: 3) -> reduce(max, f32) {
// CHECK-NEXT:       %17 = loop.index {expression = #sym<i0*64 + i1>} : index
// CHECK-NEXT:       %18 = arith.constant 130 : index
// CHECK-NEXT:       %19 = arith.cmpi slt, %17, %18 : index
// CHECK-NEXT:       %20 = loop.read %w[i0*64 + i1, i2] (where %19) : bf16
// CHECK-NEXT:       %21 = arith.constant 0xFF80 : bf16
// CHECK-NEXT:       %22 = arith.select %19, %20, %21 : bf16
// CHECK-NEXT:       loop.yield %22
// CHECK-NEXT:     } : tensor<[3, 3] x f32, strides [3, 1]>
// CHECK-NEXT:     %23 = loop.compute scan(i0: 3) par(i1: 3) -> scan(max, f32) {
// CHECK-NEXT:       %24 = loop.read %16[i0, i1] : f32
// CHECK-NEXT:       loop.yield %24
// CHECK-NEXT:     } : tensor<[3, 3] x f32, strides [3, 1]>
// CHECK-NEXT:     %25 = loop.compute par(i0: 3) scan(i1: 64) par(i2: 3) -> scan(max, f32) {
// CHECK-NEXT:       %26 = loop.index {expression = #sym<i0*64 + i1>} : index
// CHECK-NEXT:       %27 = arith.constant 130 : index
// CHECK-NEXT:       %28 = arith.cmpi slt, %26, %27 : index
// CHECK-NEXT:       %29 = loop.read %w[i0*64 + i1, i2] (where %28) : bf16
// CHECK-NEXT:       %30 = arith.constant 0xFF80 : bf16
// CHECK-NEXT:       %31 = arith.select %28, %29, %30 : bf16
// CHECK-NEXT:       %32 = arith.extf %31 : bf16 to f32
// CHECK-NEXT:       %33 = loop.index {expression = #sym<i1>} : index
// CHECK-NEXT:       %34 = arith.constant 0 : index
// CHECK-NEXT:       %35 = arith.cmpi eq, %33, %34 : index
// CHECK-NEXT:       %36 = loop.index {expression = #sym<i0>} : index
// CHECK-NEXT:       %37 = arith.cmpi sgt, %36, %34 : index
// CHECK-NEXT:       %38 = arith.andi %35, %37 : i1
// CHECK-NEXT:       %39 = arith.constant 0xFF800000 : f32
// CHECK-NEXT:       %40 = loop.read %23[i0 - 1, i2] (where %38 else %39) : f32
// CHECK-NEXT:       %41 = arith.maximumf %40, %32 : f32
// CHECK-NEXT:       %42 = arith.select %38, %41, %32 : f32
// CHECK-NEXT:       loop.yield %42
// CHECK-NEXT:     } : tensor<[3, 64, 3] x bf16, strides [192, 3, 1]>
// CHECK-NEXT:     %z = loop.compute par(i0: 130, i1: 3) -> map {
// CHECK-NEXT:       %43 = loop.read %25[floordiv(i0, 64), mod(i0, 64), i1] : bf16
// CHECK-NEXT:       loop.yield %43
// CHECK-NEXT:     } : tensor<[130, 3] x bf16, strides [3, 1]>
// CHECK-NEXT:     return %y, %z : tensor<[256] x f32, strides [1]>, tensor<[130, 3] x bf16, strides [3, 1]>
// CHECK-NEXT:   }
// CHECK-NEXT: }
