// The pass functionalize: adding to a slice in place becomes a new tensor, scattered into the whole,
// which is written back to the argument at the end.
// RUN: --functionalize
// VALUES: functionalize

func.func @main(%x: tensor<[4, 3] x f32, strides [3, 1]>, %y: tensor<[3] x f32, strides [1]>) -> tensor<[4, 3] x f32, strides [3, 1]> attributes {level = "aten"} {
  %tail = aten.slice.Tensor %x {arguments = {end = 4 : i64, self = #aten.operand<0>, start = 1 : i64}} : (tensor<[4, 3] x f32, strides [3, 1]>) -> tensor<[3, 3] x f32, strides [3, 1]>
  %added = aten.add_.Tensor %tail, %y {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[3, 3] x f32, strides [3, 1]>, tensor<[3] x f32, strides [1]>) -> tensor<[3, 3] x f32, strides [3, 1]>
  %z = aten.neg.default %x {arguments = {self = #aten.operand<0>}} : (tensor<[4, 3] x f32, strides [3, 1]>) -> tensor<[4, 3] x f32, strides [3, 1]>
  return %z : tensor<[4, 3] x f32, strides [3, 1]>
}

// CHECK: builtin.module {
// CHECK-NEXT:   func.func @main(%x: tensor<[4, 3] x f32, strides [3, 1]>, %y: tensor<[3] x f32, strides [1]>) -> (tensor<[4, 3] x f32, strides [3, 1]> {irc.strides = #sym.dims<[3, 1]>}) attributes {level = "aten"} {
// CHECK-NEXT:     %tail = aten.slice.Tensor %x {arguments = {end = 4 : i64, self = #aten.operand<0>, start = 1 : i64}} : (tensor<[4, 3] x f32, strides [3, 1]>) -> tensor<[3, 3] x f32, strides [3, 1]>
// CHECK-NEXT:     %0 = aten.add.Tensor %y, %tail {arguments = {other = #aten.operand<0>, self = #aten.operand<1>}} : (tensor<[3] x f32, strides [1]>, tensor<[3, 3] x f32, strides [3, 1]>) -> tensor<[3, 3] x f32, strides [3, 1]>
// CHECK-NEXT:     %1 = aten.slice_scatter.default %x, %0 {arguments = {end = 4 : i64, self = #aten.operand<0>, src = #aten.operand<1>, start = 1 : i64}} : (tensor<[4, 3] x f32, strides [3, 1]>, tensor<[3, 3] x f32, strides [3, 1]>) -> tensor<[4, 3] x f32, strides [3, 1]>
// CHECK-NEXT:     %z = aten.neg.default %1 {arguments = {self = #aten.operand<0>}} : (tensor<[4, 3] x f32, strides [3, 1]>) -> tensor<[4, 3] x f32, strides [3, 1]>
// CHECK-NEXT:     %2 = aten.copy_.default %x, %1 {arguments = {self = #aten.operand<0>, src = #aten.operand<1>}} : (tensor<[4, 3] x f32, strides [3, 1]>, tensor<[4, 3] x f32, strides [3, 1]>) -> tensor<[4, 3] x f32, strides [3, 1]>
// CHECK-NEXT:     return %z : tensor<[4, 3] x f32, strides [3, 1]>
// CHECK-NEXT:   }
// CHECK-NEXT: }
