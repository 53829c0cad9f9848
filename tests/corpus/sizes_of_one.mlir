// sizes_of_one of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[4, 1, 6] x f32, strides [6, 6, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}, %arg1_1: tensor<[1, 5, 6] x f32, strides [30, 6, 1]> {irc.kind = "input", irc.name = "arg1", irc.offset = #sym<0>}, %arg2_1: tensor<[1, 1, 1] x f32, strides [1, 1, 1]> {irc.kind = "input", irc.name = "arg2", irc.offset = #sym<0>}) -> (tensor<[4, 5, 6] x f32, strides [30, 6, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[30, 6, 1]>}, tensor<[4, 1, 6] x f32, strides [6, 6, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[6, 6, 1]>}, tensor<[4, 1, 6] x f32, strides [6, 6, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[6, 6, 1]>}, tensor<[] x f32, strides []> {irc.offset = #sym<0>, irc.strides = #sym.dims<[]>}, tensor<[1, 1, 1] x f32, strides [1, 1, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1, 1, 1]>}) attributes {level = "aten"} {
    %add = aten.add.Tensor %arg0_1, %arg1_1 {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[4, 1, 6] x f32, strides [6, 6, 1]>, tensor<[1, 5, 6] x f32, strides [30, 6, 1]>) -> tensor<[4, 5, 6] x f32, strides [30, 6, 1]>
    %mul = aten.mul.Tensor %arg0_1, %arg2_1 {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[4, 1, 6] x f32, strides [6, 6, 1]>, tensor<[1, 1, 1] x f32, strides [1, 1, 1]>) -> tensor<[4, 1, 6] x f32, strides [6, 6, 1]>
    %add_1 = aten.add.Tensor %arg0_1, %arg1_1 {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[4, 1, 6] x f32, strides [6, 6, 1]>, tensor<[1, 5, 6] x f32, strides [30, 6, 1]>) -> tensor<[4, 5, 6] x f32, strides [30, 6, 1]>
    %sum_1 = aten.sum.dim_IntList %add_1 {arguments = {dim = [1 : i64], keepdim = true, self = #aten.operand<0>}} : (tensor<[4, 5, 6] x f32, strides [30, 6, 1]>) -> tensor<[4, 1, 6] x f32, strides [6, 6, 1]>
    %squeeze = aten.squeeze.dims %arg1_1 {arguments = {dim = [0 : i64], self = #aten.operand<0>}} : (tensor<[1, 5, 6] x f32, strides [30, 6, 1]>) -> tensor<[5, 6] x f32, strides [6, 1]>
    %sum_1_0 = aten.sum.dim_IntList %squeeze {arguments = {dim = [], self = #aten.operand<0>}} : (tensor<[5, 6] x f32, strides [6, 1]>) -> tensor<[] x f32, strides []>
    %exp = aten.exp.default %arg2_1 {arguments = {self = #aten.operand<0>}} : (tensor<[1, 1, 1] x f32, strides [1, 1, 1]>) -> tensor<[1, 1, 1] x f32, strides [1, 1, 1]>
    return %add, %mul, %sum_1, %sum_1_0, %exp : tensor<[4, 5, 6] x f32, strides [30, 6, 1]>, tensor<[4, 1, 6] x f32, strides [6, 6, 1]>, tensor<[4, 1, 6] x f32, strides [6, 6, 1]>, tensor<[] x f32, strides []>, tensor<[1, 1, 1] x f32, strides [1, 1, 1]>
  }
}

