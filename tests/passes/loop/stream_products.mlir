// The pass stream-products: a product, what is made of it, and the product of that over its columns
// are a group of rows; what is combined of the columns goes with it, and a map of the sums.
// RUN: --stream-products
// VALUES: stream-products

builtin.module attributes {irc.target = #irc.target<sm_90>} {
  func.func @main(%q: tensor<[2, 20, 16] x bf16, strides [320, 16, 1]>, %k: tensor<[2, 24, 16] x bf16, strides [384, 16, 1]>, %v: tensor<[2, 24, 8] x bf16, strides [192, 8, 1]>) -> tensor<[2, 20, 8] x f32, strides [160, 8, 1]> attributes {level = "loop"} {
    %s = loop.compute par(i0: 2, i1: 20, i2: 24) red(i3: 16) -> reduce(sum, f32) schedule #loop.schedule<gpu> {
      %a = loop.read %q[i0, i1, i3] : bf16
      %b = arith.extf %a : bf16 to f32
      %c = loop.read %k[i0, i2, i3] : bf16
      %d = arith.extf %c : bf16 to f32
      %e = arith.mulf %b, %d : f32
      loop.yield %e
    } : tensor<[2, 20, 24] x f32, strides [480, 24, 1]>
    %m = loop.compute par(i0: 2, i1: 20) red(i2: 24) -> reduce(max, f32) {
      %f = loop.read %s[i0, i1, i2] : f32
      loop.yield %f
    } : tensor<[2, 20] x f32, strides [20, 1]>
    %x = loop.compute par(i0: 2, i1: 20, i2: 24) -> map {
      %g = loop.read %s[i0, i1, i2] : f32
      %h = loop.read %m[i0, i1] : f32
      %low = arith.constant 0xFF800000 : f32
      %none = arith.cmpf oeq, %h, %low : f32
      %zero = arith.constant 0.0 : f32
      %top = arith.select %none, %zero, %h : f32
      %gap = arith.subf %g, %top : f32
      %power = math.exp %gap {nonpositive} : f32
      loop.yield %power
    } : tensor<[2, 20, 24] x f32, strides [480, 24, 1]>
    %t = loop.compute par(i0: 2, i1: 20) red(i2: 24) -> reduce(sum, f32) {
      %i = loop.read %x[i0, i1, i2] : f32
      loop.yield %i
    } : tensor<[2, 20] x f32, strides [20, 1]>
    %o = loop.compute par(i0: 2, i1: 20, i2: 8) red(i3: 24) -> reduce(sum, f32) schedule #loop.schedule<gpu> {
      %j = loop.read %x[i0, i1, i3] : f32
      %l = arith.truncf %j : f32 to bf16
      %n = arith.extf %l : bf16 to f32
      %p = loop.read %v[i0, i3, i2] : bf16
      %r = arith.extf %p : bf16 to f32
      %u = arith.mulf %n, %r : f32
      loop.yield %u
    } : tensor<[2, 20, 8] x f32, strides [160, 8, 1]>
    %y = loop.compute par(i0: 2, i1: 20, i2: 8) -> map {
      %w = loop.read %o[i0, i1, i2] : f32
      %z = loop.read %t[i0, i1] : f32
      %quotient = arith.divf %w, %z : f32
      loop.yield %quotient
    } : tensor<[2, 20, 8] x f32, strides [160, 8, 1]>
    return %y : tensor<[2, 20, 8] x f32, strides [160, 8, 1]>
  }
}

