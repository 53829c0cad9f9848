// The pass split-extremes: where the greatest of each of two long rows is, in parts that are even;
// the least of a row, with the least itself, in parts of which the last is shorter.
// RUN: --split-extremes --target=sm_90
// VALUES: split-extremes

func.func @main(%x: tensor<[2, 65536] x f32, strides [65536, 1]>, %w: tensor<[1, 50021] x f32, strides [50021, 1]>) -> (tensor<[2] x i64, strides [1]>, tensor<[1] x f32, strides [1]>, tensor<[1] x i64, strides [1]>) attributes {level = "loop"} {
  %y = loop.compute par(i0: 2) red(i1: 65536) -> reduce(argmax, f32) {
    %a = loop.read %x[i0, i1] : f32
    loop.yield %a
  } : tensor<[2] x i64, strides [1]>
  %m, %z = loop.compute par(i0: 1) red(i1: 50021) -> reduce(min, f32), reduce(argmin, f32) {
    %a = loop.read %w[i0, i1] : f32
    loop.yield %a, %a
  } : tensor<[1] x f32, strides [1]>, tensor<[1] x i64, strides [1]>
  return %y, %m, %z : tensor<[2] x i64, strides [1]>, tensor<[1] x f32, strides [1]>, tensor<[1] x i64, strides [1]>
}

// CHECK: builtin.module attributes {irc.target = #irc.target<sm_90>} {
// CHECK-NEXT:   func.func @main(%x: tensor<[2, 65536] x f32, strides [65536, 1]>, %w: tensor<[1, 50021] x f32, strides [50021, 1]>) -> (tensor<[2] x i64, strides [1]>, tensor<[1] x f32, strides [1]>, tensor<[1] x i64, strides [1]>) attributes {level = "loop"} {
// CHECK-NEXT:     %0, %1 = loop.compute par(i0: 2, i1: 64) red(i2: 1024) -> reduce(argmax, f32), reduce(max, f32) {
// CHECK-NEXT:       %2 = loop.read %x[i0, i1*1024 + i2] : f32
// CHECK-NEXT:       loop.yield %2, %2
// CHECK-NEXT:     } : tensor<[2, 64] x i64, strides [64, 1]>, tensor<[2, 64] x f32, strides [64, 1]>
// CHECK-NEXT:     %y = loop.group (i0: 2) {
// CHECK-NEXT:       %3 = loop.compute par(i0: 2) red(i1: 64) -> reduce(argmax, f32) {
// CHECK-NEXT:         %4 = loop.read %1[i0, i1] : f32
// CHECK-NEXT:         loop.yield %4
// CHECK-NEXT:       } : tensor<[2] x i64, strides [1]>
// CHECK-NEXT:       %y_0 = loop.compute par(i0: 2) -> map {
// CHECK-NEXT:         %5 = loop.read %3[i0] : i64
// CHECK-NEXT:         %6 = arith.index_cast %5 : i64 to index
// CHECK-NEXT:         %7 = loop.read %0[i0, %6] : i64
// CHECK-NEXT:         %8 = arith.constant 1024 : i64
// CHECK-NEXT:         %9 = arith.muli %5, %8 : i64
// CHECK-NEXT:         %10 = arith.addi %9, %7 : i64
// CHECK-NEXT:         loop.yield %10
// CHECK-NEXT:       } : tensor<[2] x i64, strides [1]>
// CHECK-NEXT:       loop.yield %y_0
// CHECK-NEXT:     } : tensor<[2] x i64, strides [1]>
// CHECK-NEXT:     %11, %12, %13 = loop.compute par(i0: 1, i1: 48) red(i2: 1043) -> reduce(min, f32), reduce(argmin, f32), reduce(min, f32) {
// CHECK-NEXT:       %14 = loop.index {expression = #sym<i1*1043 + i2>} : index
// CHECK-NEXT:       %15 = arith.constant 50021 : index
// CHECK-NEXT:       %16 = arith.cmpi slt, %14, %15 : index
// CHECK-NEXT:       %17 = loop.read %w[i0, i1*1043 + i2] (where %16) : f32
// CHECK-NEXT:       %18 = arith.constant 0x7F800000 : f32
// CHECK-NEXT:       %19 = arith.select %16, %17, %18 : f32
// CHECK-NEXT:       loop.yield %19, %19, %19
// CHECK-NEXT:     } : tensor<[1, 48] x f32, strides [48, 1]>, tensor<[1, 48] x i64, strides [48, 1]>, tensor<[1, 48] x f32, strides [48, 1]>
// CHECK-NEXT:     %m, %z = loop.group (i0: 1) {
// CHECK-NEXT:       %m_0, %20 = loop.compute par(i0: 1) red(i1: 48) -> reduce(min, f32), reduce(argmin, f32) {
// CHECK-NEXT:         %21 = loop.read %11[i0, i1] : f32
// CHECK-NEXT:         %22 = loop.read %13[i0, i1] : f32
// CHECK-NEXT:         loop.yield %21, %22
// CHECK-NEXT:       } : tensor<[1] x f32, strides [1]>, tensor<[1] x i64, strides [1]>
// CHECK-NEXT:       %z_0 = loop.compute par(i0: 1) -> map {
// CHECK-NEXT:         %23 = loop.read %20[i0] : i64
// CHECK-NEXT:         %24 = arith.index_cast %23 : i64 to index
// CHECK-NEXT:         %25 = loop.read %12[i0, %24] : i64
// CHECK-NEXT:         %26 = arith.constant 1043 : i64
// CHECK-NEXT:         %27 = arith.muli %23, %26 : i64
// CHECK-NEXT:         %28 = arith.addi %27, %25 : i64
// CHECK-NEXT:         loop.yield %28
// CHECK-NEXT:       } : tensor<[1] x i64, strides [1]>
// CHECK-NEXT:       loop.yield %m_0, %z_0
// CHECK-NEXT:     } : tensor<[1] x f32, strides [1]>, tensor<[1] x i64, strides [1]>
// CHECK-NEXT:     return %y, %m, %z : tensor<[2] x i64, strides [1]>, tensor<[1] x f32, strides [1]>, tensor<[1] x i64, strides [1]>
// CHECK-NEXT:   }
// CHECK-NEXT: }
