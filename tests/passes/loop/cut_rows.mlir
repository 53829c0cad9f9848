// The pass cut-rows: the rows of products that registers of whole tiles compute in parts are cut
// by a compute of their own, once for both.
// RUN: --cut-rows --target=avx512
// VALUES: cut-rows

func.func @main(%x: tensor<[4, 32] x f32, strides [32, 1]>, %w: tensor<[256, 32] x f32, strides [32, 1]>) -> (tensor<[4, 256] x f32, strides [256, 1]>, tensor<[4, 256] x f32, strides [256, 1]>) attributes {level = "loop"} {
  %y = loop.compute par(i0: 4, i1: 256) red(i2: 32) -> reduce(sum, f32) schedule #loop.schedule<cpu, products = "bf16x6"> {
    %a = loop.read %x[i0, i2] : f32
    %b = loop.read %w[i1, i2] : f32
    %c = arith.mulf %a, %b : f32
    loop.yield %c
  } : tensor<[4, 256] x f32, strides [256, 1]>
  %z = loop.compute par(i0: 4, i1: 256) red(i2: 32) -> reduce(sum, f32) schedule #loop.schedule<cpu, products = "bf16x6"> {
    %d = loop.read %x[i0, i2] : f32
    %e = loop.read %w[255 - i1, i2] : f32
    %f = arith.mulf %d, %e : f32
    loop.yield %f
  } : tensor<[4, 256] x f32, strides [256, 1]>
  return %y, %z : tensor<[4, 256] x f32, strides [256, 1]>, tensor<[4, 256] x f32, strides [256, 1]>
}

// CHECK: builtin.module attributes {irc.target = #irc.target<avx512>} {
// CHECK-NEXT:   func.func @main(%x: tensor<[4, 32] x f32, strides [32, 1]>, %w: tensor<[256, 32] x f32, strides [32, 1]>) -> (tensor<[4, 256] x f32, strides [256, 1]>, tensor<[4, 256] x f32, strides [256, 1]>) attributes {level = "loop"} {
// CHECK-NEXT:     %0, %1, %2 = loop.compute par(i0: 4, i1: 32) -> map, map, map {
// CHECK-NEXT:       %3 = loop.read %x[i0, i1] : f32
// CHECK-NEXT:       %4 = arith.truncf %3 toward_zero : f32 to bf16
// CHECK-NEXT:       %5 = arith.extf %4 : bf16 to f32
// CHECK-NEXT:       %6 = arith.subf %3, %5 : f32
// CHECK-NEXT:       %7 = arith.truncf %6 to_nearest_away : f32 to bf16
// CHECK-NEXT:       %8 = arith.extf %7 : bf16 to f32
// CHECK-NEXT:       %9 = arith.subf %6, %8 : f32
// CHECK-NEXT:       %10 = arith.truncf %9 toward_zero : f32 to bf16
// CHECK-NEXT:       %11 = math.absf %3 : f32
// CHECK-NEXT:       %12 = arith.constant 0x7F800000 : f32
// CHECK-NEXT:       %13 = arith.cmpf oeq, %11, %12 : f32
// CHECK-NEXT:       %14 = arith.constant 0.0 : bf16
// CHECK-NEXT:       %15 = arith.select %13, %14, %7 : bf16
// CHECK-NEXT:       %16 = arith.select %13, %14, %10 : bf16
// CHECK-NEXT:       loop.yield %4, %15, %16
// CHECK-NEXT:     } : tensor<[4, 32] x bf16, strides [96, 1]>, tensor<[4, 32] x bf16, strides [96, 1]>, tensor<[4, 32] x bf16, strides [96, 1]>
// CHECK-NEXT:     %17 = layout.join %0, %1, %2 {dim = 1 : i64} : (tensor<[4, 32] x bf16, strides [96, 1]>, tensor<[4, 32] x bf16, strides [96, 1]>, tensor<[4, 32] x bf16, strides [96, 1]>) -> tensor<[4, 3, 32] x bf16, strides [96, 32, 1]>
// CHECK-NEXT:     %y = loop.compute par(i0: 4, i1: 256) red(i2: 32) -> reduce(sum, f32) schedule #loop.schedule<cpu, products = "bf16x6"> {
// CHECK-NEXT:       %b = loop.read %w[i1, i2] : f32
// CHECK-NEXT:       %18 = loop.read %17[i0, 0, i2] : bf16
// CHECK-NEXT:       %19 = arith.extf %18 : bf16 to f32
// CHECK-NEXT:       %20 = loop.read %17[i0, 1, i2] : bf16
// CHECK-NEXT:       %21 = arith.extf %20 : bf16 to f32
// CHECK-NEXT:       %22 = arith.addf %19, %21 : f32
// CHECK-NEXT:       %23 = loop.read %17[i0, 2, i2] : bf16
// CHECK-NEXT:       %24 = arith.extf %23 : bf16 to f32
// CHECK-NEXT:       %25 = arith.addf %22, %24 : f32
// CHECK-NEXT:       %c = arith.mulf %25, %b : f32
// CHECK-NEXT:       loop.yield %c
// CHECK-NEXT:     } : tensor<[4, 256] x f32, strides [256, 1]>
// CHECK-NEXT:     %z = loop.compute par(i0: 4, i1: 256) red(i2: 32) -> reduce(sum, f32) schedule #loop.schedule<cpu, products = "bf16x6"> {
// CHECK-NEXT:       %e = loop.read %w[-i1 + 255, i2] : f32
// CHECK-NEXT:       %26 = loop.read %17[i0, 0, i2] : bf16
// CHECK-NEXT:       %27 = arith.extf %26 : bf16 to f32
// CHECK-NEXT:       %28 = loop.read %17[i0, 1, i2] : bf16
// CHECK-NEXT:       %29 = arith.extf %28 : bf16 to f32
// CHECK-NEXT:       %30 = arith.addf %27, %29 : f32
// CHECK-NEXT:       %31 = loop.read %17[i0, 2, i2] : bf16
// CHECK-NEXT:       %32 = arith.extf %31 : bf16 to f32
// CHECK-NEXT:       %33 = arith.addf %30, %32 : f32
// CHECK-NEXT:       %f = arith.mulf %33, %e : f32
// CHECK-NEXT:       loop.yield %f
// CHECK-NEXT:     } : tensor<[4, 256] x f32, strides [256, 1]>
// CHECK-NEXT:     return %y, %z : tensor<[4, 256] x f32, strides [256, 1]>, tensor<[4, 256] x f32, strides [256, 1]>
// CHECK-NEXT:   }
// CHECK-NEXT: }
