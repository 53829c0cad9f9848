// The pass panel-products: a constant right factor is laid out in panels of one vector of eight columns; others stay.
// RUN: --panel-products --target=avx2
// VALUES: panel-products

// A linear's weight, ten columns: six of the second panel are zeros.
func.func @linear(%x: tensor<3x2xf32>) -> tensor<3x10xf32> attributes {level = "graph"} {
  %w = graph.constant {value = dense<[[0.5, 1.0], [-2.0, 0.0], [3.0, 1.5], [-1.0, 0.25], [2.0, 1.0], [-0.5, 0.75], [2.0, 1.0], [-1.0, 0.5], [0.0, 4.0], [1.0, -3.0]]> : tensor<10x2xf32>} : tensor<10x2xf32>
  %t = graph.permute %w {permutation = array<i64: 1, 0>} : (tensor<10x2xf32>) -> tensor<2x10xf32>
  %y = graph.dot_general %x, %t {accumulator = f32, left_batch = array<i64>, left_depth = array<i64: 1>, right_batch = array<i64>, right_depth = array<i64: 0>, schedule = #loop.schedule<cpu, tile_vectors = 1 : i64>} : (tensor<3x2xf32>, tensor<2x10xf32>) -> tensor<3x10xf32>
  return %y : tensor<3x10xf32>
}

// A matrix that stands as it is multiplied, of whole panels.
func.func @matrix(%x: tensor<3x2xf32>) -> tensor<3x8xf32> attributes {level = "graph"} {
  %w = graph.constant {value = dense<[[0.5, 1.0, -2.0, 0.0, 3.0, 1.5, -1.0, 0.25], [2.0, 1.0, -0.5, 0.75, 2.0, 1.0, -1.0, 0.5]]> : tensor<2x8xf32>} : tensor<2x8xf32>
  %y = graph.dot_general %x, %w {accumulator = f32, left_batch = array<i64>, left_depth = array<i64: 1>, right_batch = array<i64>, right_depth = array<i64: 0>, schedule = #loop.schedule<cpu, tile_vectors = 1 : i64>} : (tensor<3x2xf32>, tensor<2x8xf32>) -> tensor<3x8xf32>
  return %y : tensor<3x8xf32>
}

// The schedule says nothing of vectors, and the weight is an argument.
func.func @neither(%x: tensor<3x2xf32>, %v: tensor<2x8xf32>) -> (tensor<3x8xf32>, tensor<3x8xf32>) attributes {level = "graph"} {
  %w = graph.constant {value = dense<0.5> : tensor<2x8xf32>} : tensor<2x8xf32>
  %y = graph.dot_general %x, %w {accumulator = f32, left_batch = array<i64>, left_depth = array<i64: 1>, right_batch = array<i64>, right_depth = array<i64: 0>} : (tensor<3x2xf32>, tensor<2x8xf32>) -> tensor<3x8xf32>
  %z = graph.dot_general %x, %v {accumulator = f32, left_batch = array<i64>, left_depth = array<i64: 1>, right_batch = array<i64>, right_depth = array<i64: 0>, schedule = #loop.schedule<cpu, tile_vectors = 1 : i64>} : (tensor<3x2xf32>, tensor<2x8xf32>) -> tensor<3x8xf32>
  return %y, %z : tensor<3x8xf32>, tensor<3x8xf32>
}

// CHECK: builtin.module attributes {irc.target = #irc.target<avx2>} {
// CHECK-NEXT:   func.func @linear(%x: tensor<3x2xf32>) -> tensor<3x10xf32> attributes {level = "graph"} {
// CHECK-NEXT:     %0 = graph.constant {value = dense<[[[0.5, -2.0, 3.0, -1.0, 2.0, -0.5, 2.0, -1.0], [1.0, 0.0, 1.5, 0.25, 1.0, 0.75, 1.0, 0.5]], [[0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [4.0, -3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]]> : tensor<2x2x8xf32>} : tensor<2x2x8xf32>
// CHECK-NEXT:     %1 = graph.permute %0 {permutation = array<i64: 0, 2, 1>} : (tensor<2x2x8xf32>) -> tensor<2x8x2xf32>
// CHECK-NEXT:     %2 = graph.reshape %1 : (tensor<2x8x2xf32>) -> tensor<16x2xf32>
// CHECK-NEXT:     %3 = graph.slice %2 {dim = 0 : i64, start = #sym<0>, step = 1 : i64} : (tensor<16x2xf32>) -> tensor<10x2xf32>
// CHECK-NEXT:     %4 = graph.permute %3 {permutation = array<i64: 1, 0>} : (tensor<10x2xf32>) -> tensor<2x10xf32>
// CHECK-NEXT:     %y = graph.dot_general %x, %4 {accumulator = f32, left_batch = array<i64>, left_depth = array<i64: 1>, right_batch = array<i64>, right_depth = array<i64: 0>, schedule = #loop.schedule<cpu, tile_vectors = 1 : i64>} : (tensor<3x2xf32>, tensor<2x10xf32>) -> tensor<3x10xf32>
// CHECK-NEXT:     return %y : tensor<3x10xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @matrix(%x: tensor<3x2xf32>) -> tensor<3x8xf32> attributes {level = "graph"} {
// CHECK-NEXT:     %0 = graph.constant {value = dense<[[[0.5, 1.0, -2.0, 0.0, 3.0, 1.5, -1.0, 0.25], [2.0, 1.0, -0.5, 0.75, 2.0, 1.0, -1.0, 0.5]]]> : tensor<1x2x8xf32>} : tensor<1x2x8xf32>
// CHECK-NEXT:     %1 = graph.permute %0 {permutation = array<i64: 0, 2, 1>} : (tensor<1x2x8xf32>) -> tensor<1x8x2xf32>
// CHECK-NEXT:     %2 = graph.reshape %1 : (tensor<1x8x2xf32>) -> tensor<8x2xf32>
// CHECK-NEXT:     %3 = graph.permute %2 {permutation = array<i64: 1, 0>} : (tensor<8x2xf32>) -> tensor<2x8xf32>
// CHECK-NEXT:     %y = graph.dot_general %x, %3 {accumulator = f32, left_batch = array<i64>, left_depth = array<i64: 1>, right_batch = array<i64>, right_depth = array<i64: 0>, schedule = #loop.schedule<cpu, tile_vectors = 1 : i64>} : (tensor<3x2xf32>, tensor<2x8xf32>) -> tensor<3x8xf32>
// CHECK-NEXT:     return %y : tensor<3x8xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @neither(%x: tensor<3x2xf32>, %v: tensor<2x8xf32>) -> (tensor<3x8xf32>, tensor<3x8xf32>) attributes {level = "graph"} {
// CHECK-NEXT:     %w = graph.constant {value = dense<0.5> : tensor<2x8xf32>} : tensor<2x8xf32>
// CHECK-NEXT:     %y = graph.dot_general %x, %w {accumulator = f32, left_batch = array<i64>, left_depth = array<i64: 1>, right_batch = array<i64>, right_depth = array<i64: 0>} : (tensor<3x2xf32>, tensor<2x8xf32>) -> tensor<3x8xf32>
// CHECK-NEXT:     %z = graph.dot_general %x, %v {accumulator = f32, left_batch = array<i64>, left_depth = array<i64: 1>, right_batch = array<i64>, right_depth = array<i64: 0>, schedule = #loop.schedule<cpu, tile_vectors = 1 : i64>} : (tensor<3x2xf32>, tensor<2x8xf32>) -> tensor<3x8xf32>
// CHECK-NEXT:     return %y, %z : tensor<3x8xf32>, tensor<3x8xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
