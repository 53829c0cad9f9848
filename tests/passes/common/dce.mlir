// The pass dce: what nobody uses goes, users before what they use; effects stay.
// RUN: --dce
// VALUES: dce

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = graph.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %b = graph.sin %a : (tensor<4xf32>) -> tensor<4xf32>
  %y = graph.neg %x : (tensor<4xf32>) -> tensor<4xf32>
  graph.update_input %y {argument = 0 : i64} : (tensor<4xf32>)
  return %y : tensor<4xf32>
}

// CHECK: builtin.module {
// CHECK-NEXT:   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:     %y = graph.neg %x : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:     graph.update_input %y {argument = 0 : i64} : (tensor<4xf32>)
// CHECK-NEXT:     return %y : tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
