// The pass insert-layout-copies: the first result shares the argument's storage, which the caller
// does not expect of it; of the second it is expected (`alias_of`).
// RUN: --insert-layout-copies
// VALUES: insert-layout-copies

func.func @main(%x: tensor<[4, 6] x f32, strides [6, 1]>) -> (tensor<[6, 4] x f32, strides [1, 6]> {irc.strides = #sym.dims<[4, 1]>}, tensor<[6, 4] x f32, strides [1, 6]> {irc.alias_of = 0 : i64, irc.offset = #sym<0>, irc.strides = #sym.dims<[1, 6]>}) attributes {level = "layout"} {
  %t = graph.permute %x {permutation = array<i64: 1, 0>, view} : (tensor<[4, 6] x f32, strides [6, 1]>) -> tensor<[6, 4] x f32, strides [1, 6]>
  return %t, %t : tensor<[6, 4] x f32, strides [1, 6]>, tensor<[6, 4] x f32, strides [1, 6]>
}

// CHECK: builtin.module {
// CHECK-NEXT:   func.func @main(%x: tensor<[4, 6] x f32, strides [6, 1]>) -> (tensor<[6, 4] x f32, strides [4, 1]> {irc.strides = #sym.dims<[4, 1]>}, tensor<[6, 4] x f32, strides [1, 6]> {irc.alias_of = 0 : i64, irc.offset = #sym<0>, irc.strides = #sym.dims<[1, 6]>}) attributes {level = "layout"} {
// CHECK-NEXT:     %t = graph.permute %x {permutation = array<i64: 1, 0>, view} : (tensor<[4, 6] x f32, strides [6, 1]>) -> tensor<[6, 4] x f32, strides [1, 6]>
// CHECK-NEXT:     %0 = layout.copy %t {reason = "result 0 of the function"} : (tensor<[6, 4] x f32, strides [1, 6]>) -> tensor<[6, 4] x f32, strides [4, 1]>
// CHECK-NEXT:     return %0, %t : tensor<[6, 4] x f32, strides [4, 1]>, tensor<[6, 4] x f32, strides [1, 6]>
// CHECK-NEXT:   }
// CHECK-NEXT: }
