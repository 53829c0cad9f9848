// The pass hoist-assertions: an assertion about sizes goes up to the last binder of its symbols,
// behind those that are there already.
// RUN: --hoist-assertions
// VALUES: hoist-assertions

func.func @main(%x: tensor<[s0] x f32>, %n: index) -> tensor<[s0] x f32> {
  %0 = sym.bind_size %x {dim = 0 : i64, minimum = 2 : i64, symbol = "s0"} : (tensor<[s0] x f32>) -> index
  %a = graph.exp %x : (tensor<[s0] x f32>) -> tensor<[s0] x f32>
  sym.assert {relation = "le", lhs = #sym<2>, rhs = #sym<s0>, message = "at least two"}
  %1 = sym.bind %n {minimum = 0 : i64, maximum = 1 : i64, symbol = "u0"} : (index) -> index
  %b = graph.sin %a : (tensor<[s0] x f32>) -> tensor<[s0] x f32>
  sym.assert {relation = "lt", lhs = #sym<u0>, rhs = #sym<s0>, message = "u0 < s0"}
  %c = graph.neg %b : (tensor<[s0] x f32>) -> tensor<[s0] x f32>
  sym.assert {relation = "ne", lhs = #sym<s0>, rhs = #sym<0>, message = "not empty"}
  return %c : tensor<[s0] x f32>
}

// One that has but statements about symbols before it stays where it is.
func.func @near(%x: tensor<[s0, s1] x f32>) -> tensor<[s0, s1] x f32> {
  %0 = sym.bind_size %x {dim = 0 : i64, minimum = 2 : i64, symbol = "s0"} : (tensor<[s0, s1] x f32>) -> index
  %1 = sym.bind_size %x {dim = 1 : i64, minimum = 2 : i64, symbol = "s1"} : (tensor<[s0, s1] x f32>) -> index
  sym.assert {relation = "ne", lhs = #sym<s0>, rhs = #sym<7>, message = "not seven"}
  sym.assert {relation = "ne", lhs = #sym<s1>, rhs = #sym<7>, message = "not seven either"}
  %a = graph.exp %x : (tensor<[s0, s1] x f32>) -> tensor<[s0, s1] x f32>
  return %a : tensor<[s0, s1] x f32>
}

// CHECK: builtin.module {
// CHECK-NEXT:   func.func @main(%x: tensor<[s0] x f32>, %n: index) -> tensor<[s0] x f32> {
// CHECK-NEXT:     %0 = sym.bind_size %x {dim = 0 : i64, minimum = 2 : i64, symbol = "s0"} : (tensor<[s0] x f32>) -> index
// CHECK-NEXT:     sym.assert {lhs = #sym<2>, message = "at least two", relation = "le", rhs = #sym<s0>}
// CHECK-NEXT:     sym.assert {lhs = #sym<s0>, message = "not empty", relation = "ne", rhs = #sym<0>}
// CHECK-NEXT:     %a = graph.exp %x : (tensor<[s0] x f32>) -> tensor<[s0] x f32>
// CHECK-NEXT:     %1 = sym.bind %n {maximum = 1 : i64, minimum = 0 : i64, symbol = "u0"} : (index) -> index
// CHECK-NEXT:     sym.assert {lhs = #sym<u0>, message = "u0 < s0", relation = "lt", rhs = #sym<s0>}
// CHECK-NEXT:     %b = graph.sin %a : (tensor<[s0] x f32>) -> tensor<[s0] x f32>
// CHECK-NEXT:     %c = graph.neg %b : (tensor<[s0] x f32>) -> tensor<[s0] x f32>
// CHECK-NEXT:     return %c : tensor<[s0] x f32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @near(%x: tensor<[s0, s1] x f32>) -> tensor<[s0, s1] x f32> {
// CHECK-NEXT:     %0 = sym.bind_size %x {dim = 0 : i64, minimum = 2 : i64, symbol = "s0"} : (tensor<[s0, s1] x f32>) -> index
// CHECK-NEXT:     %1 = sym.bind_size %x {dim = 1 : i64, minimum = 2 : i64, symbol = "s1"} : (tensor<[s0, s1] x f32>) -> index
// CHECK-NEXT:     sym.assert {lhs = #sym<s0>, message = "not seven", relation = "ne", rhs = #sym<7>}
// CHECK-NEXT:     sym.assert {lhs = #sym<s1>, message = "not seven either", relation = "ne", rhs = #sym<7>}
// CHECK-NEXT:     %a = graph.exp %x : (tensor<[s0, s1] x f32>) -> tensor<[s0, s1] x f32>
// CHECK-NEXT:     return %a : tensor<[s0, s1] x f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
