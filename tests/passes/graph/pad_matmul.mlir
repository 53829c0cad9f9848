// The pass pad-matmul: the inner size of a compute-bound product is raised to a multiple of 4, the
// outer one too, and the result is cut. The second product is too small to gain.
// RUN: --pad-matmul --target=avx512
// VALUES: pad-matmul
// VALUES: pad-matmul{force=true}

func.func @main(%a: tensor<64x66xf32>, %b: tensor<66x65xf32>, %c: tensor<65x3xf32>) -> (tensor<64x65xf32>, tensor<64x3xf32>) attributes {level = "graph"} {
  %y = graph.call_aten %a, %b {callee = "aten.mm.default", arguments = {mat2 = #aten.operand<1>, self = #aten.operand<0>}, eager_strides = [#sym.dims<[65, 1]>]} : (tensor<64x66xf32>, tensor<66x65xf32>) -> tensor<64x65xf32>
  %z = graph.call_aten %y, %c {callee = "aten.mm.default", arguments = {mat2 = #aten.operand<1>, self = #aten.operand<0>}, eager_strides = [#sym.dims<[3, 1]>]} : (tensor<64x65xf32>, tensor<65x3xf32>) -> tensor<64x3xf32>
  return %y, %z : tensor<64x65xf32>, tensor<64x3xf32>
}

// CHECK: builtin.module attributes {irc.target = #irc.target<avx512>} {
// CHECK-NEXT:   func.func @main(%a: tensor<64x66xf32>, %b: tensor<66x65xf32>, %c: tensor<65x3xf32>) -> (tensor<64x65xf32>, tensor<64x3xf32>) attributes {level = "graph"} {
// CHECK-NEXT:     %0 = graph.pad %a {high = #sym.dims<[0, 2]>, low = #sym.dims<[0, 0]>, value = 0.0 : f32} : (tensor<64x66xf32>) -> tensor<64x68xf32>
// CHECK-NEXT:     %1 = graph.pad %b {high = #sym.dims<[2, 3]>, low = #sym.dims<[0, 0]>, value = 0.0 : f32} : (tensor<66x65xf32>) -> tensor<68x68xf32>
// CHECK-NEXT:     %2 = graph.call_aten %0, %1 {arguments = {mat2 = #aten.operand<1>, self = #aten.operand<0>}, callee = "aten.mm.default", eager_strides = [#sym.dims<[68, 1]>]} : (tensor<64x68xf32>, tensor<68x68xf32>) -> tensor<64x68xf32>
// CHECK-NEXT:     %y = graph.slice %2 {dim = 1 : i64, start = #sym<0>, step = 1 : i64} : (tensor<64x68xf32>) -> tensor<64x65xf32>
// CHECK-NEXT:     %z = graph.call_aten %y, %c {arguments = {mat2 = #aten.operand<1>, self = #aten.operand<0>}, callee = "aten.mm.default", eager_strides = [#sym.dims<[3, 1]>]} : (tensor<64x65xf32>, tensor<65x3xf32>) -> tensor<64x3xf32>
// CHECK-NEXT:     return %y, %z : tensor<64x65xf32>, tensor<64x3xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
