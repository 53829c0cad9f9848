// The pass round-stores: what all readers narrow alike is stored narrow.
// RUN: --round-stores
// VALUES: round-stores

func.func @main(%x: tensor<[4, 8] x f32, strides [8, 1]>) -> (tensor<[4, 3] x bf16, strides [3, 1]>, tensor<[4] x f32, strides [1]>) attributes {level = "loop"} {
  %m = loop.compute par(i0: 4) red(i1: 8) -> reduce(max, f32) {
    %a = loop.read %x[i0, i1] : f32
    loop.yield %a
  } : tensor<[4] x f32, strides [1]>
  %y = loop.compute par(i0: 4, i1: 3) -> map {
    %a = loop.read %m[i0] : f32
    %b = arith.truncf %a : f32 to bf16
    loop.yield %b
  } : tensor<[4, 3] x bf16, strides [3, 1]>
  %z = loop.compute par(i0: 4) -> map {
    %a = loop.read %m[i0] : f32
    %b = arith.truncf %a : f32 to bf16
    %c = arith.extf %b : bf16 to f32
    %d = math.exp %c : f32
    loop.yield %d
  } : tensor<[4] x f32, strides [1]>
  return %y, %z : tensor<[4, 3] x bf16, strides [3, 1]>, tensor<[4] x f32, strides [1]>
}

// CHECK: builtin.module {
// CHECK-NEXT:   func.func @main(%x: tensor<[4, 8] x f32, strides [8, 1]>) -> (tensor<[4, 3] x bf16, strides [3, 1]>, tensor<[4] x f32, strides [1]>) attributes {level = "loop"} {
// CHECK-NEXT:     %m = loop.group (i0: 4) {
// CHECK-NEXT:       %m_0 = loop.compute par(i0: 4) red(i1: 8) -> reduce(max, f32) {
// CHECK-NEXT:         %a = loop.read %x[i0, i1] : f32
// CHECK-NEXT:         loop.yield %a
// CHECK-NEXT:       } : tensor<[4] x f32, strides [1]>
// CHECK-NEXT:       %m_1 = loop.compute par(i0: 4) -> map {
// CHECK-NEXT:         %0 = loop.read %m_0[i0] : f32
// CHECK-NEXT:         %1 = arith.truncf %0 : f32 to bf16
// CHECK-NEXT:         loop.yield %1
// CHECK-NEXT:       } : tensor<[4] x bf16, strides [1]>
// CHECK-NEXT:       loop.yield %m_1
// CHECK-NEXT:     } : tensor<[4] x bf16, strides [1]>
// CHECK-NEXT:     %y = loop.compute par(i0: 4, i1: 3) -> map {
// CHECK-NEXT:       %a_0 = loop.read %m[i0] : bf16
// CHECK-NEXT:       loop.yield %a_0
// CHECK-NEXT:     } : tensor<[4, 3] x bf16, strides [3, 1]>
// CHECK-NEXT:     %z = loop.compute par(i0: 4) -> map {
// CHECK-NEXT:       %a_1 = loop.read %m[i0] : bf16
// CHECK-NEXT:       %c = arith.extf %a_1 : bf16 to f32
// CHECK-NEXT:       %d = math.exp %c : f32
// CHECK-NEXT:       loop.yield %d
// CHECK-NEXT:     } : tensor<[4] x f32, strides [1]>
// CHECK-NEXT:     return %y, %z : tensor<[4, 3] x bf16, strides [3, 1]>, tensor<[4] x f32, strides [1]>
// CHECK-NEXT:   }
// CHECK-NEXT: }
