// joins of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[12, 40] x f32, strides [40, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}, %arg1_1: tensor<[5, 40] x f32, strides [40, 1]> {irc.kind = "input", irc.name = "arg1", irc.offset = #sym<0>}, %arg2_1: tensor<[12, 7] x f32, strides [7, 1]> {irc.kind = "input", irc.name = "arg2", irc.offset = #sym<0>}) -> (tensor<[12, 47] x f32, strides [47, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[47, 1]>}, tensor<[17] x f32, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}) attributes {level = "aten"} {
    %mul = aten.mul.Tensor %arg1_1 {arguments = {other = 2 : i64, self = #aten.operand<0>}} : (tensor<[5, 40] x f32, strides [40, 1]>) -> tensor<[5, 40] x f32, strides [40, 1]>
    %cat = aten.cat.default %arg0_1, %mul {arguments = {tensors = [#aten.operand<0>, #aten.operand<1>]}} : (tensor<[12, 40] x f32, strides [40, 1]>, tensor<[5, 40] x f32, strides [40, 1]>) -> tensor<[17, 40] x f32, strides [40, 1]>
    %exp = aten.exp.default %arg0_1 {arguments = {self = #aten.operand<0>}} : (tensor<[12, 40] x f32, strides [40, 1]>) -> tensor<[12, 40] x f32, strides [40, 1]>
    %cat_1 = aten.cat.default %exp, %arg2_1 {arguments = {dim = 1 : i64, tensors = [#aten.operand<0>, #aten.operand<1>]}} : (tensor<[12, 40] x f32, strides [40, 1]>, tensor<[12, 7] x f32, strides [7, 1]>) -> tensor<[12, 47] x f32, strides [47, 1]>
    %sum_1 = aten.sum.dim_IntList %cat {arguments = {dim = [1 : i64], self = #aten.operand<0>}} : (tensor<[17, 40] x f32, strides [40, 1]>) -> tensor<[17] x f32, strides [1]>
    return %cat_1, %sum_1 : tensor<[12, 47] x f32, strides [47, 1]>, tensor<[17] x f32, strides [1]>
  }
}

