// The pass print-facts: tells on stderr what is known of the symbols; the program stays.
// RUN: --print-facts
// VALUES: print-facts

func.func @main(%x: tensor<[s0, 4] x f32>) -> tensor<[s0, 4] x f32> {
  %s0 = sym.bind_size %x {dim = 0 : i64, minimum = 2 : i64, symbol = "s0"} : (tensor<[s0, 4] x f32>) -> index
  sym.assert {lhs = #sym<s0*2>, message = "fits", relation = "le", rhs = #sym<31>}
  %y = graph.add %x, %x : (tensor<[s0, 4] x f32>, tensor<[s0, 4] x f32>) -> tensor<[s0, 4] x f32>
  return %y : tensor<[s0, 4] x f32>
}

// CHECK: builtin.module {
// CHECK-NEXT: func.func @main(%x: tensor<[s0, 4] x f32>) -> tensor<[s0, 4] x f32> {
// CHECK-NEXT: %s0 = sym.bind_size %x {dim = 0 : i64, minimum = 2 : i64, symbol = "s0"}
// CHECK-NEXT: sym.assert
