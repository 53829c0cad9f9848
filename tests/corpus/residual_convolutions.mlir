// residual_convolutions of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[2, 8, 6, 6] x f32, strides [288, 36, 6, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}, %arg1_1: tensor<[8, 8, 1, 1] x f32, strides [8, 1, 1, 1]> {irc.kind = "input", irc.name = "arg1", irc.offset = #sym<0>}) -> (tensor<[2, 8, 6, 6] x f32, strides [288, 36, 6, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[288, 36, 6, 1]>}, tensor<[2, 8] x f32, strides [8, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[8, 1]>}) attributes {level = "aten"} {
    %convolution = aten.convolution.default %arg0_1, %arg1_1 {arguments = {bias = #aten.none, dilation = [1 : i64, 1 : i64], groups = 1 : i64, input = #aten.operand<0>, output_padding = [0 : i64, 0 : i64], padding = [0 : i64, 0 : i64], stride = [1 : i64, 1 : i64], transposed = false, weight = #aten.operand<1>}} : (tensor<[2, 8, 6, 6] x f32, strides [288, 36, 6, 1]>, tensor<[8, 8, 1, 1] x f32, strides [8, 1, 1, 1]>) -> tensor<[2, 8, 6, 6] x f32, strides [288, 36, 6, 1]>
    %relu = aten.relu.default %convolution {arguments = {self = #aten.operand<0>}} : (tensor<[2, 8, 6, 6] x f32, strides [288, 36, 6, 1]>) -> tensor<[2, 8, 6, 6] x f32, strides [288, 36, 6, 1]>
    %convolution_1 = aten.convolution.default %relu, %arg1_1 {arguments = {bias = #aten.none, dilation = [1 : i64, 1 : i64], groups = 1 : i64, input = #aten.operand<0>, output_padding = [0 : i64, 0 : i64], padding = [0 : i64, 0 : i64], stride = [1 : i64, 1 : i64], transposed = false, weight = #aten.operand<1>}} : (tensor<[2, 8, 6, 6] x f32, strides [288, 36, 6, 1]>, tensor<[8, 8, 1, 1] x f32, strides [8, 1, 1, 1]>) -> tensor<[2, 8, 6, 6] x f32, strides [288, 36, 6, 1]>
    %add = aten.add.Tensor %convolution_1, %arg0_1 {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[2, 8, 6, 6] x f32, strides [288, 36, 6, 1]>, tensor<[2, 8, 6, 6] x f32, strides [288, 36, 6, 1]>) -> tensor<[2, 8, 6, 6] x f32, strides [288, 36, 6, 1]>
    %mean = aten.mean.dim %relu {arguments = {dim = [2 : i64, 3 : i64], self = #aten.operand<0>}} : (tensor<[2, 8, 6, 6] x f32, strides [288, 36, 6, 1]>) -> tensor<[2, 8] x f32, strides [8, 1]>
    return %add, %mean : tensor<[2, 8, 6, 6] x f32, strides [288, 36, 6, 1]>, tensor<[2, 8] x f32, strides [8, 1]>
  }
}

