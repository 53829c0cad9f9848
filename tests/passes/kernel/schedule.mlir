// The pass schedule: two vectors of 256 bits have sixteen lanes of 32.
// RUN: --schedule='vector_bits=256' --target=avx512
// VALUES: schedule{vector_bits=256}

func.func @main(%x: tensor<[64] x f32, strides [1]>) -> tensor<[64] x f32, strides [1]> attributes {level = "loop"} {
  %y = loop.compute par(i0: 64) -> map {
    %a = loop.read %x[i0] : f32
    %b = arith.mulf %a, %a : f32
    loop.yield %b
  } : tensor<[64] x f32, strides [1]>
  return %y : tensor<[64] x f32, strides [1]>
}

// CHECK: builtin.module attributes {irc.target = #irc.target<avx512>} {
// CHECK-NEXT:   func.func @main(%x: tensor<[64] x f32, strides [1]>) -> tensor<[64] x f32, strides [1]> attributes {level = "loop"} {
// CHECK-NEXT:     %y = loop.compute par(i0: 64) -> map schedule #loop.schedule<cpu, block = 0 : i64, collapse = [], copies = 1 : i64, lanes = 16 : i64, order = [], outer = [], spans = 5 : i64, tail = "mask", tile_axis = "", vector_axis = "i0"> {
// CHECK-NEXT:       %a = loop.read %x[i0] : f32
// CHECK-NEXT:       %b = arith.mulf %a, %a : f32
// CHECK-NEXT:       loop.yield %b
// CHECK-NEXT:     } : tensor<[64] x f32, strides [1]>
// CHECK-NEXT:     return %y : tensor<[64] x f32, strides [1]>
// CHECK-NEXT:   }
// CHECK-NEXT: }
