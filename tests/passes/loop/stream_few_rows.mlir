// The pass stream-products: one query of each of three heads that share keys are rows of one tile,
// and parts of the keys, of which the last one has fewer, are rows that are combined behind.
// RUN: --stream-products
// VALUES: stream-products

builtin.module attributes {irc.target = #irc.target<sm_90, short_stream = 16, stream_part = 16>} {
  func.func @main(%q: tensor<[1, 6, 1, 16] x bf16, strides [96, 16, 16, 1]>, %k: tensor<[1, 2, 50, 16] x bf16, strides [1600, 800, 16, 1]>, %v: tensor<[1, 2, 50, 8] x bf16, strides [800, 400, 8, 1]>) -> tensor<[1, 6, 1, 8] x f32, strides [48, 8, 8, 1]> attributes {level = "loop"} {
    %s = loop.compute par(i0: 1, i1: 6, i2: 1, i3: 50) red(i4: 16) -> reduce(sum, f32) schedule #loop.schedule<gpu> {
      %a = loop.read %q[i0, i1, i2, i4] : bf16
      %b = arith.extf %a : bf16 to f32
      %c = loop.read %k[i0, floordiv(i1, 3), i3, i4] : bf16
      %d = arith.extf %c : bf16 to f32
      %e = arith.mulf %b, %d : f32
      loop.yield %e
    } : tensor<[1, 6, 1, 50] x f32, strides [300, 50, 50, 1]>
    %m = loop.compute par(i0: 1, i1: 6, i2: 1) red(i3: 50) -> reduce(max, f32) {
      %f = loop.read %s[i0, i1, i2, i3] : f32
      loop.yield %f
    } : tensor<[1, 6, 1] x f32, strides [6, 1, 1]>
    %x = loop.compute par(i0: 1, i1: 6, i2: 1, i3: 50) -> map {
      %g = loop.read %s[i0, i1, i2, i3] : f32
      %h = loop.read %m[i0, i1, i2] : f32
      %low = arith.constant 0xFF800000 : f32
      %none = arith.cmpf oeq, %h, %low : f32
      %zero = arith.constant 0.0 : f32
      %top = arith.select %none, %zero, %h : f32
      %gap = arith.subf %g, %top : f32
      %power = math.exp %gap {nonpositive} : f32
      loop.yield %power
    } : tensor<[1, 6, 1, 50] x f32, strides [300, 50, 50, 1]>
    %t = loop.compute par(i0: 1, i1: 6, i2: 1) red(i3: 50) -> reduce(sum, f32) {
      %i = loop.read %x[i0, i1, i2, i3] : f32
      loop.yield %i
    } : tensor<[1, 6, 1] x f32, strides [6, 1, 1]>
    %o = loop.compute par(i0: 1, i1: 6, i2: 1, i3: 8) red(i4: 50) -> reduce(sum, f32) schedule #loop.schedule<gpu> {
      %j = loop.read %x[i0, i1, i2, i4] : f32
      %l = arith.truncf %j : f32 to bf16
      %n = arith.extf %l : bf16 to f32
      %p = loop.read %v[i0, floordiv(i1, 3), i4, i3] : bf16
      %r = arith.extf %p : bf16 to f32
      %u = arith.mulf %n, %r : f32
      loop.yield %u
    } : tensor<[1, 6, 1, 8] x f32, strides [48, 8, 8, 1]>
    %y = loop.compute par(i0: 1, i1: 6, i2: 1, i3: 8) -> map {
      %w = loop.read %o[i0, i1, i2, i3] : f32
      %z = loop.read %t[i0, i1, i2] : f32
      %quotient = arith.divf %w, %z : f32
      loop.yield %quotient
    } : tensor<[1, 6, 1, 8] x f32, strides [48, 8, 8, 1]>
    return %y : tensor<[1, 6, 1, 8] x f32, strides [48, 8, 8, 1]>
  }
}

