// an_optimizer_step of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[40, 40] x f32, strides [40, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}, %arg1_1: tensor<[40, 40] x f32, strides [40, 1]> {irc.kind = "input", irc.name = "arg1", irc.offset = #sym<0>}, %arg2_1: tensor<[40, 40] x f32, strides [40, 1]> {irc.kind = "input", irc.name = "arg2", irc.offset = #sym<0>}) attributes {level = "aten", result_info = []} {
    %0 = aten.mul.Tensor %arg2_1 {arguments = {other = 0.9 : f64, self = #aten.operand<0>}} : (tensor<[40, 40] x f32, strides [40, 1]>) -> tensor<[40, 40] x f32, strides [40, 1]>
    %1 = aten.add.Tensor %arg1_1, %0 {arguments = {alpha = 0.1 : f64, other = #aten.operand<0>, self = #aten.operand<1>}} : (tensor<[40, 40] x f32, strides [40, 1]>, tensor<[40, 40] x f32, strides [40, 1]>) -> tensor<[40, 40] x f32, strides [40, 1]>
    %abs_1 = aten.abs.default %1 {arguments = {self = #aten.operand<0>}} : (tensor<[40, 40] x f32, strides [40, 1]>) -> tensor<[40, 40] x f32, strides [40, 1]>
    %sqrt = aten.sqrt.default %abs_1 {arguments = {self = #aten.operand<0>}} : (tensor<[40, 40] x f32, strides [40, 1]>) -> tensor<[40, 40] x f32, strides [40, 1]>
    %add = aten.add.Tensor %sqrt {arguments = {other = 1.0e-08 : f64, self = #aten.operand<0>}} : (tensor<[40, 40] x f32, strides [40, 1]>) -> tensor<[40, 40] x f32, strides [40, 1]>
    %2 = aten.addcdiv.default %arg0_1, %1, %add {arguments = {self = #aten.operand<0>, tensor1 = #aten.operand<1>, tensor2 = #aten.operand<2>, value = -0.01 : f64}} : (tensor<[40, 40] x f32, strides [40, 1]>, tensor<[40, 40] x f32, strides [40, 1]>, tensor<[40, 40] x f32, strides [40, 1]>) -> tensor<[40, 40] x f32, strides [40, 1]>
    %3 = aten.copy_.default %arg0_1, %2 {arguments = {self = #aten.operand<0>, src = #aten.operand<1>}} : (tensor<[40, 40] x f32, strides [40, 1]>, tensor<[40, 40] x f32, strides [40, 1]>) -> tensor<[40, 40] x f32, strides [40, 1]>
    %4 = aten.copy_.default %arg2_1, %1 {arguments = {self = #aten.operand<0>, src = #aten.operand<1>}} : (tensor<[40, 40] x f32, strides [40, 1]>, tensor<[40, 40] x f32, strides [40, 1]>) -> tensor<[40, 40] x f32, strides [40, 1]>
    return
  }
}

