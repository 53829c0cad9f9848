// The pass gather-sums: what is added at each place twice, side by side, lies in windows of two.
// RUN: --gather-sums --target=avx2
// VALUES: gather-sums

func.func @main(%v: tensor<6x3xf32>, %x: tensor<3x3xf32>) -> tensor<3x3xf32> attributes {level = "graph"} {
  %i = graph.iota {dim = 0 : i64} : tensor<6xi64>
  %two = graph.full {value = 2 : i64} : tensor<6xi64>
  %p = graph.floor_div %i, %two : (tensor<6xi64>, tensor<6xi64>) -> tensor<6xi64>
  %y = graph.put %x, %v, %p {check_bounds, combiner = "sum", dims = array<i64: 0>, position = 0 : i64} : (tensor<3x3xf32>, tensor<6x3xf32>, tensor<6xi64>) -> tensor<3x3xf32>
  return %y : tensor<3x3xf32>
}

// CHECK: builtin.module attributes {irc.target = #irc.target<avx2>} {
// CHECK-NEXT:   func.func @main(%v: tensor<6x3xf32>, %x: tensor<3x3xf32>) -> tensor<3x3xf32> attributes {level = "graph"} {
// CHECK-NEXT:     %i = graph.iota {dim = 0 : i64} : tensor<6xi64>
// CHECK-NEXT:     %two = graph.full {value = 2 : i64} : tensor<6xi64>
// CHECK-NEXT:     %p = graph.floor_div %i, %two : (tensor<6xi64>, tensor<6xi64>) -> tensor<6xi64>
// CHECK-NEXT:     %0 = graph.window %v {dilation = 1 : i64, dim = 0 : i64, step = 2 : i64} : (tensor<6x3xf32>) -> tensor<3x3x2xf32>
// CHECK-NEXT:     %1 = graph.reduce %0 {combiner = "sum", dims = array<i64: 2>} : (tensor<3x3x2xf32>) -> tensor<3x3xf32>
// CHECK-NEXT:     %y = graph.add %x, %1 : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
// CHECK-NEXT:     return %y : tensor<3x3xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
