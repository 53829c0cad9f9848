// The pass fuse-epilogues: additions and activations move into packed operations.
// RUN: --fuse-epilogues
// VALUES: fuse-epilogues

func.func @residual(%x: tensor<2x2x5x4xf32>, %r: tensor<2x2x5x4xf32>) -> tensor<2x2x5x4xf32> attributes {level = "graph"} {
  %w = graph.constant {value = dense<[[[[0.5]], [[1.0]]], [[[2.0]], [[-1.0]]]]> : tensor<2x2x1x1xf32>} : tensor<2x2x1x1xf32>
  %p = graph.pack %w {dilation = array<i64: 1, 1>, format = "convolution", groups = 1 : i64, padding = array<i64: 0, 0>, stride = array<i64: 1, 1>} : (tensor<2x2x1x1xf32>) -> !graph.packed<tensor<2x2x1x1xf32>>
  %y = graph.packed_conv %x, %p {dilation = array<i64: 1, 1>, groups = 1 : i64, operandSegmentSizes = array<i64: 1, 1, 0, 0>, padding = array<i64: 0, 0>, stride = array<i64: 1, 1>} : (tensor<2x2x5x4xf32>, !graph.packed<tensor<2x2x1x1xf32>>) -> tensor<2x2x5x4xf32>
  %s = graph.add %y, %r : (tensor<2x2x5x4xf32>, tensor<2x2x5x4xf32>) -> tensor<2x2x5x4xf32>
  %zero = graph.full {value = 0.0 : f32} : tensor<2x2x5x4xf32>
  %z = graph.maximum %s, %zero : (tensor<2x2x5x4xf32>, tensor<2x2x5x4xf32>) -> tensor<2x2x5x4xf32>
  return %z : tensor<2x2x5x4xf32>
}

// A hardtanh holds what looks like a relu; what is read twice stays.
func.func @hardtanh(%x: tensor<2x2x5x4xf32>) -> (tensor<2x2x5x4xf32>, tensor<2x2x5x4xf32>, tensor<2x2x5x4xf32>) attributes {level = "graph"} {
  %w = graph.constant {value = dense<[[[[0.5]], [[1.0]]], [[[2.0]], [[-1.0]]]]> : tensor<2x2x1x1xf32>} : tensor<2x2x1x1xf32>
  %p = graph.pack %w {dilation = array<i64: 1, 1>, format = "convolution", groups = 1 : i64, padding = array<i64: 0, 0>, stride = array<i64: 1, 1>} : (tensor<2x2x1x1xf32>) -> !graph.packed<tensor<2x2x1x1xf32>>
  %y = graph.packed_conv %x, %p {dilation = array<i64: 1, 1>, groups = 1 : i64, operandSegmentSizes = array<i64: 1, 1, 0, 0>, padding = array<i64: 0, 0>, stride = array<i64: 1, 1>} : (tensor<2x2x5x4xf32>, !graph.packed<tensor<2x2x1x1xf32>>) -> tensor<2x2x5x4xf32>
  %zero = graph.full {value = 0.0 : f32} : tensor<2x2x5x4xf32>
  %six = graph.full {value = 6.0 : f32} : tensor<2x2x5x4xf32>
  %low = graph.maximum %y, %zero : (tensor<2x2x5x4xf32>, tensor<2x2x5x4xf32>) -> tensor<2x2x5x4xf32>
  %high = graph.minimum %low, %six : (tensor<2x2x5x4xf32>, tensor<2x2x5x4xf32>) -> tensor<2x2x5x4xf32>
  %q = graph.packed_conv %high, %p {dilation = array<i64: 1, 1>, groups = 1 : i64, operandSegmentSizes = array<i64: 1, 1, 0, 0>, padding = array<i64: 0, 0>, stride = array<i64: 1, 1>} : (tensor<2x2x5x4xf32>, !graph.packed<tensor<2x2x1x1xf32>>) -> tensor<2x2x5x4xf32>
  %a = graph.sigmoid %q : (tensor<2x2x5x4xf32>) -> tensor<2x2x5x4xf32>
  %b = graph.tanh %q : (tensor<2x2x5x4xf32>) -> tensor<2x2x5x4xf32>
  return %a, %b, %high : tensor<2x2x5x4xf32>, tensor<2x2x5x4xf32>, tensor<2x2x5x4xf32>
}