// CHECK: builtin.module attributes {irc.target = #irc.target<gpu, chip = "sm_90", short_stream = 16, stream_part = 16>} {
// CHECK-NEXT:   func.func @main(%q: tensor<[1, 6, 1, 16] x bf16, strides [96, 16, 16, 1]>, %k: tensor<[1, 2, 50, 16] x bf16, strides [1600, 800, 16, 1]>, %v: tensor<[1, 2, 50, 8] x bf16, strides [800, 400, 8, 1]>) -> tensor<[1, 6, 1, 8] x f32, strides [48, 8, 8, 1]> attributes {level = "loop"} {
// CHECK-NEXT:     %0, %1, %2 = loop.group (i0: 1, i1: 2, i2: 3, i3: 3, i4: 1) {
// CHECK-NEXT:       %3 = loop.compute par(i0: 1, i1: 2, i2: 3, i3: 3, i4: 1, i5: 17) red(i6: 16) -> reduce(sum, f32) schedule #loop.schedule<gpu> {
// CHECK-NEXT:         %4 = loop.index {expression = #sym<i2*17 + i5>} : index
// CHECK-NEXT:         %5 = arith.constant 50 : index
// CHECK-NEXT:         %6 = arith.cmpi slt, %4, %5 : index
// CHECK-NEXT:         %7 = loop.read %q[i0, i1*3 + i3, i4, i6] : bf16
// CHECK-NEXT:         %8 = arith.extf %7 : bf16 to f32
// CHECK-NEXT:         %9 = arith.constant 0.0 : bf16
// CHECK-NEXT:         %10 = loop.read %k[i0, i1, i2*17 + i5, i6] (where %6 else %9) : bf16
// CHECK-NEXT:         %11 = arith.extf %10 : bf16 to f32
// CHECK-NEXT:         %12 = arith.mulf %8, %11 : f32
// CHECK-NEXT:         loop.yield %12
// CHECK-NEXT:       } : tensor<[1, 2, 3, 3, 1, 17] x f32, strides [306, 153, 51, 17, 17, 1]>
// CHECK-NEXT:       %13 = loop.compute par(i0: 1, i1: 2, i2: 3, i3: 3, i4: 1) red(i5: 17) -> reduce(max, f32) {
// CHECK-NEXT:         %14 = loop.read %3[i0, i1, i2, i3, i4, i5] : f32
// CHECK-NEXT:         %15 = loop.index {expression = #sym<i2*17 + i5>} : index
// CHECK-NEXT:         %16 = arith.constant 50 : index
// CHECK-NEXT:         %17 = arith.cmpi slt, %15, %16 : index
// CHECK-NEXT:         %18 = arith.constant 0xFF800000 : f32
// CHECK-NEXT:         %19 = arith.select %17, %14, %18 : f32
// CHECK-NEXT:         loop.yield %19
// CHECK-NEXT:       } : tensor<[1, 2, 3, 3, 1] x f32, strides [18, 9, 3, 1, 1]>
// CHECK-NEXT:       %20 = loop.compute par(i0: 1, i1: 2, i2: 3, i3: 3, i4: 1, i5: 17) -> map {
// CHECK-NEXT:         %21 = loop.read %3[i0, i1, i2, i3, i4, i5] : f32
// CHECK-NEXT:         %22 = loop.read %13[i0, i1, i2, i3, i4] : f32
// CHECK-NEXT:         %23 = loop.index {expression = #sym<i2*17 + i5>} : index
// CHECK-NEXT:         %24 = arith.constant 50 : index
// CHECK-NEXT:         %25 = arith.cmpi slt, %23, %24 : index
// CHECK-NEXT:         %26 = arith.constant 0xFF800000 : f32
// CHECK-NEXT:         %27 = arith.cmpf oeq, %22, %26 : f32
// CHECK-NEXT:         %28 = arith.constant 0.0 : f32
// CHECK-NEXT:         %29 = arith.select %27, %28, %22 : f32
// CHECK-NEXT:         %30 = arith.select %25, %21, %26 : f32
// CHECK-NEXT:         %31 = arith.subf %30, %29 : f32
// CHECK-NEXT:         %32 = math.exp %31 {nonpositive} : f32
// CHECK-NEXT:         loop.yield %32
// CHECK-NEXT:       } : tensor<[1, 2, 3, 3, 1, 17] x f32, strides [306, 153, 51, 17, 17, 1]>
// CHECK-NEXT:       %33 = loop.compute par(i0: 1, i1: 2, i2: 3, i3: 3, i4: 1) red(i5: 17) -> reduce(sum, f32) {
// CHECK-NEXT:         %34 = loop.read %20[i0, i1, i2, i3, i4, i5] : f32
// CHECK-NEXT:         loop.yield %34
// CHECK-NEXT:       } : tensor<[1, 2, 3, 3, 1] x f32, strides [18, 9, 3, 1, 1]>
// CHECK-NEXT:       %35 = loop.compute par(i0: 1, i1: 2, i2: 3, i3: 3, i4: 1, i5: 8) red(i6: 17) -> reduce(sum, f32) schedule #loop.schedule<gpu> {
// CHECK-NEXT:         %36 = loop.read %20[i0, i1, i2, i3, i4, i6] : f32
// CHECK-NEXT:         %37 = loop.index {expression = #sym<i2*17 + i6>} : index
// CHECK-NEXT:         %38 = arith.constant 50 : index
// CHECK-NEXT:         %39 = arith.cmpi slt, %37, %38 : index
// CHECK-NEXT:         %40 = arith.truncf %36 : f32 to bf16
// CHECK-NEXT:         %41 = arith.extf %40 : bf16 to f32
// CHECK-NEXT:         %42 = arith.constant 0.0 : bf16
// CHECK-NEXT:         %43 = loop.read %v[i0, i1, i2*17 + i6, i5] (where %39 else %42) : bf16
// CHECK-NEXT:         %44 = arith.extf %43 : bf16 to f32
// CHECK-NEXT:         %45 = arith.mulf %41, %44 : f32
// CHECK-NEXT:         loop.yield %45
// CHECK-NEXT:       } : tensor<[1, 2, 3, 3, 1, 8] x f32, strides [144, 72, 24, 8, 8, 1]>
// CHECK-NEXT:       loop.yield %13, %33, %35
// CHECK-NEXT:     } : tensor<[1, 2, 3, 3, 1] x f32, strides [18, 9, 3, 1, 1]>, tensor<[1, 2, 3, 3, 1] x f32, strides [18, 9, 3, 1, 1]>, tensor<[1, 2, 3, 3, 1, 8] x f32, strides [144, 72, 24, 8, 8, 1]>
// CHECK-NEXT:     %46 = loop.compute par(i0: 1, i1: 2, i2: 3, i3: 1) red(i4: 3) -> reduce(max, f32) {
// CHECK-NEXT:       %47 = loop.read %0[i0, i1, i4, i2, i3] : f32
// CHECK-NEXT:       loop.yield %47
// CHECK-NEXT:     } : tensor<[1, 2, 3, 1] x f32, strides [6, 3, 1, 1]>
// CHECK-NEXT:     %48 = loop.compute par(i0: 1, i1: 2, i2: 3, i3: 1) red(i4: 3) -> reduce(sum, f32) {
// CHECK-NEXT:       %49 = loop.read %1[i0, i1, i4, i2, i3] : f32
// CHECK-NEXT:       %50 = loop.read %0[i0, i1, i4, i2, i3] : f32
// CHECK-NEXT:       %51 = loop.read %46[i0, i1, i2, i3] : f32
// CHECK-NEXT:       %52 = arith.constant 0xFF800000 : f32
// CHECK-NEXT:       %53 = arith.cmpf oeq, %51, %52 : f32
// CHECK-NEXT:       %54 = arith.constant 0.0 : f32
// CHECK-NEXT:       %55 = arith.select %53, %54, %51 : f32
// CHECK-NEXT:       %56 = arith.subf %50, %55 : f32
// CHECK-NEXT:       %57 = math.exp %56 {nonpositive} : f32
// CHECK-NEXT:       %58 = arith.mulf %49, %57 : f32
// CHECK-NEXT:       loop.yield %58
// CHECK-NEXT:     } : tensor<[1, 2, 3, 1] x f32, strides [6, 3, 1, 1]>
// CHECK-NEXT:     %59 = loop.compute par(i0: 1, i1: 2, i2: 3, i3: 1, i4: 8) red(i5: 3) -> reduce(sum, f32) {
// CHECK-NEXT:       %60 = loop.read %2[i0, i1, i5, i2, i3, i4] : f32
// CHECK-NEXT:       %61 = loop.read %0[i0, i1, i5, i2, i3] : f32
// CHECK-NEXT:       %62 = loop.read %46[i0, i1, i2, i3] : f32
// CHECK-NEXT:       %63 = arith.constant 0xFF800000 : f32
// CHECK-NEXT:       %64 = arith.cmpf oeq, %62, %63 : f32
// CHECK-NEXT:       %65 = arith.constant 0.0 : f32
// CHECK-NEXT:       %66 = arith.select %64, %65, %62 : f32
// CHECK-NEXT:       %67 = arith.subf %61, %66 : f32
// CHECK-NEXT:       %68 = math.exp %67 {nonpositive} : f32
// CHECK-NEXT:       %69 = arith.mulf %60, %68 : f32
// CHECK-NEXT:       loop.yield %69
// CHECK-NEXT:     } : tensor<[1, 2, 3, 1, 8] x f32, strides [48, 24, 8, 8, 1]>
// CHECK-NEXT:     %70 = loop.compute par(i0: 1, i1: 2, i2: 3, i3: 1, i4: 8) -> map {
// CHECK-NEXT:       %71 = loop.read %59[i0, i1, i2, i3, i4] : f32
// CHECK-NEXT:       %72 = loop.read %48[i0, i1, i2, i3] : f32
// CHECK-NEXT:       %73 = arith.divf %71, %72 : f32
// CHECK-NEXT:       loop.yield %73
// CHECK-NEXT:     } : tensor<[1, 2, 3, 1, 8] x f32, strides [48, 24, 8, 8, 1]>
// CHECK-NEXT:     %y = layout.view %70 {offset = #sym<0>} : (tensor<[1, 2, 3, 1, 8] x f32, strides [48, 24, 8, 8, 1]>) -> tensor<[1, 6, 1, 8] x f32, strides [48, 8, 8, 1]>
// CHECK-NEXT:     return %y : tensor<[1, 6, 1, 8] x f32, strides [48, 8, 8, 1]>
// CHECK-NEXT:   }
// CHECK-NEXT: }
