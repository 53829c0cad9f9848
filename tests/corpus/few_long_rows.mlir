// few_long_rows of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[7, 60000] x f32, strides [60000, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}) -> (tensor<[7] x f32, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}, tensor<[7] x f32, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}) attributes {level = "aten"} {
    %sum_1 = aten.sum.dim_IntList %arg0_1 {arguments = {dim = [1 : i64], self = #aten.operand<0>}} : (tensor<[7, 60000] x f32, strides [60000, 1]>) -> tensor<[7] x f32, strides [1]>
    %mean = aten.mean.dim %arg0_1 {arguments = {dim = [1 : i64], keepdim = true, self = #aten.operand<0>}} : (tensor<[7, 60000] x f32, strides [60000, 1]>) -> tensor<[7, 1] x f32, strides [1, 1]>
    %sub = aten.sub.Tensor %arg0_1, %mean {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[7, 60000] x f32, strides [60000, 1]>, tensor<[7, 1] x f32, strides [1, 1]>) -> tensor<[7, 60000] x f32, strides [60000, 1]>
    %abs_1 = aten.abs.default %sub {arguments = {self = #aten.operand<0>}} : (tensor<[7, 60000] x f32, strides [60000, 1]>) -> tensor<[7, 60000] x f32, strides [60000, 1]>
    %amax = aten.amax.default %abs_1 {arguments = {dim = [1 : i64], self = #aten.operand<0>}} : (tensor<[7, 60000] x f32, strides [60000, 1]>) -> tensor<[7] x f32, strides [1]>
    return %sum_1, %amax : tensor<[7] x f32, strides [1]>, tensor<[7] x f32, strides [1]>
  }
}

