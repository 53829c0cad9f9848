// chains_that_are_read_apart of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[300, 300] x f32, strides [300, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}, %arg1_1: tensor<[300, 300] x f32, strides [300, 1]> {irc.kind = "input", irc.name = "arg1", irc.offset = #sym<0>}) -> (tensor<[] x f32, strides []> {irc.offset = #sym<0>, irc.strides = #sym.dims<[]>}, tensor<[300, 300] x f32, strides [300, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[300, 1]>}, tensor<[290, 295] x f32, strides [300, 1]> {irc.offset = #sym<5>, irc.strides = #sym.dims<[300, 1]>}) attributes {level = "aten"} {
    %mul = aten.mul.Tensor %arg0_1, %arg1_1 {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[300, 300] x f32, strides [300, 1]>, tensor<[300, 300] x f32, strides [300, 1]>) -> tensor<[300, 300] x f32, strides [300, 1]>
    %tanh = aten.tanh.default %mul {arguments = {self = #aten.operand<0>}} : (tensor<[300, 300] x f32, strides [300, 1]>) -> tensor<[300, 300] x f32, strides [300, 1]>
    %slice_1 = aten.slice.Tensor %tanh {arguments = {end = 9223372036854775807 : i64, self = #aten.operand<0>, start = 10 : i64}} : (tensor<[300, 300] x f32, strides [300, 1]>) -> tensor<[290, 300] x f32, strides [300, 1]>
    %slice_2 = aten.slice.Tensor %tanh {arguments = {end = -10 : i64, self = #aten.operand<0>, start = 0 : i64}} : (tensor<[300, 300] x f32, strides [300, 1]>) -> tensor<[290, 300] x f32, strides [300, 1]>
    %mul_1 = aten.mul.Tensor %slice_1, %slice_2 {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[290, 300] x f32, strides [300, 1]>, tensor<[290, 300] x f32, strides [300, 1]>) -> tensor<[290, 300] x f32, strides [300, 1]>
    %sum_1 = aten.sum.dim_IntList %mul_1 {arguments = {dim = [], self = #aten.operand<0>}} : (tensor<[290, 300] x f32, strides [300, 1]>) -> tensor<[] x f32, strides []>
    %mean = aten.mean.default %mul_1 {arguments = {self = #aten.operand<0>}} : (tensor<[290, 300] x f32, strides [300, 1]>) -> tensor<[] x f32, strides []>
    %sub = aten.sub.Tensor %tanh, %mean {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[300, 300] x f32, strides [300, 1]>, tensor<[] x f32, strides []>) -> tensor<[300, 300] x f32, strides [300, 1]>
    %abs_1 = aten.abs.default %sub {arguments = {self = #aten.operand<0>}} : (tensor<[300, 300] x f32, strides [300, 1]>) -> tensor<[300, 300] x f32, strides [300, 1]>
    %slice_3 = aten.slice.Tensor %mul_1 {arguments = {dim = 1 : i64, end = 9223372036854775807 : i64, self = #aten.operand<0>, start = 5 : i64}} : (tensor<[290, 300] x f32, strides [300, 1]>) -> tensor<[290, 295] x f32, strides [300, 1]>
    return %sum_1, %abs_1, %slice_3 : tensor<[] x f32, strides []>, tensor<[300, 300] x f32, strides [300, 1]>, tensor<[290, 295] x f32, strides [300, 1]>
  }
}

