// The pass share-reads: windows of a row's places share what they read, so that the row is each member's own; a sum of rows that share nothing stays as it is.
// RUN: --share-reads --target=avx2
// VALUES: share-reads

func.func @windows(%x: tensor<[11, 16, 64] x f32, strides [1024, 64, 1]>, %w: tensor<[3, 3, 64] x f32, strides [192, 64, 1]>) -> tensor<[9, 14, 64] x f32, strides [896, 64, 1]> attributes {level = "loop"} {
  %y = loop.group (i0: 9, i1: 14, i2: 64) {
    %s = loop.compute par(i0: 9, i1: 14, i2: 64) red(i3: 3, i4: 3) -> reduce(sum, f32) {
      %a = loop.read %x[i0 + i3, i1 + i4, i2] : f32
      %b = loop.read %w[i3, i4, i2] : f32
      %c = arith.mulf %a, %b : f32
      loop.yield %c
    } : tensor<[9, 14, 64] x f32, strides [896, 64, 1]>
    %t = loop.compute par(i0: 9, i1: 14, i2: 64) -> map {
      %d = loop.read %s[i0, i1, i2] : f32
      %e = arith.negf %d : f32
      loop.yield %e
    } : tensor<[9, 14, 64] x f32, strides [896, 64, 1]>
    loop.yield %t
  } : tensor<[9, 14, 64] x f32, strides [896, 64, 1]>
  return %y : tensor<[9, 14, 64] x f32, strides [896, 64, 1]>
}

func.func @alone(%x: tensor<[11, 16, 64] x f32, strides [1024, 64, 1]>, %w: tensor<[3, 3, 64] x f32, strides [192, 64, 1]>) -> tensor<[9, 14, 64] x f32, strides [896, 64, 1]> attributes {level = "loop"} {
  %s = loop.compute par(i0: 9, i1: 14, i2: 64) red(i3: 3, i4: 3) -> reduce(max, f32) {
    %a = loop.read %x[i0 + i3, i1 + i4, i2] : f32
    %b = loop.read %w[i3, i4, i2] : f32
    %c = arith.mulf %a, %b : f32
    loop.yield %c
  } : tensor<[9, 14, 64] x f32, strides [896, 64, 1]>
  return %s : tensor<[9, 14, 64] x f32, strides [896, 64, 1]>
}

func.func @apart(%x: tensor<[9, 14, 9, 64] x f32, strides [8064, 576, 64, 1]>) -> tensor<[9, 14, 64] x f32, strides [896, 64, 1]> attributes {level = "loop"} {
  %s = loop.compute par(i0: 9, i1: 14, i2: 64) red(i3: 9) -> reduce(max, f32) {
    %a = loop.read %x[i0, i1, i3, i2] : f32
    loop.yield %a
  } : tensor<[9, 14, 64] x f32, strides [896, 64, 1]>
  return %s : tensor<[9, 14, 64] x f32, strides [896, 64, 1]>
}

// CHECK: builtin.module attributes {irc.target = #irc.target<avx2>} {
// CHECK-NEXT:   func.func @windows(%x: tensor<[11, 16, 64] x f32, strides [1024, 64, 1]>, %w: tensor<[3, 3, 64] x f32, strides [192, 64, 1]>) -> tensor<[9, 14, 64] x f32, strides [896, 64, 1]> attributes {level = "loop"} {
// CHECK-NEXT:     %y = loop.group (i0: 9) {
// CHECK-NEXT:       %s = loop.compute par(i0: 9, i1: 14, i2: 64) red(i3: 3, i4: 3) -> reduce(sum, f32) {
// CHECK-NEXT:         %a = loop.read %x[i0 + i3, i1 + i4, i2] : f32
// CHECK-NEXT:         %b = loop.read %w[i3, i4, i2] : f32
// CHECK-NEXT:         %c = arith.mulf %a, %b : f32
// CHECK-NEXT:         loop.yield %c
// CHECK-NEXT:       } : tensor<[9, 14, 64] x f32, strides [896, 64, 1]>
// CHECK-NEXT:       %t = loop.compute par(i0: 9, i1: 14, i2: 64) -> map {
// CHECK-NEXT:         %d = loop.read %s[i0, i1, i2] : f32
// CHECK-NEXT:         %e = arith.negf %d : f32
// CHECK-NEXT:         loop.yield %e
// CHECK-NEXT:       } : tensor<[9, 14, 64] x f32, strides [896, 64, 1]>
// CHECK-NEXT:       loop.yield %t
// CHECK-NEXT:     } : tensor<[9, 14, 64] x f32, strides [896, 64, 1]>
// CHECK-NEXT:     return %y : tensor<[9, 14, 64] x f32, strides [896, 64, 1]>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @alone(%x: tensor<[11, 16, 64] x f32, strides [1024, 64, 1]>, %w: tensor<[3, 3, 64] x f32, strides [192, 64, 1]>) -> tensor<[9, 14, 64] x f32, strides [896, 64, 1]> attributes {level = "loop"} {
// CHECK-NEXT:     %s = loop.group (i0: 9) {
// CHECK-NEXT:       %s_0 = loop.compute par(i0: 9, i1: 14, i2: 64) red(i3: 3, i4: 3) -> reduce(max, f32) {
// CHECK-NEXT:         %a = loop.read %x[i0 + i3, i1 + i4, i2] : f32
// CHECK-NEXT:         %b = loop.read %w[i3, i4, i2] : f32
// CHECK-NEXT:         %c = arith.mulf %a, %b : f32
// CHECK-NEXT:         loop.yield %c
// CHECK-NEXT:       } : tensor<[9, 14, 64] x f32, strides [896, 64, 1]>
// CHECK-NEXT:       loop.yield %s_0
// CHECK-NEXT:     } : tensor<[9, 14, 64] x f32, strides [896, 64, 1]>
// CHECK-NEXT:     return %s : tensor<[9, 14, 64] x f32, strides [896, 64, 1]>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @apart(%x: tensor<[9, 14, 9, 64] x f32, strides [8064, 576, 64, 1]>) -> tensor<[9, 14, 64] x f32, strides [896, 64, 1]> attributes {level = "loop"} {
// CHECK-NEXT:     %s = loop.compute par(i0: 9, i1: 14, i2: 64) red(i3: 9) -> reduce(max, f32) {
// CHECK-NEXT:       %a = loop.read %x[i0, i1, i3, i2] : f32
// CHECK-NEXT:       loop.yield %a
// CHECK-NEXT:     } : tensor<[9, 14, 64] x f32, strides [896, 64, 1]>
// CHECK-NEXT:     return %s : tensor<[9, 14, 64] x f32, strides [896, 64, 1]>
// CHECK-NEXT:   }
// CHECK-NEXT: }
