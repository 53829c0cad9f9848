// The pass pad-strides: what is computed between the argument and the result has long rows, which
// are aligned to 128 bytes; views of it follow; the argument and the result stay as the caller has
// them.
// RUN: --pad-strides
// VALUES: pad-strides

func.func @main(%x: tensor<[2, 3, 2047] x f32, strides [6141, 2047, 1]>) -> (tensor<[6, 2047] x f32, strides [2047, 1]> {irc.strides = #sym.dims<[2047, 1]>}) attributes {level = "layout"} {
  %e = graph.exp %x : (tensor<[2, 3, 2047] x f32, strides [6141, 2047, 1]>) -> tensor<[2, 3, 2047] x f32, strides [6141, 2047, 1]>
  %r = graph.reshape %e {view} : (tensor<[2, 3, 2047] x f32, strides [6141, 2047, 1]>) -> tensor<[6, 2047] x f32, strides [2047, 1]>
  %y = graph.neg %r : (tensor<[6, 2047] x f32, strides [2047, 1]>) -> tensor<[6, 2047] x f32, strides [2047, 1]>
  return %y : tensor<[6, 2047] x f32, strides [2047, 1]>
}

// CHECK: builtin.module {
// CHECK-NEXT:   func.func @main(%x: tensor<[2, 3, 2047] x f32, strides [6141, 2047, 1]>) -> (tensor<[6, 2047] x f32, strides [2047, 1]> {irc.strides = #sym.dims<[2047, 1]>}) attributes {level = "layout"} {
// CHECK-NEXT:     %e = graph.exp %x : (tensor<[2, 3, 2047] x f32, strides [6141, 2047, 1]>) -> tensor<[2, 3, 2047] x f32, strides [6144, 2048, 1]>
// CHECK-NEXT:     %r = graph.reshape %e {view} : (tensor<[2, 3, 2047] x f32, strides [6144, 2048, 1]>) -> tensor<[6, 2047] x f32, strides [2048, 1]>
// CHECK-NEXT:     %y = graph.neg %r : (tensor<[6, 2047] x f32, strides [2048, 1]>) -> tensor<[6, 2047] x f32, strides [2047, 1]>
// CHECK-NEXT:     return %y : tensor<[6, 2047] x f32, strides [2047, 1]>
// CHECK-NEXT:   }
// CHECK-NEXT: }
