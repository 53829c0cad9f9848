// The pass form-convolution-kernels: each convolution is a launch of a kernel.
// RUN: --form-convolution-kernels=vector_bits=128 --target=avx512
// VALUES: form-convolution-kernels{vector_bits=128}

func.func @main(%x: tensor<[1, 3, 5, 6] x f32, strides [90, 1, 18, 3]>, %u: tensor<[1, 36, 3, 8] x f32, strides [864, 24, 8, 1]>, %b: tensor<[5] x f32, strides [1]>) -> tensor<[1, 5, 5, 6] x f32, strides [150, 1, 30, 5]> attributes {level = "loop"} {
  %y = graph.winograd_conv %x, %u, %b {activation = "relu", operandSegmentSizes = array<i64: 1, 1, 1, 0>, padding = array<i64: 1, 1>} : (tensor<[1, 3, 5, 6] x f32, strides [90, 1, 18, 3]>, tensor<[1, 36, 3, 8] x f32, strides [864, 24, 8, 1]>, tensor<[5] x f32, strides [1]>) -> tensor<[1, 5, 5, 6] x f32, strides [150, 1, 30, 5]>
  return %y : tensor<[1, 5, 5, 6] x f32, strides [150, 1, 30, 5]>
}

// Every second pixel: they are copied together first.
func.func @panels(%x: tensor<[1, 3, 2, 5] x f32, strides [30, 1, 15, 3]>, %u: tensor<[2, 3, 8] x f32, strides [24, 8, 1]>, %o: tensor<[1, 10, 2, 3] x f32, strides [60, 1, 30, 10]>) -> tensor<[1, 10, 2, 3] x f32, strides [60, 1, 30, 10]> attributes {level = "loop"} {
  %y = graph.panel_conv %x, %u, %o {activation = "hardtanh", operandSegmentSizes = array<i64: 1, 1, 0, 1>, scalars = [-1.0 : f64, 2.0 : f64], stride = array<i64: 1, 2>} : (tensor<[1, 3, 2, 5] x f32, strides [30, 1, 15, 3]>, tensor<[2, 3, 8] x f32, strides [24, 8, 1]>, tensor<[1, 10, 2, 3] x f32, strides [60, 1, 30, 10]>) -> tensor<[1, 10, 2, 3] x f32, strides [60, 1, 30, 10]>
  return %y : tensor<[1, 10, 2, 3] x f32, strides [60, 1, 30, 10]>
}

// The first kernel has two thousand lines. What is checked is its shape: the launch with its two arrays, the loop over blocks of tiles, in it the
// tiles (36 loads, inside the image or masked; the transform; 36 stores), the 36 products with their sums in registers, and the tiles again
// with bias, activation and stores.
// CHECK: builtin.module attributes {irc.target = #irc.target<avx512>} {
// CHECK-NEXT: func.func @main
// CHECK-NEXT: %y, %0, %1 = host.launch %x, %u, %b {callee = @winograd0} : {{.*}} -> (tensor<[1, 5, 5, 6] x f32, strides [150, 1, 30, 5]>, tensor<[1, 4032] x f32, strides [4032, 1]>, tensor<[1, 7488] x f32, strides [7488, 1]>)
// CHECK-NEXT: return %y
// CHECK: func.func @panels
// CHECK-NEXT: %y, %0 = host.launch %x, %u, %o {callee = @panels0}
// CHECK: kernel.func @winograd0(%source: !kernel.ptr<f32>, %weight: !kernel.ptr<f32>, %bias: !kernel.ptr<f32>, %result: !kernel.ptr<f32>, %image: !kernel.ptr<f32>, %sums: !kernel.ptr<f32>, %begin: index, %end: index)
// CHECK: kernel.for {{.*}} = %begin to %end
// CHECK: kernel.for
// CHECK: kernel.if
// CHECK: kernel.load %source
// CHECK: math.fma
// CHECK: kernel.store {{.*}}, %image
// CHECK: } else {
// CHECK: kernel.load %source{{.*}} (where
// CHECK: kernel.store {{.*}}, %image
// CHECK: kernel.for
// CHECK-NEXT: arith.muli
// CHECK: kernel.for
// CHECK: kernel.for {{.*}} iter_args({{.*}} attributes {unroll = 4 : i64} {
// CHECK: kernel.load %weight
// CHECK: kernel.load %image
// CHECK-NEXT: kernel.splat
// CHECK-NEXT: math.fma
// CHECK: kernel.store {{.*}}, %sums
// CHECK: kernel.for
// CHECK: kernel.load %sums
// CHECK: kernel.load %bias
// CHECK: arith.addf
// CHECK-NEXT: arith.maximumf
// CHECK-NEXT: kernel.store {{.*}}, %result
// In the second, pixels are loaded and stored in the launch's own array; the sums of four of them and eight channels start from zero (there
// is no bias), and what is added is loaded before anything is stored. The last channels are masked.
// CHECK: kernel.func @panels0(%source: !kernel.ptr<f32>, %weight: !kernel.ptr<f32>, %other: !kernel.ptr<f32>, %result: !kernel.ptr<f32>, %gathered: !kernel.ptr<f32>, %begin: index, %end: index)
// CHECK: kernel.for {{.*}} = %begin to %end
// CHECK: kernel.for
// CHECK: kernel.load %source
// CHECK: kernel.store {{.*}}, %gathered
// CHECK: kernel.for
// CHECK: kernel.if
// CHECK: kernel.for {{.*}} iter_args({{.*}} attributes {unroll = 4 : i64} {
// CHECK: kernel.load %weight
// CHECK: kernel.load %gathered
// CHECK-NEXT: kernel.splat
// CHECK-NEXT: math.fma
// CHECK: kernel.load %other
// CHECK-NEXT: arith.addf
// CHECK-NEXT: arith.maximumf
// CHECK-NEXT: arith.minimumf
// CHECK: kernel.store {{.*}}, %result
// CHECK: kernel.load %other{{.*}} (where
// CHECK: kernel.store {{.*}}, %result{{.*}} (where
