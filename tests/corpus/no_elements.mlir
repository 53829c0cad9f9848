// no_elements of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[0, 4] x f32, strides [4, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}, %arg1_1: tensor<[3, 0] x f32, strides [1, 1]> {irc.kind = "input", irc.name = "arg1", irc.offset = #sym<0>}) -> (tensor<[0, 4] x f32, strides [4, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[4, 1]>}, tensor<[4] x f32, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}, tensor<[0] x f32, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}, tensor<[0, 4] x f32, strides [4, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[4, 1]>}, tensor<[] x f32, strides []> {irc.offset = #sym<0>, irc.strides = #sym.dims<[]>}) attributes {level = "aten"} {
    %add = aten.add.Tensor %arg0_1 {arguments = {other = 1 : i64, self = #aten.operand<0>}} : (tensor<[0, 4] x f32, strides [4, 1]>) -> tensor<[0, 4] x f32, strides [4, 1]>
    %sum_1 = aten.sum.dim_IntList %arg0_1 {arguments = {dim = [0 : i64], self = #aten.operand<0>}} : (tensor<[0, 4] x f32, strides [4, 1]>) -> tensor<[4] x f32, strides [1]>
    %sum_2 = aten.sum.dim_IntList %arg1_1 {arguments = {dim = [0 : i64], self = #aten.operand<0>}} : (tensor<[3, 0] x f32, strides [1, 1]>) -> tensor<[0] x f32, strides [1]>
    %add_1 = aten.add.Tensor %arg0_1 {arguments = {other = 1 : i64, self = #aten.operand<0>}} : (tensor<[0, 4] x f32, strides [4, 1]>) -> tensor<[0, 4] x f32, strides [4, 1]>
    %cat = aten.cat.default %arg0_1, %add_1 {arguments = {tensors = [#aten.operand<0>, #aten.operand<1>]}} : (tensor<[0, 4] x f32, strides [4, 1]>, tensor<[0, 4] x f32, strides [4, 1]>) -> tensor<[0, 4] x f32, strides [4, 1]>
    %sum_1_0 = aten.sum.dim_IntList %arg1_1 {arguments = {dim = [], self = #aten.operand<0>}} : (tensor<[3, 0] x f32, strides [1, 1]>) -> tensor<[] x f32, strides []>
    return %add, %sum_1, %sum_2, %cat, %sum_1_0 : tensor<[0, 4] x f32, strides [4, 1]>, tensor<[4] x f32, strides [1]>, tensor<[0] x f32, strides [1]>, tensor<[0, 4] x f32, strides [4, 1]>, tensor<[] x f32, strides []>
  }
}

