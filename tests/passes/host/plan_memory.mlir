// The pass plan-memory: %a and %c live at different times and share bytes of the arena; %y goes to
// the caller and is no part of it.
// RUN: --plan-memory
// VALUES: plan-memory

host.func @main(%x: tensor<[64] x f32, strides [1]>) -> tensor<[64] x f32, strides [1]> {
  %a = host.alloc : tensor<[64] x f32, strides [1]>
  host.launch %x, %a {callee = @square, operandSegmentSizes = array<i64: 1, 1>} : (tensor<[64] x f32, strides [1]>, tensor<[64] x f32, strides [1]>)
  %b = host.alloc : tensor<[64] x f32, strides [1]>
  host.launch %a, %b {callee = @square, operandSegmentSizes = array<i64: 1, 1>} : (tensor<[64] x f32, strides [1]>, tensor<[64] x f32, strides [1]>)
  %c = host.alloc : tensor<[64] x f32, strides [1]>
  host.launch %b, %c {callee = @square, operandSegmentSizes = array<i64: 1, 1>} : (tensor<[64] x f32, strides [1]>, tensor<[64] x f32, strides [1]>)
  %y = host.alloc {escapes} : tensor<[64] x f32, strides [1]>
  host.launch %c, %y {callee = @square, operandSegmentSizes = array<i64: 1, 1>} : (tensor<[64] x f32, strides [1]>, tensor<[64] x f32, strides [1]>)
  host.return %y : tensor<[64] x f32, strides [1]>
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
// CHECK-NEXT:     %a = host.alloc {offset = #sym<0>} : tensor<[64] x f32, strides [1]>
// CHECK-NEXT:     host.launch %x, %a {callee = @square, operandSegmentSizes = array<i64: 1, 1>} : (tensor<[64] x f32, strides [1]>, tensor<[64] x f32, strides [1]>)
// CHECK-NEXT:     %b = host.alloc {offset = #sym<256>} : tensor<[64] x f32, strides [1]>
// CHECK-NEXT:     host.launch %a, %b {callee = @square, operandSegmentSizes = array<i64: 1, 1>} : (tensor<[64] x f32, strides [1]>, tensor<[64] x f32, strides [1]>)
// CHECK-NEXT:     %c = host.alloc {offset = #sym<0>} : tensor<[64] x f32, strides [1]>
// CHECK-NEXT:     host.launch %b, %c {callee = @square, operandSegmentSizes = array<i64: 1, 1>} : (tensor<[64] x f32, strides [1]>, tensor<[64] x f32, strides [1]>)
// CHECK-NEXT:     %y = host.alloc {escapes} : tensor<[64] x f32, strides [1]>
// CHECK-NEXT:     host.launch %c, %y {callee = @square, operandSegmentSizes = array<i64: 1, 1>} : (tensor<[64] x f32, strides [1]>, tensor<[64] x f32, strides [1]>)
// CHECK-NEXT:     host.return %y : tensor<[64] x f32, strides [1]>
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
