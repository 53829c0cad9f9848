// what_a_sum_needs_is_returned of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[64, 64] x f32, strides [64, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}) -> (tensor<[64, 64] x f32, strides [64, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[64, 1]>}, tensor<[64] x f32, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}, tensor<[64, 64] x f32, strides [64, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[64, 1]>}) attributes {level = "aten"} {
    %exp = aten.exp.default %arg0_1 {arguments = {self = #aten.operand<0>}} : (tensor<[64, 64] x f32, strides [64, 1]>) -> tensor<[64, 64] x f32, strides [64, 1]>
    %sum_1 = aten.sum.dim_IntList %exp {arguments = {dim = [1 : i64], self = #aten.operand<0>}} : (tensor<[64, 64] x f32, strides [64, 1]>) -> tensor<[64] x f32, strides [1]>
    %sum_2 = aten.sum.dim_IntList %exp {arguments = {dim = [1 : i64], keepdim = true, self = #aten.operand<0>}} : (tensor<[64, 64] x f32, strides [64, 1]>) -> tensor<[64, 1] x f32, strides [1, 1]>
    %div = aten.div.Tensor %exp, %sum_2 {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[64, 64] x f32, strides [64, 1]>, tensor<[64, 1] x f32, strides [1, 1]>) -> tensor<[64, 64] x f32, strides [64, 1]>
    return %exp, %sum_1, %div : tensor<[64, 64] x f32, strides [64, 1]>, tensor<[64] x f32, strides [1]>, tensor<[64, 64] x f32, strides [64, 1]>
  }
}

