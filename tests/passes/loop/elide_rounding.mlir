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
// CHECK-NEXT: }
