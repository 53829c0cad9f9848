// The pass tune: the second candidate has vectors of half the width; which is the fastest, a machine tells.
// RUN: --tune='take=1 least_points=64' --target=avx512
// VALUES: tune{take=1 least_points=64},form-kernels

func.func @main(%x: tensor<[64] x f32, strides [1]>) -> tensor<[64] x f32, strides [1]> attributes {level = "loop"} {
  %y = loop.compute par(i0: 64) -> map schedule #loop.schedule<cpu, block = 0 : i64, collapse = [], copies = 1 : i64, lanes = 16 : i64, order = [], outer = [], spans = 5 : i64, tail = "mask", tile_axis = "", vector_axis = "i0"> {
    %a = loop.read %x[i0] : f32
    %b = arith.mulf %a, %a : f32
    loop.yield %b
  } : tensor<[64] x f32, strides [1]>
  return %y : tensor<[64] x f32, strides [1]>
}

// CHECK: builtin.module attributes {irc.target = #irc.target<avx512>} {
// CHECK-NEXT:   func.func @main(%x: tensor<[64] x f32, strides [1]>) -> tensor<[64] x f32, strides [1]> attributes {level = "loop"} {
// CHECK-NEXT:     %y = loop.compute par(i0: 64) -> map schedule #loop.schedule<cpu, block = 0 : i64, collapse = [], copies = 1 : i64, lanes = 8 : i64, order = [], outer = [], spans = 5 : i64, tail = "mask", tile_axis = "", vector_axis = "i0"> {
// CHECK-NEXT:       %a = loop.read %x[i0] : f32
// CHECK-NEXT:       %b = arith.mulf %a, %a : f32
// CHECK-NEXT:       loop.yield %b
// CHECK-NEXT:     } : tensor<[64] x f32, strides [1]>
// CHECK-NEXT:     return %y : tensor<[64] x f32, strides [1]>
// CHECK-NEXT:   }
// CHECK-NEXT: }
