// convolution_and_activation of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[2, 4, 10, 10] x f32, strides [400, 100, 10, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}, %arg1_1: tensor<[6, 4, 3, 3] x f32, strides [36, 9, 3, 1]> {irc.kind = "input", irc.name = "arg1", irc.offset = #sym<0>}, %arg2_1: tensor<[6] x f32, strides [1]> {irc.kind = "input", irc.name = "arg2", irc.offset = #sym<0>}) -> (tensor<[2, 6, 10, 10] x f32, strides [600, 100, 10, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[600, 100, 10, 1]>}, tensor<[2, 6] x f32, strides [6, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[6, 1]>}) attributes {level = "aten"} {
    %convolution = aten.convolution.default %arg0_1, %arg1_1, %arg2_1 {arguments = {bias = #aten.operand<2>, dilation = [1 : i64, 1 : i64], groups = 1 : i64, input = #aten.operand<0>, output_padding = [0 : i64, 0 : i64], padding = [1 : i64, 1 : i64], stride = [1 : i64, 1 : i64], transposed = false, weight = #aten.operand<1>}} : (tensor<[2, 4, 10, 10] x f32, strides [400, 100, 10, 1]>, tensor<[6, 4, 3, 3] x f32, strides [36, 9, 3, 1]>, tensor<[6] x f32, strides [1]>) -> tensor<[2, 6, 10, 10] x f32, strides [600, 100, 10, 1]>
    %relu = aten.relu.default %convolution {arguments = {self = #aten.operand<0>}} : (tensor<[2, 6, 10, 10] x f32, strides [600, 100, 10, 1]>) -> tensor<[2, 6, 10, 10] x f32, strides [600, 100, 10, 1]>
    %convolution_1 = aten.convolution.default %arg0_1, %arg1_1 {arguments = {bias = #aten.none, dilation = [1 : i64, 1 : i64], groups = 1 : i64, input = #aten.operand<0>, output_padding = [0 : i64, 0 : i64], padding = [0 : i64, 0 : i64], stride = [1 : i64, 1 : i64], transposed = false, weight = #aten.operand<1>}} : (tensor<[2, 4, 10, 10] x f32, strides [400, 100, 10, 1]>, tensor<[6, 4, 3, 3] x f32, strides [36, 9, 3, 1]>) -> tensor<[2, 6, 8, 8] x f32, strides [384, 64, 8, 1]>
    %sum_1 = aten.sum.dim_IntList %convolution_1 {arguments = {dim = [2 : i64, 3 : i64], self = #aten.operand<0>}} : (tensor<[2, 6, 8, 8] x f32, strides [384, 64, 8, 1]>) -> tensor<[2, 6] x f32, strides [6, 1]>
    return %relu, %sum_1 : tensor<[2, 6, 10, 10] x f32, strides [600, 100, 10, 1]>, tensor<[2, 6] x f32, strides [6, 1]>
  }
}

