// The pass overlap-launches: a GPU's kernel begins before the kernel before it ends.
// RUN: --overlap-launches
// VALUES: overlap-launches

builtin.module attributes {irc.target = #irc.target<sm_90>} {
  func.func @main(%x: tensor<[32] x f32, strides [1]>) -> tensor<[32] x f32, strides [1]> attributes {level = "loop"} {
    %a = host.launch %x {callee = @k0} : (tensor<[32] x f32, strides [1]>) -> tensor<[32] x f32, strides [1]>
    %b = host.launch %a {callee = @k1} : (tensor<[32] x f32, strides [1]>) -> tensor<[32] x f32, strides [1]>
    return %b : tensor<[32] x f32, strides [1]>
  }
  kernel.func @k0(%x: !kernel.ptr<f32>, %y: !kernel.ptr<f32>) attributes {grid = #sym<2>, num_warps = 1, num_stages = 1, outputs = array<i64: 1>, symbols = [], target = "gpu"} {
    %p = kernel.program_id : index
    %lanes = arith.constant 16 : index
    %c = arith.muli %p, %lanes : index
    %v = kernel.load %x[%c] : vector<16xf32>
    %w = arith.addf %v, %v : vector<16xf32>
    kernel.store %w, %y[%c] : vector<16xf32>
    kernel.return
  }
  kernel.func @k1(%x: !kernel.ptr<f32>, %y: !kernel.ptr<f32>) attributes {grid = #sym<2>, num_warps = 1, num_stages = 1, outputs = array<i64: 1>, symbols = [], target = "gpu"} {
    %p = kernel.program_id : index
    %lanes = arith.constant 16 : index
    %c = arith.muli %p, %lanes : index
    %v = kernel.load %x[%c] : vector<16xf32>
    %w = arith.mulf %v, %v : vector<16xf32>
    kernel.store %w, %y[%c] : vector<16xf32>
    kernel.return
  }
}

// CHECK: builtin.module attributes {irc.target = #irc.target<sm_90>} {
// CHECK-NEXT:   func.func @main(%x: tensor<[32] x f32, strides [1]>) -> tensor<[32] x f32, strides [1]> attributes {level = "loop"} {
// CHECK-NEXT:     %a = host.launch %x {callee = @k0} : (tensor<[32] x f32, strides [1]>) -> tensor<[32] x f32, strides [1]>
// CHECK-NEXT:     %b = host.launch %a {callee = @k1} : (tensor<[32] x f32, strides [1]>) -> tensor<[32] x f32, strides [1]>
// CHECK-NEXT:     return %b : tensor<[32] x f32, strides [1]>
// CHECK-NEXT:   }
// CHECK-NEXT:   kernel.func @k0(%x: !kernel.ptr<f32>, %y: !kernel.ptr<f32>) attributes {grid = #sym<2>, num_stages = 1 : i64, num_warps = 1 : i64, opens, outputs = array<i64: 1>, symbols = [], target = "gpu"} {
// CHECK-NEXT:     %p = kernel.program_id : index
// CHECK-NEXT:     %lanes = arith.constant 16 : index
// CHECK-NEXT:     %c = arith.muli %p, %lanes : index
// CHECK-NEXT:     %v = kernel.load %x[%c] : vector<16xf32>
// CHECK-NEXT:     %w = arith.addf %v, %v : vector<16xf32>
// CHECK-NEXT:     kernel.store %w, %y[%c] : vector<16xf32>
// CHECK-NEXT:     kernel.return
// CHECK-NEXT:   }
// CHECK-NEXT:   kernel.func @k1(%x: !kernel.ptr<f32>, %y: !kernel.ptr<f32>) attributes {early, grid = #sym<2>, num_stages = 1 : i64, num_warps = 1 : i64, outputs = array<i64: 1>, symbols = [], target = "gpu"} {
// CHECK-NEXT:     %p = kernel.program_id : index
// CHECK-NEXT:     %lanes = arith.constant 16 : index
// CHECK-NEXT:     %c = arith.muli %p, %lanes : index
// CHECK-NEXT:     %v = kernel.load %x[%c] : vector<16xf32>
// CHECK-NEXT:     %w = arith.mulf %v, %v : vector<16xf32>
// CHECK-NEXT:     kernel.store %w, %y[%c] : vector<16xf32>
// CHECK-NEXT:     kernel.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
