// The pass bufferize: what a launch makes gets memory; the second launch writes where the first one's
// result was, as nothing reads that afterwards and the kernel allows it.
// RUN: --bufferize
// VALUES: bufferize

func.func @main(%x: tensor<[64] x f32, strides [1]>) -> tensor<[64] x f32, strides [1]> attributes {level = "loop"} {
  %a = host.launch %x {callee = @square} : (tensor<[64] x f32, strides [1]>) -> tensor<[64] x f32, strides [1]>
  %y = host.launch %a {callee = @square} : (tensor<[64] x f32, strides [1]>) -> tensor<[64] x f32, strides [1]>
  return %y : tensor<[64] x f32, strides [1]>
}
kernel.func @square(%x: !kernel.ptr<f32>, %y: !kernel.ptr<f32>, %begin: index, %end: index) attributes {grid = #sym<64>, inplace = array<i64: 0, 1>, outputs = array<i64: 1>, symbols = [], target = "cpu", work = #sym<64>} {
  %one = arith.constant 1 : index
  kernel.for %i = %begin to %end step %one {
    %a = kernel.load %x[%i] : f32
    %b = arith.mulf %a, %a : f32
    kernel.store %b, %y[%i] : f32
    kernel.yield
  }
  kernel.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   host.func @main(%x: tensor<[64] x f32, strides [1]>) -> tensor<[64] x f32, strides [1]> {
// CHECK-NEXT:     %a = host.alloc {escapes} : tensor<[64] x f32, strides [1]>
// CHECK-NEXT:     host.launch %x, %a {callee = @square, operandSegmentSizes = array<i64: 1, 1>} : (tensor<[64] x f32, strides [1]>, tensor<[64] x f32, strides [1]>)
// CHECK-NEXT:     host.launch %a, %a {callee = @square, operandSegmentSizes = array<i64: 1, 1>} : (tensor<[64] x f32, strides [1]>, tensor<[64] x f32, strides [1]>)
// CHECK-NEXT:     host.return %a : tensor<[64] x f32, strides [1]>
// CHECK-NEXT:   }
// CHECK-NEXT:   kernel.func @square(%x: !kernel.ptr<f32>, %y: !kernel.ptr<f32>, %begin: index, %end: index) attributes {grid = #sym<64>, inplace = array<i64: 0, 1>, outputs = array<i64: 1>, symbols = [], target = "cpu", work = #sym<64>} {
// CHECK-NEXT:     %one = arith.constant 1 : index
// CHECK-NEXT:     kernel.for %i = %begin to %end step %one {
// CHECK-NEXT:       %a = kernel.load %x[%i] : f32
// CHECK-NEXT:       %b = arith.mulf %a, %a : f32
// CHECK-NEXT:       kernel.store %b, %y[%i] : f32
// CHECK-NEXT:       kernel.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     kernel.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
