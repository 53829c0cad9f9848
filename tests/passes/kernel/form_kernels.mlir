// The pass form-kernels: the scheduled compute is a kernel, and a launch of it is in its place.
// RUN: --form-kernels
// VALUES: form-kernels

func.func @main(%x: tensor<[64] x f32, strides [1]>) -> tensor<[64] x f32, strides [1]> attributes {level = "loop"} {
  %y = loop.compute par(i0: 64) -> map schedule #loop.schedule<cpu, block = 0 : i64, collapse = [], copies = 1 : i64, lanes = 8 : i64, order = [], outer = [], spans = 5 : i64, tail = "mask", tile_axis = "", vector_axis = "i0"> {
    %a = loop.read %x[i0] : f32
    %b = arith.mulf %a, %a : f32
    loop.yield %b
  } : tensor<[64] x f32, strides [1]>
  return %y : tensor<[64] x f32, strides [1]>
}

// CHECK: builtin.module {
// CHECK-NEXT:   func.func @main(%x: tensor<[64] x f32, strides [1]>) -> tensor<[64] x f32, strides [1]> attributes {level = "loop"} {
// CHECK-NEXT:     %y = host.launch %x {callee = @k0} : (tensor<[64] x f32, strides [1]>) -> tensor<[64] x f32, strides [1]>
// CHECK-NEXT:     return %y : tensor<[64] x f32, strides [1]>
// CHECK-NEXT:   }
// CHECK-NEXT:   kernel.func @k0(%x: !kernel.ptr<f32>, %0: !kernel.ptr<f32>, %begin: index, %end: index) attributes {grid = #sym<1>, inplace = array<i64: 0, 1>, outputs = array<i64: 1>, symbols = [], target = "cpu", work = #sym<320>} {
// CHECK-NEXT:     %1 = arith.constant 0 : index
// CHECK-NEXT:     %2 = arith.constant 64 : index
// CHECK-NEXT:     %3 = arith.constant 8 : index
// CHECK-NEXT:     %4 = arith.constant 1 : index
// CHECK-NEXT:     kernel.for %5 = %begin to %end step %4 {
// CHECK-NEXT:       kernel.for %6 = %1 to %2 step %3 {
// CHECK-NEXT:         %7 = kernel.load %x[%6] : vector<8xf32>
// CHECK-NEXT:         %8 = arith.mulf %7, %7 : vector<8xf32>
// CHECK-NEXT:         kernel.store %8, %0[%6] : vector<8xf32>
// CHECK-NEXT:         kernel.yield
// CHECK-NEXT:       }
// CHECK-NEXT:       kernel.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     kernel.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
