// The pass choose-contractions: where only kernels of irc's are allowed, an addmm of bf16 is summed
// up and added to in f32 and rounded once; of two convolutions one has windows and one has none; a
// call that says who computes it is asked nothing.
// RUN: --choose-contractions='products=IRC convolutions=CPP' --target=avx2
// VALUES: choose-contractions{products=IRC convolutions=IRC}
// VALUES: choose-contractions{products=CPP convolutions=IRC},graph-to-layout,convert-to-loop
// VALUES: choose-contractions

func.func @main(%c: tensor<8xbf16>, %a: tensor<4x6xbf16>, %b: tensor<6x8xbf16>) -> tensor<4x8xbf16> attributes {level = "graph"} {
  %y = graph.call_aten %c, %a, %b {callee = "aten.addmm.default", arguments = {self = #aten.operand<0>, mat1 = #aten.operand<1>, mat2 = #aten.operand<2>, beta = 2 : i64, alpha = 0.5 : f64}, eager_strides = [#sym.dims<[8, 1]>]} : (tensor<8xbf16>, tensor<4x6xbf16>, tensor<6x8xbf16>) -> tensor<4x8xbf16>
  return %y : tensor<4x8xbf16>
}

func.func @batched(%c: tensor<4x8xf32>, %a: tensor<2x4x6xf32>, %b: tensor<2x6x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x8xf32>) attributes {level = "graph"} {
  %y = graph.call_aten %c, %a, %b {callee = "aten.baddbmm.default", arguments = {self = #aten.operand<0>, batch1 = #aten.operand<1>, batch2 = #aten.operand<2>, beta = 0 : i64}, eager_strides = [#sym.dims<[32, 8, 1]>]} : (tensor<4x8xf32>, tensor<2x4x6xf32>, tensor<2x6x8xf32>) -> tensor<2x4x8xf32>
  %z = graph.call_aten %a, %b {callee = "aten.bmm.default", arguments = {self = #aten.operand<0>, mat2 = #aten.operand<1>}, backend = "aten", eager_strides = [#sym.dims<[32, 8, 1]>]} : (tensor<2x4x6xf32>, tensor<2x6x8xf32>) -> tensor<2x4x8xf32>
  return %y, %z : tensor<2x4x8xf32>, tensor<2x4x8xf32>
}

func.func @images(%x: tensor<2x4x9x8xf32>, %w: tensor<6x2x3x1xf32>, %b: tensor<6xf32>, %v: tensor<3x4x1x1xf32>) -> (tensor<2x6x5x8xf32>, tensor<2x3x5x4xf32>) attributes {level = "graph"} {
  %y = graph.call_aten %x, %w, %b {callee = "aten.convolution.default", arguments = {input = #aten.operand<0>, weight = #aten.operand<1>, bias = #aten.operand<2>, stride = [2 : i64, 1 : i64], padding = [1 : i64, 0 : i64], dilation = [1 : i64], transposed = false, output_padding = [0 : i64, 0 : i64], groups = 2 : i64}, eager_strides = [#sym.dims<[240, 40, 8, 1]>]} : (tensor<2x4x9x8xf32>, tensor<6x2x3x1xf32>, tensor<6xf32>) -> tensor<2x6x5x8xf32>
  %z = graph.call_aten %x, %v {callee = "aten.convolution.default", arguments = {input = #aten.operand<0>, weight = #aten.operand<1>, bias = #aten.none, stride = [2 : i64], padding = [0 : i64], dilation = [1 : i64], transposed = false, output_padding = [0 : i64], groups = 1 : i64}, eager_strides = [#sym.dims<[60, 20, 4, 1]>]} : (tensor<2x4x9x8xf32>, tensor<3x4x1x1xf32>) -> tensor<2x3x5x4xf32>
  return %y, %z : tensor<2x6x5x8xf32>, tensor<2x3x5x4xf32>
}

// CHECK: builtin.module attributes {irc.target = #irc.target<avx2>} {
// CHECK-NEXT:   func.func @main(%c: tensor<8xbf16>, %a: tensor<4x6xbf16>, %b: tensor<6x8xbf16>) -> tensor<4x8xbf16> attributes {level = "graph"} {
// CHECK-NEXT:     %0 = graph.dot_general %a, %b {accumulator = f32, left_batch = array<i64>, left_depth = array<i64: 1>, right_batch = array<i64>, right_depth = array<i64: 0>} : (tensor<4x6xbf16>, tensor<6x8xbf16>) -> tensor<4x8xf32>
// CHECK-NEXT:     %1 = graph.full {value = 0.5 : f32} : tensor<4x8xf32>
// CHECK-NEXT:     %2 = graph.mul %0, %1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:     %3 = graph.cast %c : (tensor<8xbf16>) -> tensor<8xf32>
// CHECK-NEXT:     %4 = graph.full {value = 2.0 : f32} : tensor<8xf32>
// CHECK-NEXT:     %5 = graph.mul %3, %4 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT:     %6 = graph.broadcast %5 {dims = array<i64: 1>} : (tensor<8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:     %7 = graph.add %2, %6 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:     %y = graph.cast %7 : (tensor<4x8xf32>) -> tensor<4x8xbf16>
// CHECK-NEXT:     return %y : tensor<4x8xbf16>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @batched(%c: tensor<4x8xf32>, %a: tensor<2x4x6xf32>, %b: tensor<2x6x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x8xf32>) attributes {level = "graph"} {
// CHECK-NEXT:     %y = graph.dot_general %a, %b {accumulator = f32, left_batch = array<i64: 0>, left_depth = array<i64: 2>, right_batch = array<i64: 0>, right_depth = array<i64: 1>} : (tensor<2x4x6xf32>, tensor<2x6x8xf32>) -> tensor<2x4x8xf32>
// CHECK-NEXT:     %z = graph.call_aten %a, %b {arguments = {mat2 = #aten.operand<1>, self = #aten.operand<0>}, backend = "aten", callee = "aten.bmm.default", eager_strides = [#sym.dims<[32, 8, 1]>]} : (tensor<2x4x6xf32>, tensor<2x6x8xf32>) -> tensor<2x4x8xf32>
// CHECK-NEXT:     return %y, %z : tensor<2x4x8xf32>, tensor<2x4x8xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @images(%x: tensor<2x4x9x8xf32>, %w: tensor<6x2x3x1xf32>, %b: tensor<6xf32>, %v: tensor<3x4x1x1xf32>) -> (tensor<2x6x5x8xf32>, tensor<2x3x5x4xf32>) attributes {level = "graph"} {
// CHECK-NEXT:     %0 = graph.pad %x {high = #sym.dims<[0, 0, 1, 0]>, low = #sym.dims<[0, 0, 1, 0]>, value = 0.0 : f32} : (tensor<2x4x9x8xf32>) -> tensor<2x4x11x8xf32>
// CHECK-NEXT:     %1 = graph.reshape %0 : (tensor<2x4x11x8xf32>) -> tensor<2x2x2x11x8xf32>
// CHECK-NEXT:     %2 = graph.window %1 {dilation = 1 : i64, dim = 3 : i64, step = 2 : i64} : (tensor<2x2x2x11x8xf32>) -> tensor<2x2x2x5x8x3xf32>
// CHECK-NEXT:     %3 = graph.reshape %w : (tensor<6x2x3x1xf32>) -> tensor<2x3x2x3xf32>
// CHECK-NEXT:     %4 = graph.dot_general %2, %3 {accumulator = f32, left_batch = array<i64: 1>, left_depth = array<i64: 2, 5>, right_batch = array<i64: 0>, right_depth = array<i64: 2, 3>} : (tensor<2x2x2x5x8x3xf32>, tensor<2x3x2x3xf32>) -> tensor<2x2x5x8x3xf32>
// CHECK-NEXT:     %5 = graph.reshape %b : (tensor<6xf32>) -> tensor<2x3xf32>
// CHECK-NEXT:     %6 = graph.broadcast %5 {dims = array<i64: 0, 4>} : (tensor<2x3xf32>) -> tensor<2x2x5x8x3xf32>
// CHECK-NEXT:     %7 = graph.add %4, %6 : (tensor<2x2x5x8x3xf32>, tensor<2x2x5x8x3xf32>) -> tensor<2x2x5x8x3xf32>
// CHECK-NEXT:     %8 = graph.permute %7 {permutation = array<i64: 1, 0, 4, 2, 3>} : (tensor<2x2x5x8x3xf32>) -> tensor<2x2x3x5x8xf32>
// CHECK-NEXT:     %y = graph.reshape %8 : (tensor<2x2x3x5x8xf32>) -> tensor<2x6x5x8xf32>
// CHECK-NEXT:     %9 = graph.slice %x {dim = 2 : i64, start = #sym<0>, step = 2 : i64} : (tensor<2x4x9x8xf32>) -> tensor<2x4x5x8xf32>
// CHECK-NEXT:     %10 = graph.slice %9 {dim = 3 : i64, start = #sym<0>, step = 2 : i64} : (tensor<2x4x5x8xf32>) -> tensor<2x4x5x4xf32>
// CHECK-NEXT:     %11 = graph.reshape %v : (tensor<3x4x1x1xf32>) -> tensor<3x4xf32>
// CHECK-NEXT:     %12 = graph.dot_general %10, %11 {accumulator = f32, left_batch = array<i64>, left_depth = array<i64: 1>, right_batch = array<i64>, right_depth = array<i64: 1>} : (tensor<2x4x5x4xf32>, tensor<3x4xf32>) -> tensor<2x5x4x3xf32>
// CHECK-NEXT:     %z = graph.permute %12 {permutation = array<i64: 0, 3, 1, 2>} : (tensor<2x5x4x3xf32>) -> tensor<2x3x5x4xf32>
// CHECK-NEXT:     return %y, %z : tensor<2x6x5x8xf32>, tensor<2x3x5x4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
