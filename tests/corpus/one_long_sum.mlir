// one_long_sum of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[100000] x f32, strides [1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}) -> (tensor<[] x f32, strides []> {irc.offset = #sym<0>, irc.strides = #sym.dims<[]>}, tensor<[] x f32, strides []> {irc.offset = #sym<0>, irc.strides = #sym.dims<[]>}, tensor<[] x f32, strides []> {irc.offset = #sym<0>, irc.strides = #sym.dims<[]>}) attributes {level = "aten"} {
    %mul = aten.mul.Tensor %arg0_1 {arguments = {other = #aten.operand<0>, self = #aten.operand<0>}} : (tensor<[100000] x f32, strides [1]>) -> tensor<[100000] x f32, strides [1]>
    %sum_1 = aten.sum.dim_IntList %mul {arguments = {dim = [], self = #aten.operand<0>}} : (tensor<[100000] x f32, strides [1]>) -> tensor<[] x f32, strides []>
    %max_1 = aten.max.default %arg0_1 {arguments = {self = #aten.operand<0>}} : (tensor<[100000] x f32, strides [1]>) -> tensor<[] x f32, strides []>
    %abs_1 = aten.abs.default %arg0_1 {arguments = {self = #aten.operand<0>}} : (tensor<[100000] x f32, strides [1]>) -> tensor<[100000] x f32, strides [1]>
    %mean = aten.mean.default %abs_1 {arguments = {self = #aten.operand<0>}} : (tensor<[100000] x f32, strides [1]>) -> tensor<[] x f32, strides []>
    return %sum_1, %max_1, %mean : tensor<[] x f32, strides []>, tensor<[] x f32, strides []>, tensor<[] x f32, strides []>
  }
}