// Through the reshape between a linear and what follows it.
func.func @linear(%x: tensor<6x2xf32>, %r: tensor<2x3x3xf32>) -> (tensor<2x3x3xf32>, tensor<2x3x3xf32>) attributes {level = "graph"} {
  %w = graph.constant {value = dense<[[0.5, 1.0], [2.0, -1.0], [0.0, 4.0]]> : tensor<3x2xf32>} : tensor<3x2xf32>
  %p = graph.pack %w {format = "linear"} : (tensor<3x2xf32>) -> !graph.packed<tensor<3x2xf32>>
  %y = graph.packed_linear %x, %p {operandSegmentSizes = array<i64: 1, 1, 0, 0>} : (tensor<6x2xf32>, !graph.packed<tensor<3x2xf32>>) -> tensor<6x3xf32>
  %v = graph.reshape %y : (tensor<6x3xf32>) -> tensor<2x3x3xf32>
  %g = graph.sigmoid %v : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %s = graph.mul %v, %g : (tensor<2x3x3xf32>, tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %y2 = graph.packed_linear %x, %p {operandSegmentSizes = array<i64: 1, 1, 0, 0>} : (tensor<6x2xf32>, !graph.packed<tensor<3x2xf32>>) -> tensor<6x3xf32>
  %v2 = graph.reshape %y2 : (tensor<6x3xf32>) -> tensor<2x3x3xf32>
  %t = graph.add %v2, %r : (tensor<2x3x3xf32>, tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  return %s, %t : tensor<2x3x3xf32>, tensor<2x3x3xf32>
}

// What something else reads, too, stays; so does an addition of what has no memory of its own.
func.func @read_twice(%x: tensor<6x2xf32>) -> (tensor<2x3x3xf32>, tensor<6x3xf32>) attributes {level = "graph"} {
  %w = graph.constant {value = dense<[[0.5, 1.0], [2.0, -1.0], [0.0, 4.0]]> : tensor<3x2xf32>} : tensor<3x2xf32>
  %p = graph.pack %w {format = "linear"} : (tensor<3x2xf32>) -> !graph.packed<tensor<3x2xf32>>
  %y = graph.packed_linear %x, %p {operandSegmentSizes = array<i64: 1, 1, 0, 0>} : (tensor<6x2xf32>, !graph.packed<tensor<3x2xf32>>) -> tensor<6x3xf32>
  %v = graph.reshape %y : (tensor<6x3xf32>) -> tensor<2x3x3xf32>
  %g = graph.tanh %v : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  return %g, %y : tensor<2x3x3xf32>, tensor<6x3xf32>
}

func.func @added(%x: tensor<6x2xf32>, %b: tensor<3xf32>, %r: tensor<6x3xf32>) -> (tensor<6x3xf32>, tensor<6x3xf32>, tensor<6x3xf32>) attributes {level = "graph"} {
  %w = graph.constant {value = dense<[[0.5, 1.0], [2.0, -1.0], [0.0, 4.0]]> : tensor<3x2xf32>} : tensor<3x2xf32>
  %p = graph.pack %w {format = "linear"} : (tensor<3x2xf32>) -> !graph.packed<tensor<3x2xf32>>
  %y = graph.packed_linear %x, %p {operandSegmentSizes = array<i64: 1, 1, 0, 0>} : (tensor<6x2xf32>, !graph.packed<tensor<3x2xf32>>) -> tensor<6x3xf32>
  %wide = graph.broadcast %b {dims = array<i64: 1>} : (tensor<3xf32>) -> tensor<6x3xf32>
  %s = graph.add %y, %wide : (tensor<6x3xf32>, tensor<6x3xf32>) -> tensor<6x3xf32>
  %z = graph.packed_linear %x, %p {operandSegmentSizes = array<i64: 1, 1, 0, 0>} : (tensor<6x2xf32>, !graph.packed<tensor<3x2xf32>>) -> tensor<6x3xf32>
  %two = graph.full {value = 2.0 : f32} : tensor<6x3xf32>
  %t = graph.add %two, %z : (tensor<6x3xf32>, tensor<6x3xf32>) -> tensor<6x3xf32>
  %q = graph.packed_linear %x, %p {operandSegmentSizes = array<i64: 1, 1, 0, 0>} : (tensor<6x2xf32>, !graph.packed<tensor<3x2xf32>>) -> tensor<6x3xf32>
  %u = graph.add %q, %q : (tensor<6x3xf32>, tensor<6x3xf32>) -> tensor<6x3xf32>
  return %s, %t, %u : tensor<6x3xf32>, tensor<6x3xf32>, tensor<6x3xf32>
}

// After an activation nothing is added, and no second activation follows.
func.func @once(%x: tensor<6x2xf32>, %r: tensor<6x3xf32>) -> (tensor<6x3xf32>, tensor<6x3xf32>, tensor<6x3xf32>) attributes {level = "graph"} {
  %w = graph.constant {value = dense<[[0.5, 1.0], [2.0, -1.0], [0.0, 4.0]]> : tensor<3x2xf32>} : tensor<3x2xf32>
  %p = graph.pack %w {format = "linear"} : (tensor<3x2xf32>) -> !graph.packed<tensor<3x2xf32>>
  %y = graph.packed_linear %x, %p {operandSegmentSizes = array<i64: 1, 1, 0, 0>} : (tensor<6x2xf32>, !graph.packed<tensor<3x2xf32>>) -> tensor<6x3xf32>
  %a = graph.tanh %y : (tensor<6x3xf32>) -> tensor<6x3xf32>
  %s = graph.add %a, %r : (tensor<6x3xf32>, tensor<6x3xf32>) -> tensor<6x3xf32>
  %z = graph.packed_linear %x, %p {operandSegmentSizes = array<i64: 1, 1, 0, 0>} : (tensor<6x2xf32>, !graph.packed<tensor<3x2xf32>>) -> tensor<6x3xf32>
  %b = graph.tanh %z : (tensor<6x3xf32>) -> tensor<6x3xf32>
  %c = graph.sigmoid %b : (tensor<6x3xf32>) -> tensor<6x3xf32>
  %q = graph.packed_linear %x, %p {operandSegmentSizes = array<i64: 1, 1, 0, 0>} : (tensor<6x2xf32>, !graph.packed<tensor<3x2xf32>>) -> tensor<6x3xf32>
  %d = graph.add %q, %r : (tensor<6x3xf32>, tensor<6x3xf32>) -> tensor<6x3xf32>
  %e = graph.tanh %d : (tensor<6x3xf32>) -> tensor<6x3xf32>
  return %s, %c, %e : tensor<6x3xf32>, tensor<6x3xf32>, tensor<6x3xf32>
}

// CHECK: builtin.module {
// CHECK-NEXT:   func.func @residual(%x: tensor<2x2x5x4xf32>, %r: tensor<2x2x5x4xf32>) -> tensor<2x2x5x4xf32> attributes {level = "graph"} {
// CHECK-NEXT:     %w = graph.constant {value = dense<[[[[0.5]], [[1.0]]], [[[2.0]], [[-1.0]]]]> : tensor<2x2x1x1xf32>} : tensor<2x2x1x1xf32>
// CHECK-NEXT:     %p = graph.pack %w {dilation = array<i64: 1, 1>, format = "convolution", groups = 1 : i64, padding = array<i64: 0, 0>, stride = array<i64: 1, 1>} : (tensor<2x2x1x1xf32>) -> !graph.packed<tensor<2x2x1x1xf32>>
// CHECK-NEXT:     %z = graph.packed_conv %x, %p, %r {activation = "relu", dilation = array<i64: 1, 1>, groups = 1 : i64, operandSegmentSizes = array<i64: 1, 1, 0, 1>, padding = array<i64: 0, 0>, stride = array<i64: 1, 1>} : (tensor<2x2x5x4xf32>, !graph.packed<tensor<2x2x1x1xf32>>, tensor<2x2x5x4xf32>) -> tensor<2x2x5x4xf32>
// CHECK-NEXT:     return %z : tensor<2x2x5x4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @hardtanh(%x: tensor<2x2x5x4xf32>) -> (tensor<2x2x5x4xf32>, tensor<2x2x5x4xf32>, tensor<2x2x5x4xf32>) attributes {level = "graph"} {
// CHECK-NEXT:     %w = graph.constant {value = dense<[[[[0.5]], [[1.0]]], [[[2.0]], [[-1.0]]]]> : tensor<2x2x1x1xf32>} : tensor<2x2x1x1xf32>
// CHECK-NEXT:     %p = graph.pack %w {dilation = array<i64: 1, 1>, format = "convolution", groups = 1 : i64, padding = array<i64: 0, 0>, stride = array<i64: 1, 1>} : (tensor<2x2x1x1xf32>) -> !graph.packed<tensor<2x2x1x1xf32>>
// CHECK-NEXT:     %high = graph.packed_conv %x, %p {activation = "hardtanh", dilation = array<i64: 1, 1>, groups = 1 : i64, padding = array<i64: 0, 0>, scalars = [0.0 : f64, 6.0 : f64], stride = array<i64: 1, 1>} : (tensor<2x2x5x4xf32>, !graph.packed<tensor<2x2x1x1xf32>>) -> tensor<2x2x5x4xf32>
// CHECK-NEXT:     %q = graph.packed_conv %high, %p {dilation = array<i64: 1, 1>, groups = 1 : i64, padding = array<i64: 0, 0>, stride = array<i64: 1, 1>} : (tensor<2x2x5x4xf32>, !graph.packed<tensor<2x2x1x1xf32>>) -> tensor<2x2x5x4xf32>
// CHECK-NEXT:     %a = graph.sigmoid %q : (tensor<2x2x5x4xf32>) -> tensor<2x2x5x4xf32>
// CHECK-NEXT:     %b = graph.tanh %q : (tensor<2x2x5x4xf32>) -> tensor<2x2x5x4xf32>
// CHECK-NEXT:     return %a, %b, %high : tensor<2x2x5x4xf32>, tensor<2x2x5x4xf32>, tensor<2x2x5x4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @linear(%x: tensor<6x2xf32>, %r: tensor<2x3x3xf32>) -> (tensor<2x3x3xf32>, tensor<2x3x3xf32>) attributes {level = "graph"} {
// CHECK-NEXT:     %w = graph.constant {value = dense<[[0.5, 1.0], [2.0, -1.0], [0.0, 4.0]]> : tensor<3x2xf32>} : tensor<3x2xf32>
// CHECK-NEXT:     %p = graph.pack %w {format = "linear"} : (tensor<3x2xf32>) -> !graph.packed<tensor<3x2xf32>>
// CHECK-NEXT:     %0 = graph.packed_linear %x, %p {activation = "silu"} : (tensor<6x2xf32>, !graph.packed<tensor<3x2xf32>>) -> tensor<6x3xf32>
// CHECK-NEXT:     %s = graph.reshape %0 : (tensor<6x3xf32>) -> tensor<2x3x3xf32>
// CHECK-NEXT:     %1 = graph.reshape %r : (tensor<2x3x3xf32>) -> tensor<6x3xf32>
// CHECK-NEXT:     %2 = graph.packed_linear %x, %p, %1 {operandSegmentSizes = array<i64: 1, 1, 0, 1>} : (tensor<6x2xf32>, !graph.packed<tensor<3x2xf32>>, tensor<6x3xf32>) -> tensor<6x3xf32>
// CHECK-NEXT:     %t = graph.reshape %2 : (tensor<6x3xf32>) -> tensor<2x3x3xf32>
// CHECK-NEXT:     return %s, %t : tensor<2x3x3xf32>, tensor<2x3x3xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @read_twice(%x: tensor<6x2xf32>) -> (tensor<2x3x3xf32>, tensor<6x3xf32>) attributes {level = "graph"} {
// CHECK-NEXT:     %w = graph.constant {value = dense<[[0.5, 1.0], [2.0, -1.0], [0.0, 4.0]]> : tensor<3x2xf32>} : tensor<3x2xf32>
// CHECK-NEXT:     %p = graph.pack %w {format = "linear"} : (tensor<3x2xf32>) -> !graph.packed<tensor<3x2xf32>>
// CHECK-NEXT:     %y = graph.packed_linear %x, %p : (tensor<6x2xf32>, !graph.packed<tensor<3x2xf32>>) -> tensor<6x3xf32>
// CHECK-NEXT:     %v = graph.reshape %y : (tensor<6x3xf32>) -> tensor<2x3x3xf32>
// CHECK-NEXT:     %g = graph.tanh %v : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
// CHECK-NEXT:     return %g, %y : tensor<2x3x3xf32>, tensor<6x3xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @added(%x: tensor<6x2xf32>, %b: tensor<3xf32>, %r: tensor<6x3xf32>) -> (tensor<6x3xf32>, tensor<6x3xf32>, tensor<6x3xf32>) attributes {level = "graph"} {
// CHECK-NEXT:     %w = graph.constant {value = dense<[[0.5, 1.0], [2.0, -1.0], [0.0, 4.0]]> : tensor<3x2xf32>} : tensor<3x2xf32>
// CHECK-NEXT:     %p = graph.pack %w {format = "linear"} : (tensor<3x2xf32>) -> !graph.packed<tensor<3x2xf32>>
// CHECK-NEXT:     %y = graph.packed_linear %x, %p : (tensor<6x2xf32>, !graph.packed<tensor<3x2xf32>>) -> tensor<6x3xf32>
// CHECK-NEXT:     %wide = graph.broadcast %b {dims = array<i64: 1>} : (tensor<3xf32>) -> tensor<6x3xf32>
// CHECK-NEXT:     %s = graph.add %y, %wide : (tensor<6x3xf32>, tensor<6x3xf32>) -> tensor<6x3xf32>
// CHECK-NEXT:     %z = graph.packed_linear %x, %p : (tensor<6x2xf32>, !graph.packed<tensor<3x2xf32>>) -> tensor<6x3xf32>
// CHECK-NEXT:     %two = graph.full {value = 2.0 : f32} : tensor<6x3xf32>
// CHECK-NEXT:     %t = graph.add %two, %z : (tensor<6x3xf32>, tensor<6x3xf32>) -> tensor<6x3xf32>
// CHECK-NEXT:     %q = graph.packed_linear %x, %p : (tensor<6x2xf32>, !graph.packed<tensor<3x2xf32>>) -> tensor<6x3xf32>
// CHECK-NEXT:     %u = graph.add %q, %q : (tensor<6x3xf32>, tensor<6x3xf32>) -> tensor<6x3xf32>
// CHECK-NEXT:     return %s, %t, %u : tensor<6x3xf32>, tensor<6x3xf32>, tensor<6x3xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @once(%x: tensor<6x2xf32>, %r: tensor<6x3xf32>) -> (tensor<6x3xf32>, tensor<6x3xf32>, tensor<6x3xf32>) attributes {level = "graph"} {
// CHECK-NEXT:     %w = graph.constant {value = dense<[[0.5, 1.0], [2.0, -1.0], [0.0, 4.0]]> : tensor<3x2xf32>} : tensor<3x2xf32>
// CHECK-NEXT:     %p = graph.pack %w {format = "linear"} : (tensor<3x2xf32>) -> !graph.packed<tensor<3x2xf32>>
// CHECK-NEXT:     %a = graph.packed_linear %x, %p {activation = "tanh"} : (tensor<6x2xf32>, !graph.packed<tensor<3x2xf32>>) -> tensor<6x3xf32>
// CHECK-NEXT:     %s = graph.add %a, %r : (tensor<6x3xf32>, tensor<6x3xf32>) -> tensor<6x3xf32>
// CHECK-NEXT:     %b = graph.packed_linear %x, %p {activation = "tanh"} : (tensor<6x2xf32>, !graph.packed<tensor<3x2xf32>>) -> tensor<6x3xf32>
// CHECK-NEXT:     %c = graph.sigmoid %b : (tensor<6x3xf32>) -> tensor<6x3xf32>
// CHECK-NEXT:     %d = graph.packed_linear %x, %p, %r {operandSegmentSizes = array<i64: 1, 1, 0, 1>} : (tensor<6x2xf32>, !graph.packed<tensor<3x2xf32>>, tensor<6x3xf32>) -> tensor<6x3xf32>
// CHECK-NEXT:     %e = graph.tanh %d : (tensor<6x3xf32>) -> tensor<6x3xf32>
// CHECK-NEXT:     return %s, %c, %e : tensor<6x3xf32>, tensor<6x3xf32>, tensor<6x3xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