// CHECK: builtin.module attributes {irc.target = #irc.target<sm_90>} {
// CHECK-NEXT:   func.func @main(%q: tensor<[2, 20, 16] x bf16, strides [320, 16, 1]>, %k: tensor<[2, 24, 16] x bf16, strides [384, 16, 1]>, %v: tensor<[2, 24, 8] x bf16, strides [192, 8, 1]>) -> tensor<[2, 20, 8] x f32, strides [160, 8, 1]> attributes {level = "loop"} {
// CHECK-NEXT:     %y = loop.group (i0: 2, i1: 20) {
// CHECK-NEXT:       %s = loop.compute par(i0: 2, i1: 20, i2: 24) red(i3: 16) -> reduce(sum, f32) schedule #loop.schedule<gpu> {
// CHECK-NEXT:         %a = loop.read %q[i0, i1, i3] : bf16
// CHECK-NEXT:         %b = arith.extf %a : bf16 to f32
// CHECK-NEXT:         %c = loop.read %k[i0, i2, i3] : bf16
// CHECK-NEXT:         %d = arith.extf %c : bf16 to f32
// CHECK-NEXT:         %e = arith.mulf %b, %d : f32
// CHECK-NEXT:         loop.yield %e
// CHECK-NEXT:       } : tensor<[2, 20, 24] x f32, strides [480, 24, 1]>
// CHECK-NEXT:       %m = loop.compute par(i0: 2, i1: 20) red(i2: 24) -> reduce(max, f32) {
// CHECK-NEXT:         %f = loop.read %s[i0, i1, i2] : f32
// CHECK-NEXT:         loop.yield %f
// CHECK-NEXT:       } : tensor<[2, 20] x f32, strides [20, 1]>
// CHECK-NEXT:       %x = loop.compute par(i0: 2, i1: 20, i2: 24) -> map {
// CHECK-NEXT:         %g = loop.read %s[i0, i1, i2] : f32
// CHECK-NEXT:         %h = loop.read %m[i0, i1] : f32
// CHECK-NEXT:         %low = arith.constant 0xFF800000 : f32
// CHECK-NEXT:         %none = arith.cmpf oeq, %h, %low : f32
// CHECK-NEXT:         %zero = arith.constant 0.0 : f32
// CHECK-NEXT:         %top = arith.select %none, %zero, %h : f32
// CHECK-NEXT:         %gap = arith.subf %g, %top : f32
// CHECK-NEXT:         %power = math.exp %gap {nonpositive} : f32
// CHECK-NEXT:         loop.yield %power
// CHECK-NEXT:       } : tensor<[2, 20, 24] x f32, strides [480, 24, 1]>
// CHECK-NEXT:       %t = loop.compute par(i0: 2, i1: 20) red(i2: 24) -> reduce(sum, f32) {
// CHECK-NEXT:         %i = loop.read %x[i0, i1, i2] : f32
// CHECK-NEXT:         loop.yield %i
// CHECK-NEXT:       } : tensor<[2, 20] x f32, strides [20, 1]>
// CHECK-NEXT:       %o = loop.compute par(i0: 2, i1: 20, i2: 8) red(i3: 24) -> reduce(sum, f32) schedule #loop.schedule<gpu> {
// CHECK-NEXT:         %j = loop.read %x[i0, i1, i3] : f32
// CHECK-NEXT:         %l = arith.truncf %j : f32 to bf16
// CHECK-NEXT:         %n = arith.extf %l : bf16 to f32
// CHECK-NEXT:         %p = loop.read %v[i0, i3, i2] : bf16
// CHECK-NEXT:         %r = arith.extf %p : bf16 to f32
// CHECK-NEXT:         %u = arith.mulf %n, %r : f32
// CHECK-NEXT:         loop.yield %u
// CHECK-NEXT:       } : tensor<[2, 20, 8] x f32, strides [160, 8, 1]>
// CHECK-NEXT:       %y_0 = loop.compute par(i0: 2, i1: 20, i2: 8) -> map {
// CHECK-NEXT:         %w = loop.read %o[i0, i1, i2] : f32
// CHECK-NEXT:         %z = loop.read %t[i0, i1] : f32
// CHECK-NEXT:         %quotient = arith.divf %w, %z : f32
// CHECK-NEXT:         loop.yield %quotient
// CHECK-NEXT:       } : tensor<[2, 20, 8] x f32, strides [160, 8, 1]>
// CHECK-NEXT:       loop.yield %y_0
// CHECK-NEXT:     } : tensor<[2, 20, 8] x f32, strides [160, 8, 1]>
// CHECK-NEXT:     return %y : tensor<[2, 20, 8] x f32, strides [160, 8, 1]>
// CHECK-NEXT:   }
// CHECK-NEXT: }
