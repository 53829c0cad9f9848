// The pass elide-rounding: a value that is narrowed and widened again keeps its wide value.
// RUN: --elide-rounding
// VALUES: elide-rounding

func.func @main(%x: tensor<[4] x bf16, strides [1]>) -> tensor<[4] x bf16, strides [1]> attributes {level = "loop"} {
  %y = loop.compute par(i0: 4) -> map {
    %a = loop.read %x[i0] : bf16
    %w = arith.extf %a : (bf16) -> f32
    %e = math.exp %w : f32
    %n = arith.truncf %e : (f32) -> bf16
    %v = arith.extf %n : (bf16) -> f32
    %z = arith.mulf %v, %v : f32
    %r = arith.truncf %z : (f32) -> bf16
    loop.yield %r
  } : tensor<[4] x bf16, strides [1]>
  func.return %y : tensor<[4] x bf16, strides [1]>
}

// A rounded value that is chosen or not is widened before the choice.
func.func @choice(%x: tensor<[4] x bf16, strides [1]>) -> tensor<[4] x bf16, strides [1]> attributes {level = "loop"} {
  %y = loop.compute par(i0: 4) -> map {
    %a = loop.read %x[i0] : bf16
    %w = arith.extf %a : (bf16) -> f32
    %e = math.exp %w : f32
    %n = arith.truncf %e : (f32) -> bf16
    %zero = arith.constant {value = 0.0 : f32} : f32
    %c = arith.cmpf %w, %zero {predicate = "olt"} : (f32, f32) -> i1
    %s = arith.select %c, %a, %n : (i1, bf16, bf16) -> bf16
    %v = arith.extf %s : (bf16) -> f32
    %z = arith.mulf %v, %v : f32
    %r = arith.truncf %z : (f32) -> bf16
    loop.yield %r
  } : tensor<[4] x bf16, strides [1]>
  func.return %y : tensor<[4] x bf16, strides [1]>
}

// CHECK: builtin.module {
// CHECK-NEXT:   func.func @main(%x: tensor<[4] x bf16, strides [1]>) -> tensor<[4] x bf16, strides [1]> attributes {level = "loop"} {
// CHECK-NEXT:     %y = loop.compute par(i0: 4) -> map {
// CHECK-NEXT:       %a = loop.read %x[i0] : bf16
// CHECK-NEXT:       %w = arith.extf %a : (bf16) -> f32
// CHECK-NEXT:       %e = math.exp %w : f32
// CHECK-NEXT:       %z = arith.mulf %e, %e : f32
// CHECK-NEXT:       %r = arith.truncf %z : (f32) -> bf16
// CHECK-NEXT:       loop.yield %r
// CHECK-NEXT:     } : tensor<[4] x bf16, strides [1]>
// CHECK-NEXT:     func.return %y : tensor<[4] x bf16, strides [1]>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @choice(%x: tensor<[4] x bf16, strides [1]>) -> tensor<[4] x bf16, strides [1]> attributes {level = "loop"} {
// CHECK-NEXT:     %y = loop.compute par(i0: 4) -> map {
// CHECK-NEXT:       %a = loop.read %x[i0] : bf16
// CHECK-NEXT:       %w = arith.extf %a : (bf16) -> f32
// CHECK-NEXT:       %e = math.exp %w : f32
// CHECK-NEXT:       %zero = arith.constant {value = 0.0 : f32} : f32
// CHECK-NEXT:       %c = arith.cmpf %w, %zero {predicate = "olt"} : (f32, f32) -> i1
// CHECK-NEXT:       %v = arith.select %c, %w, %e : (i1, f32, f32) -> f32
// CHECK-NEXT:       %z = arith.mulf %v, %v : f32
// CHECK-NEXT:       %r = arith.truncf %z : (f32) -> bf16
// CHECK-NEXT:       loop.yield %r
// CHECK-NEXT:     } : tensor<[4] x bf16, strides [1]>
// CHECK-NEXT:     func.return %y : tensor<[4] x bf16, strides [1]>
// CHECK-NEXT:   }
// CHECK-NEXT: }
