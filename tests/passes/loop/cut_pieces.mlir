// The pass cut-pieces: a concatenation whose pieces differ in their work (%cat), a roll over two
// axes (%roll, whose joins nest) and a row of its own (%row, by `eq`) are cut; a border along the
// innermost axis (%along) stays, and so does a map so small that a second launch takes longer than
// what it spares (%small).
// RUN: --cut-pieces --target=avx2
// VALUES: cut-pieces

func.func @main(%x: tensor<[40, 32] x f32, strides [32, 1]>, %z: tensor<[24, 32] x f32, strides [32, 1]>, %w: tensor<[16, 12, 8] x f32, strides [96, 8, 1]>) -> (tensor<[64, 32] x f32, strides [32, 1]>, tensor<[40, 40] x f32, strides [40, 1]>, tensor<[16, 12, 8] x f32, strides [96, 8, 1]>, tensor<[4, 2] x f32, strides [2, 1]>, tensor<[40, 32] x f32, strides [32, 1]>) attributes {level = "loop"} {
  %cat = loop.compute par(i0: 64, i1: 32) -> map {
    %0 = loop.index {expression = #sym<i0>} : index
    %1 = arith.constant 40 : index
    %2 = arith.cmpi slt, %0, %1 : index
    %3 = arith.cmpi sge, %0, %1 : index
    %4 = loop.read %x[i0, i1] (where %2) : f32
    %5 = math.exp %4 : f32
    %6 = loop.read %z[i0 - 40, i1] (where %3) : f32
    %7 = arith.negf %6 : f32
    %8 = arith.select %2, %5, %7 : f32
    loop.yield %8
  } : tensor<[64, 32] x f32, strides [32, 1]>
  %along = loop.compute par(i0: 40, i1: 40) -> map {
    %0 = loop.index {expression = #sym<i1>} : index
    %1 = arith.constant 32 : index
    %2 = arith.cmpi slt, %0, %1 : index
    %3 = arith.constant 2.0 : f32
    %4 = loop.read %x[i0, i1] (where %2 else %3) : f32
    %5 = math.exp %4 : f32
    loop.yield %5
  } : tensor<[40, 40] x f32, strides [40, 1]>
  %roll = loop.compute par(i0: 16, i1: 12, i2: 8) -> map {
    %0 = loop.index {expression = #sym<i0>} : index
    %1 = loop.index {expression = #sym<i1>} : index
    %2 = arith.constant 3 : index
    %3 = arith.constant 5 : index
    %4 = arith.cmpi sge, %0, %2 : index
    %5 = arith.cmpi slt, %0, %2 : index
    %6 = arith.cmpi sge, %1, %3 : index
    %7 = arith.cmpi slt, %1, %3 : index
    %8 = arith.andi %4, %6 : i1
    %9 = arith.andi %4, %7 : i1
    %10 = arith.andi %5, %6 : i1
    %11 = arith.andi %5, %7 : i1
    %12 = loop.read %w[i0 - 3, i1 - 5, i2] (where %8) : f32
    %13 = loop.read %w[i0 - 3, i1 + 7, i2] (where %9 else %12) : f32
    %14 = loop.read %w[i0 + 13, i1 - 5, i2] (where %10 else %13) : f32
    %15 = loop.read %w[i0 + 13, i1 + 7, i2] (where %11 else %14) : f32
    loop.yield %15
  } : tensor<[16, 12, 8] x f32, strides [96, 8, 1]>
  %small = loop.compute par(i0: 4, i1: 2) -> map {
    %0 = loop.index {expression = #sym<i0>} : index
    %1 = arith.constant 2 : index
    %2 = arith.cmpi slt, %0, %1 : index
    %3 = arith.cmpi sge, %0, %1 : index
    %4 = loop.read %x[i0, i1] (where %2) : f32
    %5 = loop.read %z[i0 - 2, i1] (where %3 else %4) : f32
    loop.yield %5
  } : tensor<[4, 2] x f32, strides [2, 1]>
  %row = loop.compute par(i0: 40, i1: 32) -> map {
    %0 = loop.index {expression = #sym<i0>} : index
    %1 = arith.constant 7 : index
    %2 = arith.cmpi eq, %0, %1 : index
    %3 = arith.cmpi ne, %0, %1 : index
    %4 = loop.read %z[0, i1] (where %2) : f32
    %5 = math.exp %4 : f32
    %6 = loop.read %x[i0, i1] (where %3 else %5) : f32
    loop.yield %6
  } : tensor<[40, 32] x f32, strides [32, 1]>
  return %cat, %along, %roll, %small, %row : tensor<[64, 32] x f32, strides [32, 1]>, tensor<[40, 40] x f32, strides [40, 1]>, tensor<[16, 12, 8] x f32, strides [96, 8, 1]>, tensor<[4, 2] x f32, strides [2, 1]>, tensor<[40, 32] x f32, strides [32, 1]>
}

// CHECK: builtin.module attributes {irc.target = #irc.target<avx2>} {
// CHECK-NEXT:   func.func @main(%x: tensor<[40, 32] x f32, strides [32, 1]>, %z: tensor<[24, 32] x f32, strides [32, 1]>, %w: tensor<[16, 12, 8] x f32, strides [96, 8, 1]>) -> (tensor<[64, 32] x f32, strides [32, 1]>, tensor<[40, 40] x f32, strides [40, 1]>, tensor<[16, 12, 8] x f32, strides [96, 8, 1]>, tensor<[4, 2] x f32, strides [2, 1]>, tensor<[40, 32] x f32, strides [32, 1]>) attributes {level = "loop"} {
// CHECK-NEXT:     %0 = loop.compute par(i0: 40, i1: 32) -> map {
// CHECK-NEXT:       %1 = loop.read %x[i0, i1] : f32
// CHECK-NEXT:       %2 = math.exp %1 : f32
// CHECK-NEXT:       loop.yield %2
// CHECK-NEXT:     } : tensor<[40, 32] x f32, strides [32, 1]>
// CHECK-NEXT:     %3 = loop.compute par(i0: 24, i1: 32) -> map {
// CHECK-NEXT:       %4 = loop.read %z[i0, i1] : f32
// CHECK-NEXT:       %5 = arith.negf %4 : f32
// CHECK-NEXT:       loop.yield %5
// CHECK-NEXT:     } : tensor<[24, 32] x f32, strides [32, 1]>
// CHECK-NEXT:     %cat = layout.join %0, %3 {dim = 0 : i64} : (tensor<[40, 32] x f32, strides [32, 1]>, tensor<[24, 32] x f32, strides [32, 1]>) -> tensor<[64, 32] x f32, strides [32, 1]>
// CHECK-NEXT:     %along = loop.compute par(i0: 40, i1: 40) -> map {
// CHECK-NEXT:       %6 = loop.index {expression = #sym<i1>} : index
// CHECK-NEXT:       %7 = arith.constant 32 : index
// CHECK-NEXT:       %8 = arith.cmpi slt, %6, %7 : index
// CHECK-NEXT:       %9 = arith.constant 2.0 : f32
// CHECK-NEXT:       %10 = loop.read %x[i0, i1] (where %8 else %9) : f32
// CHECK-NEXT:       %11 = math.exp %10 : f32
// CHECK-NEXT:       loop.yield %11
// CHECK-NEXT:     } : tensor<[40, 40] x f32, strides [40, 1]>
// CHECK-NEXT:     %12 = loop.compute par(i0: 3, i1: 5, i2: 8) -> map {
// CHECK-NEXT:       %13 = loop.read %w[i0 + 13, i1 + 7, i2] : f32
// CHECK-NEXT:       loop.yield %13
// CHECK-NEXT:     } : tensor<[3, 5, 8] x f32, strides [96, 8, 1]>
// CHECK-NEXT:     %14 = loop.compute par(i0: 3, i1: 7, i2: 8) -> map {
// CHECK-NEXT:       %15 = loop.read %w[i0 + 13, i1, i2] : f32
// CHECK-NEXT:       loop.yield %15
// CHECK-NEXT:     } : tensor<[3, 7, 8] x f32, strides [96, 8, 1]>
// CHECK-NEXT:     %16 = layout.join %12, %14 {dim = 1 : i64} : (tensor<[3, 5, 8] x f32, strides [96, 8, 1]>, tensor<[3, 7, 8] x f32, strides [96, 8, 1]>) -> tensor<[3, 12, 8] x f32, strides [96, 8, 1]>
// CHECK-NEXT:     %17 = loop.compute par(i0: 13, i1: 5, i2: 8) -> map {
// CHECK-NEXT:       %18 = loop.read %w[i0, i1 + 7, i2] : f32
// CHECK-NEXT:       loop.yield %18
// CHECK-NEXT:     } : tensor<[13, 5, 8] x f32, strides [96, 8, 1]>
// CHECK-NEXT:     %19 = loop.compute par(i0: 13, i1: 7, i2: 8) -> map {
// CHECK-NEXT:       %20 = loop.read %w[i0, i1, i2] : f32
// CHECK-NEXT:       loop.yield %20
// CHECK-NEXT:     } : tensor<[13, 7, 8] x f32, strides [96, 8, 1]>
// CHECK-NEXT:     %21 = layout.join %17, %19 {dim = 1 : i64} : (tensor<[13, 5, 8] x f32, strides [96, 8, 1]>, tensor<[13, 7, 8] x f32, strides [96, 8, 1]>) -> tensor<[13, 12, 8] x f32, strides [96, 8, 1]>
// CHECK-NEXT:     %roll = layout.join %16, %21 {dim = 0 : i64} : (tensor<[3, 12, 8] x f32, strides [96, 8, 1]>, tensor<[13, 12, 8] x f32, strides [96, 8, 1]>) -> tensor<[16, 12, 8] x f32, strides [96, 8, 1]>
// CHECK-NEXT:     %small = loop.compute par(i0: 4, i1: 2) -> map {
// CHECK-NEXT:       %22 = loop.index {expression = #sym<i0>} : index
// CHECK-NEXT:       %23 = arith.constant 2 : index
// CHECK-NEXT:       %24 = arith.cmpi slt, %22, %23 : index
// CHECK-NEXT:       %25 = arith.cmpi sge, %22, %23 : index
// CHECK-NEXT:       %26 = loop.read %x[i0, i1] (where %24) : f32
// CHECK-NEXT:       %27 = loop.read %z[i0 - 2, i1] (where %25 else %26) : f32
// CHECK-NEXT:       loop.yield %27
// CHECK-NEXT:     } : tensor<[4, 2] x f32, strides [2, 1]>
// CHECK-NEXT:     %28 = loop.compute par(i0: 7, i1: 32) -> map {
// CHECK-NEXT:       %29 = loop.read %x[i0, i1] : f32
// CHECK-NEXT:       loop.yield %29
// CHECK-NEXT:     } : tensor<[7, 32] x f32, strides [32, 1]>
// CHECK-NEXT:     %30 = loop.compute par(i0: 1, i1: 32) -> map {
// CHECK-NEXT:       %31 = loop.read %z[0, i1] : f32
// CHECK-NEXT:       %32 = math.exp %31 : f32
// CHECK-NEXT:       loop.yield %32
// CHECK-NEXT:     } : tensor<[1, 32] x f32, strides [32, 1]>
// CHECK-NEXT:     %33 = loop.compute par(i0: 32, i1: 32) -> map {
// CHECK-NEXT:       %34 = loop.read %x[i0 + 8, i1] : f32
// CHECK-NEXT:       loop.yield %34
// CHECK-NEXT:     } : tensor<[32, 32] x f32, strides [32, 1]>
// CHECK-NEXT:     %row = layout.join %28, %30, %33 {dim = 0 : i64} : (tensor<[7, 32] x f32, strides [32, 1]>, tensor<[1, 32] x f32, strides [32, 1]>, tensor<[32, 32] x f32, strides [32, 1]>) -> tensor<[40, 32] x f32, strides [32, 1]>
// CHECK-NEXT:     return %cat, %along, %roll, %small, %row : tensor<[64, 32] x f32, strides [32, 1]>, tensor<[40, 40] x f32, strides [40, 1]>, tensor<[16, 12, 8] x f32, strides [96, 8, 1]>, tensor<[4, 2] x f32, strides [2, 1]>, tensor<[40, 32] x f32, strides [32, 1]>
// CHECK-NEXT:   }
// CHECK-NEXT: }
