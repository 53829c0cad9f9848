// The pass settle-checks: indices that are the same at every call are looked at once.
// RUN: --settle-checks
// VALUES: settle-checks

func.func @main(%x: tensor<4xf32>) -> tensor<3xf32> attributes {level = "graph"} {
  %i = graph.iota {dim = 0 : i64} : tensor<3xi64>
  %y = graph.take %x, %i {check_bounds, dims = array<i64: 0>, position = 0 : i64} : (tensor<4xf32>, tensor<3xi64>) -> tensor<3xf32>
  return %y : tensor<3xf32>
}

// CHECK: builtin.module {
// CHECK-NEXT:   func.func @main(%x: tensor<4xf32>) -> tensor<3xf32> attributes {level = "graph"} {
// CHECK-NEXT:     %i = graph.iota {dim = 0 : i64} : tensor<3xi64>
// CHECK-NEXT:     %y = graph.take %x, %i {dims = array<i64: 0>, position = 0 : i64} : (tensor<4xf32>, tensor<3xi64>) -> tensor<3xf32>
// CHECK-NEXT:     return %y : tensor<3xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
