// The pass join-launches: two launches that need nothing of each other are one, of a kernel with the points of both.
// RUN: --join-launches --target=avx2
// VALUES: join-launches

func.func @main(%x: tensor<[32] x f32, strides [1]>) -> (tensor<[32] x f32, strides [1]>, tensor<[32] x f32, strides [1]>) attributes {level = "loop"} {
  %a = host.launch %x {callee = @k0} : (tensor<[32] x f32, strides [1]>) -> tensor<[32] x f32, strides [1]>
  %b = host.launch %x {callee = @k1} : (tensor<[32] x f32, strides [1]>) -> tensor<[32] x f32, strides [1]>
  return %a, %b : tensor<[32] x f32, strides [1]>, tensor<[32] x f32, strides [1]>
}
kernel.func @k0(%x: !kernel.ptr<f32>, %y: !kernel.ptr<f32>, %begin: index, %end: index) attributes {grid = #sym<2>, outputs = array<i64: 1>, symbols = [], target = "cpu", work = #sym<64>} {
  %one = arith.constant 1 : index
  %lanes = arith.constant 16 : index
  kernel.for %i = %begin to %end step %one {
    %c = arith.muli %i, %lanes : index
    %v = kernel.load %x[%c] : vector<16xf32>
    %w = arith.addf %v, %v : vector<16xf32>
    kernel.store %w, %y[%c] : vector<16xf32>
    kernel.yield
  }
  kernel.return
}
kernel.func @k1(%x: !kernel.ptr<f32>, %y: !kernel.ptr<f32>, %begin: index, %end: index) attributes {grid = #sym<4>, outputs = array<i64: 1>, symbols = [], target = "cpu", work = #sym<32>} {
  %one = arith.constant 1 : index
  %lanes = arith.constant 8 : index
  kernel.for %i = %begin to %end step %one {
    %c = arith.muli %i, %lanes : index
    %v = kernel.load %x[%c] : vector<8xf32>
    %w = arith.mulf %v, %v : vector<8xf32>
    kernel.store %w, %y[%c] : vector<8xf32>
    kernel.yield
  }
  kernel.return
}

// CHECK: builtin.module attributes {irc.target = #irc.target<avx2>} {
// CHECK-NEXT:   func.func @main(%x: tensor<[32] x f32, strides [1]>) -> (tensor<[32] x f32, strides [1]>, tensor<[32] x f32, strides [1]>) attributes {level = "loop"} {
// CHECK-NEXT:     %a, %b = host.launch %x {callee = @k0_k1} : (tensor<[32] x f32, strides [1]>) -> (tensor<[32] x f32, strides [1]>, tensor<[32] x f32, strides [1]>)
// CHECK-NEXT:     return %a, %b : tensor<[32] x f32, strides [1]>, tensor<[32] x f32, strides [1]>
// CHECK-NEXT:   }
// CHECK-NEXT:   kernel.func @k0_k1(%x: !kernel.ptr<f32>, %0: !kernel.ptr<f32>, %1: !kernel.ptr<f32>, %begin: index, %end: index) attributes {grid = #sym<6>, outputs = array<i64: 1, 2>, symbols = [], target = "cpu", work = #sym<43>} {
// CHECK-NEXT:     %2 = arith.constant 0 : index
// CHECK-NEXT:     %3 = arith.constant 2 : index
// CHECK-NEXT:     %4 = arith.constant 6 : index
// CHECK-NEXT:     %5 = arith.constant -2 : index
// CHECK-NEXT:     %6 = arith.maxsi %begin, %2 : index
// CHECK-NEXT:     %7 = arith.minsi %6, %3 : index
// CHECK-NEXT:     %8 = arith.maxsi %end, %2 : index
// CHECK-NEXT:     %9 = arith.minsi %8, %3 : index
// CHECK-NEXT:     %one = arith.constant 1 : index
// CHECK-NEXT:     %lanes = arith.constant 16 : index
// CHECK-NEXT:     kernel.for %i = %7 to %9 step %one {
// CHECK-NEXT:       %c = arith.muli %i, %lanes : index
// CHECK-NEXT:       %v = kernel.load %x[%c] : vector<16xf32>
// CHECK-NEXT:       %w = arith.addf %v, %v : vector<16xf32>
// CHECK-NEXT:       kernel.store %w, %0[%c] : vector<16xf32>
// CHECK-NEXT:       kernel.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     %10 = arith.maxsi %begin, %3 : index
// CHECK-NEXT:     %11 = arith.minsi %10, %4 : index
// CHECK-NEXT:     %12 = arith.addi %11, %5 : index
// CHECK-NEXT:     %13 = arith.maxsi %end, %3 : index
// CHECK-NEXT:     %14 = arith.minsi %13, %4 : index
// CHECK-NEXT:     %15 = arith.addi %14, %5 : index
// CHECK-NEXT:     %one_0 = arith.constant 1 : index
// CHECK-NEXT:     %lanes_0 = arith.constant 8 : index
// CHECK-NEXT:     kernel.for %i_0 = %12 to %15 step %one_0 {
// CHECK-NEXT:       %c_0 = arith.muli %i_0, %lanes_0 : index
// CHECK-NEXT:       %v_0 = kernel.load %x[%c_0] : vector<8xf32>
// CHECK-NEXT:       %w_0 = arith.mulf %v_0, %v_0 : vector<8xf32>
// CHECK-NEXT:       kernel.store %w_0, %1[%c_0] : vector<8xf32>
// CHECK-NEXT:       kernel.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     kernel.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
