// few_long_columns of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[60000, 7] x f32, strides [7, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}) -> (tensor<[7] x f32, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}, tensor<[7] x f32, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}, tensor<[7] x f32, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}) attributes {level = "aten"} {
    %sum_1 = aten.sum.dim_IntList %arg0_1 {arguments = {dim = [0 : i64], self = #aten.operand<0>}} : (tensor<[60000, 7] x f32, strides [7, 1]>) -> tensor<[7] x f32, strides [1]>
    %amax = aten.amax.default %arg0_1 {arguments = {dim = [0 : i64], self = #aten.operand<0>}} : (tensor<[60000, 7] x f32, strides [7, 1]>) -> tensor<[7] x f32, strides [1]>
    %var = aten.var.correction %arg0_1 {arguments = {correction = 1 : i64, dim = [0 : i64], self = #aten.operand<0>}} : (tensor<[60000, 7] x f32, strides [7, 1]>) -> tensor<[7] x f32, strides [1]>
    return %sum_1, %amax, %var : tensor<[7] x f32, strides [1]>, tensor<[7] x f32, strides [1]>, tensor<[7] x f32, strides [1]>
  }
}

