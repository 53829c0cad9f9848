// The pass hoist-columns: what differs by column only is computed before the rows, and loaded in each.
// RUN: --hoist-columns
// VALUES: hoist-columns

func.func @main(%x: tensor<[8, 32] x f32, strides [32, 1]>, %variance: tensor<[32] x f32, strides [1]>) -> tensor<[8, 32] x f32, strides [32, 1]> attributes {level = "loop"} {
  %y = host.launch %x, %variance {callee = @k0} : (tensor<[8, 32] x f32, strides [32, 1]>, tensor<[32] x f32, strides [1]>) -> tensor<[8, 32] x f32, strides [32, 1]>
  return %y : tensor<[8, 32] x f32, strides [32, 1]>
}
kernel.func @k0(%x: !kernel.ptr<f32>, %variance: !kernel.ptr<f32>, %y: !kernel.ptr<f32>, %begin: index, %end: index) attributes {grid = #sym<8>, inplace = array<i64: 0, 2>, outputs = array<i64: 2>, symbols = [], target = "cpu"} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %lanes = arith.constant 16 : index
  %columns = arith.constant 32 : index
  kernel.for %row = %begin to %end step %one {
    %start = arith.muli %row, %columns : index
    kernel.for %c = %zero to %columns step %lanes {
      %place = arith.addi %start, %c : index
      %a = kernel.load %x[%place] : vector<16xf32>
      %v = kernel.load %variance[%c] : vector<16xf32>
      %r = math.rsqrt %v : vector<16xf32>
      %b = arith.mulf %a, %r : vector<16xf32>
      kernel.store %b, %y[%place] : vector<16xf32>
      kernel.yield
    }
    kernel.yield
  }
  kernel.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   func.func @main(%x: tensor<[8, 32] x f32, strides [32, 1]>, %variance: tensor<[32] x f32, strides [1]>) -> tensor<[8, 32] x f32, strides [32, 1]> attributes {level = "loop"} {
// CHECK-NEXT:     %y = host.launch %x, %variance {callee = @k0} : (tensor<[8, 32] x f32, strides [32, 1]>, tensor<[32] x f32, strides [1]>) -> tensor<[8, 32] x f32, strides [32, 1]>
// CHECK-NEXT:     return %y : tensor<[8, 32] x f32, strides [32, 1]>
// CHECK-NEXT:   }
// CHECK-NEXT:   kernel.func @k0(%x: !kernel.ptr<f32>, %variance: !kernel.ptr<f32>, %y: !kernel.ptr<f32>, %begin: index, %end: index) attributes {grid = #sym<8>, inplace = array<i64: 0, 2>, outputs = array<i64: 2>, symbols = [], target = "cpu"} {
// CHECK-NEXT:     %0 = kernel.scratch {count = 32 : i64} : !kernel.ptr<f32>
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     %one = arith.constant 1 : index
// CHECK-NEXT:     %lanes = arith.constant 16 : index
// CHECK-NEXT:     %columns = arith.constant 32 : index
// CHECK-NEXT:     %1 = arith.cmpi slt, %begin, %end : index
// CHECK-NEXT:     kernel.if %1 {
// CHECK-NEXT:       kernel.for %2 = %zero to %columns step %lanes {
// CHECK-NEXT:         %v = kernel.load %variance[%2] : vector<16xf32>
// CHECK-NEXT:         %r = math.rsqrt %v : vector<16xf32>
// CHECK-NEXT:         kernel.store %r, %0[%2] : vector<16xf32>
// CHECK-NEXT:         kernel.yield
// CHECK-NEXT:       }
// CHECK-NEXT:       kernel.yield
// CHECK-NEXT:     } else {
// CHECK-NEXT:       kernel.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     kernel.for %row = %begin to %end step %one {
// CHECK-NEXT:       %start = arith.muli %row, %columns : index
// CHECK-NEXT:       kernel.for %c = %zero to %columns step %lanes {
// CHECK-NEXT:         %place = arith.addi %start, %c : index
// CHECK-NEXT:         %a = kernel.load %x[%place] : vector<16xf32>
// CHECK-NEXT:         %r_0 = kernel.load %0[%c] : vector<16xf32>
// CHECK-NEXT:         %b = arith.mulf %a, %r_0 : vector<16xf32>
// CHECK-NEXT:         kernel.store %b, %y[%place] : vector<16xf32>
// CHECK-NEXT:         kernel.yield
// CHECK-NEXT:       }
// CHECK-NEXT:       kernel.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     kernel.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
