// The pass flag-checks: where a kernel's truth values are only asserted, it writes a flag of the
// host's where one is false. What something else reads as well stays an array.
// RUN: --flag-checks
// VALUES: flag-checks

host.func @main(%x: tensor<[40] x f32, strides [1]>, %k: tensor<[8] x i64, strides [1]>) -> (tensor<[8] x f32, strides [1]>, tensor<[8] x i1, strides [1]>) {
  %ok = host.alloc : tensor<[8] x i1, strides [1]>
  %y = host.alloc {escapes} : tensor<[8] x f32, strides [1]>
  host.launch %x, %k, %ok, %y {callee = @pick, operandSegmentSizes = array<i64: 2, 2>} : (tensor<[40] x f32, strides [1]>, tensor<[8] x i64, strides [1]>, tensor<[8] x i1, strides [1]>, tensor<[8] x f32, strides [1]>)
  %c = host.item %ok {every} : (tensor<[8] x i1, strides [1]>) -> i1
  sym.assert_value %c {error = "IndexError", message = "index out of bounds"} : (i1)
  %even = host.alloc {escapes} : tensor<[8] x i1, strides [1]>
  host.launch %k, %even {callee = @parity, operandSegmentSizes = array<i64: 1, 1>} : (tensor<[8] x i64, strides [1]>, tensor<[8] x i1, strides [1]>)
  %d = host.item %even {every} : (tensor<[8] x i1, strides [1]>) -> i1
  sym.assert_value %d {error = "ValueError", message = "odd"} : (i1)
  host.return %y, %even : tensor<[8] x f32, strides [1]>, tensor<[8] x i1, strides [1]>
}
kernel.func @pick(%x: !kernel.ptr<f32>, %k: !kernel.ptr<i64>, %ok: !kernel.ptr<i1>, %y: !kernel.ptr<f32>) attributes {grid = #sym<1>, num_warps = 1, num_stages = 1, outputs = array<i64: 2, 3>, symbols = [], target = "gpu"} {
  %lanes = kernel.iota : vector<8xindex>
  %zero = arith.constant dense<0> : vector<8xindex>
  %size = arith.constant dense<40> : vector<8xindex>
  %i = kernel.gather %k[%lanes] : vector<8xi64>
  %n = arith.index_cast %i : vector<8xi64> to vector<8xindex>
  %below = arith.cmpi slt, %n, %size : vector<8xindex>
  %above = arith.cmpi sge, %n, %zero : vector<8xindex>
  %in = arith.andi %below, %above : vector<8xi1>
  kernel.scatter %in, %ok[%lanes] {combiner = "set"} : vector<8xi1>
  %at = arith.select %in, %n, %zero : vector<8xi1>, vector<8xindex>
  %v = kernel.gather %x[%at] : vector<8xf32>
  kernel.scatter %v, %y[%lanes] {combiner = "set"} : vector<8xf32>
  kernel.return
}
kernel.func @parity(%k: !kernel.ptr<i64>, %even: !kernel.ptr<i1>) attributes {grid = #sym<1>, num_warps = 1, num_stages = 1, outputs = array<i64: 1>, symbols = [], target = "gpu"} {
  %lanes = kernel.iota : vector<8xindex>
  %two = arith.constant dense<2> : vector<8xi64>
  %none = arith.constant dense<0> : vector<8xi64>
  %i = kernel.gather %k[%lanes] : vector<8xi64>
  %r = arith.remsi %i, %two : vector<8xi64>
  %in = arith.cmpi eq, %r, %none : vector<8xi64>
  kernel.scatter %in, %even[%lanes] {combiner = "set"} : vector<8xi1>
  kernel.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   host.func @main(%x: tensor<[40] x f32, strides [1]>, %k: tensor<[8] x i64, strides [1]>) -> (tensor<[8] x f32, strides [1]>, tensor<[8] x i1, strides [1]>) {
// CHECK-NEXT:     %ok = host.flag {error = "IndexError", message = "index out of bounds"} : tensor<[] x i1, strides []>
// CHECK-NEXT:     %y = host.alloc {escapes} : tensor<[8] x f32, strides [1]>
// CHECK-NEXT:     host.launch %x, %k, %ok, %y {callee = @pick, operandSegmentSizes = array<i64: 2, 2>} : (tensor<[40] x f32, strides [1]>, tensor<[8] x i64, strides [1]>, tensor<[] x i1, strides []>, tensor<[8] x f32, strides [1]>)
// CHECK-NEXT:     %even = host.alloc {escapes} : tensor<[8] x i1, strides [1]>
// CHECK-NEXT:     host.launch %k, %even {callee = @parity, operandSegmentSizes = array<i64: 1, 1>} : (tensor<[8] x i64, strides [1]>, tensor<[8] x i1, strides [1]>)
// CHECK-NEXT:     %d = host.item %even {every} : (tensor<[8] x i1, strides [1]>) -> i1
// CHECK-NEXT:     sym.assert_value %d {error = "ValueError", message = "odd"} : (i1)
// CHECK-NEXT:     host.return %y, %even : tensor<[8] x f32, strides [1]>, tensor<[8] x i1, strides [1]>
// CHECK-NEXT:   }
// CHECK-NEXT:   kernel.func @pick(%x: !kernel.ptr<f32>, %k: !kernel.ptr<i64>, %ok: !kernel.ptr<i1>, %y: !kernel.ptr<f32>) attributes {grid = #sym<1>, num_stages = 1 : i64, num_warps = 1 : i64, outputs = array<i64: 2, 3>, symbols = [], target = "gpu"} {
// CHECK-NEXT:     %lanes = kernel.iota : vector<8xindex>
// CHECK-NEXT:     %zero = arith.constant dense<0> : vector<8xindex>
// CHECK-NEXT:     %size = arith.constant dense<40> : vector<8xindex>
// CHECK-NEXT:     %i = kernel.gather %k[%lanes] : vector<8xi64>
// CHECK-NEXT:     %n = arith.index_cast %i : vector<8xi64> to vector<8xindex>
// CHECK-NEXT:     %below = arith.cmpi slt, %n, %size : vector<8xindex>
// CHECK-NEXT:     %above = arith.cmpi sge, %n, %zero : vector<8xindex>
// CHECK-NEXT:     %in = arith.andi %below, %above : vector<8xi1>
// CHECK-NEXT:     kernel.check %in, %ok : (vector<8xi1>, !kernel.ptr<i1>)
// CHECK-NEXT:     %at = arith.select %in, %n, %zero : vector<8xi1>, vector<8xindex>
// CHECK-NEXT:     %v = kernel.gather %x[%at] : vector<8xf32>
// CHECK-NEXT:     kernel.scatter %v, %y[%lanes] {combiner = "set"} : vector<8xf32>
// CHECK-NEXT:     kernel.return
// CHECK-NEXT:   }
// CHECK-NEXT:   kernel.func @parity(%k: !kernel.ptr<i64>, %even: !kernel.ptr<i1>) attributes {grid = #sym<1>, num_stages = 1 : i64, num_warps = 1 : i64, outputs = array<i64: 1>, symbols = [], target = "gpu"} {
// CHECK-NEXT:     %lanes = kernel.iota : vector<8xindex>
// CHECK-NEXT:     %two = arith.constant dense<2> : vector<8xi64>
// CHECK-NEXT:     %none = arith.constant dense<0> : vector<8xi64>
// CHECK-NEXT:     %i = kernel.gather %k[%lanes] : vector<8xi64>
// CHECK-NEXT:     %r = arith.remsi %i, %two : vector<8xi64>
// CHECK-NEXT:     %in = arith.cmpi eq, %r, %none : vector<8xi64>
// CHECK-NEXT:     kernel.scatter %in, %even[%lanes] {combiner = "set"} : vector<8xi1>
// CHECK-NEXT:     kernel.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
