// batch_norm_in_training of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[8, 6, 5, 5] x f32, strides [150, 25, 5, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}, %arg1_1: tensor<[6] x f32, strides [1]> {irc.kind = "input", irc.name = "arg1", irc.offset = #sym<0>}, %arg2_1: tensor<[6] x f32, strides [1]> {irc.kind = "input", irc.name = "arg2", irc.offset = #sym<0>}) -> (tensor<[8, 6, 5, 5] x f32, strides [150, 25, 5, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[150, 25, 5, 1]>}) attributes {level = "aten"} {
    %empty = aten.empty.memory_format {arguments = {device = #aten.device<"cpu">, dtype = #aten.dtype<"uint8">, layout = #aten.layout<"strided">, size = [0 : i64]}} : tensor<[0] x ui8, strides [1]>
    %var_mean, %var_mean_0 = aten.var_mean.correction %arg0_1 {arguments = {correction = 0 : i64, dim = [0 : i64, 2 : i64, 3 : i64], keepdim = true, self = #aten.operand<0>}} : (tensor<[8, 6, 5, 5] x f32, strides [150, 25, 5, 1]>) -> (tensor<[1, 6, 1, 1] x f32, strides [6, 1, 1, 1]>, tensor<[1, 6, 1, 1] x f32, strides [6, 1, 1, 1]>)
    %add = aten.add.Tensor %var_mean {arguments = {other = 1.0e-05 : f64, self = #aten.operand<0>}} : (tensor<[1, 6, 1, 1] x f32, strides [6, 1, 1, 1]>) -> tensor<[1, 6, 1, 1] x f32, strides [6, 1, 1, 1]>
    %rsqrt = aten.rsqrt.default %add {arguments = {self = #aten.operand<0>}} : (tensor<[1, 6, 1, 1] x f32, strides [6, 1, 1, 1]>) -> tensor<[1, 6, 1, 1] x f32, strides [6, 1, 1, 1]>
    %sub = aten.sub.Tensor %arg0_1, %var_mean_0 {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[8, 6, 5, 5] x f32, strides [150, 25, 5, 1]>, tensor<[1, 6, 1, 1] x f32, strides [6, 1, 1, 1]>) -> tensor<[8, 6, 5, 5] x f32, strides [150, 25, 5, 1]>
    %mul = aten.mul.Tensor %sub, %rsqrt {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[8, 6, 5, 5] x f32, strides [150, 25, 5, 1]>, tensor<[1, 6, 1, 1] x f32, strides [6, 1, 1, 1]>) -> tensor<[8, 6, 5, 5] x f32, strides [150, 25, 5, 1]>
    %squeeze = aten.squeeze.dims %var_mean_0 {arguments = {dim = [0 : i64, 2 : i64, 3 : i64], self = #aten.operand<0>}} : (tensor<[1, 6, 1, 1] x f32, strides [6, 1, 1, 1]>) -> tensor<[6] x f32, strides [1]>
    %squeeze_1 = aten.squeeze.dims %rsqrt {arguments = {dim = [0 : i64, 2 : i64, 3 : i64], self = #aten.operand<0>}} : (tensor<[1, 6, 1, 1] x f32, strides [6, 1, 1, 1]>) -> tensor<[6] x f32, strides [1]>
    %unsqueeze = aten.unsqueeze.default %arg1_1 {arguments = {dim = -1 : i64, self = #aten.operand<0>}} : (tensor<[6] x f32, strides [1]>) -> tensor<[6, 1] x f32, strides [1, 1]>
    %unsqueeze_1 = aten.unsqueeze.default %unsqueeze {arguments = {dim = -1 : i64, self = #aten.operand<0>}} : (tensor<[6, 1] x f32, strides [1, 1]>) -> tensor<[6, 1, 1] x f32, strides [1, 1, 1]>
    %mul_1 = aten.mul.Tensor %mul, %unsqueeze_1 {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[8, 6, 5, 5] x f32, strides [150, 25, 5, 1]>, tensor<[6, 1, 1] x f32, strides [1, 1, 1]>) -> tensor<[8, 6, 5, 5] x f32, strides [150, 25, 5, 1]>
    %unsqueeze_2 = aten.unsqueeze.default %arg2_1 {arguments = {dim = -1 : i64, self = #aten.operand<0>}} : (tensor<[6] x f32, strides [1]>) -> tensor<[6, 1] x f32, strides [1, 1]>
    %unsqueeze_3 = aten.unsqueeze.default %unsqueeze_2 {arguments = {dim = -1 : i64, self = #aten.operand<0>}} : (tensor<[6, 1] x f32, strides [1, 1]>) -> tensor<[6, 1, 1] x f32, strides [1, 1, 1]>
    %add_1 = aten.add.Tensor %mul_1, %unsqueeze_3 {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[8, 6, 5, 5] x f32, strides [150, 25, 5, 1]>, tensor<[6, 1, 1] x f32, strides [1, 1, 1]>) -> tensor<[8, 6, 5, 5] x f32, strides [150, 25, 5, 1]>
    %relu = aten.relu.default %add_1 {arguments = {self = #aten.operand<0>}} : (tensor<[8, 6, 5, 5] x f32, strides [150, 25, 5, 1]>) -> tensor<[8, 6, 5, 5] x f32, strides [150, 25, 5, 1]>
    return %relu : tensor<[8, 6, 5, 5] x f32, strides [150, 25, 5, 1]>
  }
}

