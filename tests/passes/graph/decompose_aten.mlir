// The pass decompose-aten: mse_loss is the square of a difference.
// RUN: --decompose-aten
// VALUES: decompose-aten

func.func @main(%x: tensor<[4, 3] x f32, strides [3, 1]>, %y: tensor<[4, 3] x f32, strides [3, 1]>) -> tensor<[4, 3] x f32, strides [3, 1]> attributes {level = "aten"} {
  %loss = aten.mse_loss.default %x, %y {arguments = {reduction = 0 : i64, self = #aten.operand<0>, target = #aten.operand<1>}} : (tensor<[4, 3] x f32, strides [3, 1]>, tensor<[4, 3] x f32, strides [3, 1]>) -> tensor<[4, 3] x f32, strides [3, 1]>
  return %loss : tensor<[4, 3] x f32, strides [3, 1]>
}

// CHECK: builtin.module {
// CHECK-NEXT:   func.func @main(%x: tensor<[4, 3] x f32, strides [3, 1]>, %y: tensor<[4, 3] x f32, strides [3, 1]>) -> tensor<[4, 3] x f32, strides [3, 1]> attributes {level = "aten"} {
// CHECK-NEXT:     %sub = aten.sub.Tensor %x, %y {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[4, 3] x f32, strides [3, 1]>, tensor<[4, 3] x f32, strides [3, 1]>) -> tensor<[4, 3] x f32, strides [3, 1]>
// CHECK-NEXT:     %pow_1 = aten.pow.Tensor_Scalar %sub {arguments = {exponent = 2 : i64, self = #aten.operand<0>}} : (tensor<[4, 3] x f32, strides [3, 1]>) -> tensor<[4, 3] x f32, strides [3, 1]>
// CHECK-NEXT:     return %pow_1 : tensor<[4, 3] x f32, strides [3, 1]>
// CHECK-NEXT:   }
// CHECK-NEXT: }
