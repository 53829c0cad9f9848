// The pass accumulate-scatters: rows scattered into zeros and added to an array are scattered into it.
// RUN: --accumulate-scatters
// VALUES: accumulate-scatters

func.func @main(%x: tensor<9x4xf32>, %v: tensor<3x4xf32>, %i: tensor<3xi64>) -> tensor<9x4xf32> attributes {level = "graph"} {
  %z = graph.full {value = 0.0 : f32} : tensor<9x4xf32>
  %k = graph.constant {value = dense<8> : tensor<3xi64>} : tensor<3xi64>
  %j = graph.and %i, %k : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  %p = graph.put %z, %v, %j {check_bounds, combiner = "sum", dims = array<i64: 0>, position = 0 : i64} : (tensor<9x4xf32>, tensor<3x4xf32>, tensor<3xi64>) -> tensor<9x4xf32>
  %y = graph.add %x, %p : (tensor<9x4xf32>, tensor<9x4xf32>) -> tensor<9x4xf32>
  return %y : tensor<9x4xf32>
}

// CHECK: builtin.module {
// CHECK-NEXT:   func.func @main(%x: tensor<9x4xf32>, %v: tensor<3x4xf32>, %i: tensor<3xi64>) -> tensor<9x4xf32> attributes {level = "graph"} {
// CHECK-NEXT:     %k = graph.constant {value = dense<8> : tensor<3xi64>} : tensor<3xi64>
// CHECK-NEXT:     %j = graph.and %i, %k : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
// CHECK-NEXT:     %y = graph.put %x, %v, %j {check_bounds, combiner = "sum", dims = array<i64: 0>, position = 0 : i64} : (tensor<9x4xf32>, tensor<3x4xf32>, tensor<3xi64>) -> tensor<9x4xf32>
// CHECK-NEXT:     return %y : tensor<9x4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
