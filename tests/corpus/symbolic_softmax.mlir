// symbolic_softmax of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[s27, s18] x f32, strides [s18, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}) -> (tensor<[s27, s18] x f32, strides [s18, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[s18, 1]>}, tensor<[s18] x f32, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}, tensor<[] x f32, strides []> {irc.offset = #sym<0>, irc.strides = #sym.dims<[]>}) attributes {level = "aten"} {
    %s27 = sym.bind_size %arg0_1 {dim = 0 : i64, hint = 30 : i64, minimum = 2 : i64, symbol = "s27"} : (tensor<[s27, s18] x f32, strides [s18, 1]>) -> index
    %s18 = sym.bind_size %arg0_1 {dim = 1 : i64, hint = 50 : i64, minimum = 2 : i64, symbol = "s18"} : (tensor<[s27, s18] x f32, strides [s18, 1]>) -> index
    %mul = aten.mul.Tensor %arg0_1 {arguments = {other = 2 : i64, self = #aten.operand<0>}} : (tensor<[s27, s18] x f32, strides [s18, 1]>) -> tensor<[s27, s18] x f32, strides [s18, 1]>
    %_softmax = aten._softmax.default %mul {arguments = {dim = 1 : i64, half_to_float = false, self = #aten.operand<0>}} : (tensor<[s27, s18] x f32, strides [s18, 1]>) -> tensor<[s27, s18] x f32, strides [s18, 1]>
    %sum_1 = aten.sum.dim_IntList %arg0_1 {arguments = {dim = [0 : i64], self = #aten.operand<0>}} : (tensor<[s27, s18] x f32, strides [s18, 1]>) -> tensor<[s18] x f32, strides [1]>
    %mean = aten.mean.default %arg0_1 {arguments = {self = #aten.operand<0>}} : (tensor<[s27, s18] x f32, strides [s18, 1]>) -> tensor<[] x f32, strides []>
    return %_softmax, %sum_1, %mean : tensor<[s27, s18] x f32, strides [s18, 1]>, tensor<[s18] x f32, strides [1]>, tensor<[] x f32, strides []>
  }
}

