// The pass freeze: an argument whose elements `arg_info` tells becomes a constant. %count is
// written, so it stays an argument, and its number is now 0.
// RUN: --freeze

func.func @main(%w: tensor<2xf32> {irc.kind = "parameter", irc.value = dense<[1.0, 2.0]> : tensor<2xf32>}, %count: tensor<2xf32> {irc.kind = "buffer", irc.value = dense<[0.0, 3.0]> : tensor<2xf32>}, %x: tensor<2xf32>) -> tensor<2xf32> attributes {level = "graph"} {
  %y = graph.add %x, %w : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %n = graph.add %count, %y : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  graph.update_input %n {argument = 1 : i64} : (tensor<2xf32>)
  return %y : tensor<2xf32>
}

// CHECK: builtin.module {
// CHECK-NEXT:   func.func @main(%count: tensor<2xf32> {irc.kind = "buffer"}, %x: tensor<2xf32>) -> tensor<2xf32> attributes {frozen = array<i64: 0>, level = "graph"} {
// CHECK-NEXT:     %w = graph.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : tensor<2xf32>
// CHECK-NEXT:     %y = graph.add %x, %w : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT:     %n = graph.add %count, %y : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT:     graph.update_input %n {argument = 0 : i64} : (tensor<2xf32>)
// CHECK-NEXT:     return %y : tensor<2xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
