// sums_of_two_axes_of_one_value of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[64, 64] x f32, strides [64, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}) -> (tensor<[64] x f32, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}, tensor<[64] x f32, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}, tensor<[64, 64] x f32, strides [1, 64]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1, 64]>}) attributes {level = "aten"} {
    %tanh = aten.tanh.default %arg0_1 {arguments = {self = #aten.operand<0>}} : (tensor<[64, 64] x f32, strides [64, 1]>) -> tensor<[64, 64] x f32, strides [64, 1]>
    %sum_1 = aten.sum.dim_IntList %tanh {arguments = {dim = [0 : i64], self = #aten.operand<0>}} : (tensor<[64, 64] x f32, strides [64, 1]>) -> tensor<[64] x f32, strides [1]>
    %sum_2 = aten.sum.dim_IntList %tanh {arguments = {dim = [1 : i64], self = #aten.operand<0>}} : (tensor<[64, 64] x f32, strides [64, 1]>) -> tensor<[64] x f32, strides [1]>
    %permute = aten.permute.default %tanh {arguments = {dims = [1 : i64, 0 : i64], self = #aten.operand<0>}} : (tensor<[64, 64] x f32, strides [64, 1]>) -> tensor<[64, 64] x f32, strides [1, 64]>
    return %sum_1, %sum_2, %permute : tensor<[64] x f32, strides [1]>, tensor<[64] x f32, strides [1]>, tensor<[64, 64] x f32, strides [1, 64]>
  }
}

