// expensive_values_read_twice of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[64, 33] x f32, strides [33, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}) -> (tensor<[64, 32] x f32, strides [32, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[32, 1]>}, tensor<[64, 33] x f32, strides [33, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[33, 1]>}) attributes {level = "aten"} {
    %exp = aten.exp.default %arg0_1 {arguments = {self = #aten.operand<0>}} : (tensor<[64, 33] x f32, strides [33, 1]>) -> tensor<[64, 33] x f32, strides [33, 1]>
    %sin = aten.sin.default %exp {arguments = {self = #aten.operand<0>}} : (tensor<[64, 33] x f32, strides [33, 1]>) -> tensor<[64, 33] x f32, strides [33, 1]>
    %tanh = aten.tanh.default %sin {arguments = {self = #aten.operand<0>}} : (tensor<[64, 33] x f32, strides [33, 1]>) -> tensor<[64, 33] x f32, strides [33, 1]>
    %slice_1 = aten.slice.Tensor %tanh {arguments = {dim = 1 : i64, end = 9223372036854775807 : i64, self = #aten.operand<0>, start = 1 : i64}} : (tensor<[64, 33] x f32, strides [33, 1]>) -> tensor<[64, 32] x f32, strides [33, 1]>
    %slice_2 = aten.slice.Tensor %tanh {arguments = {dim = 1 : i64, end = -1 : i64, self = #aten.operand<0>, start = 0 : i64}} : (tensor<[64, 33] x f32, strides [33, 1]>) -> tensor<[64, 32] x f32, strides [33, 1]>
    %add = aten.add.Tensor %slice_1, %slice_2 {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[64, 32] x f32, strides [33, 1]>, tensor<[64, 32] x f32, strides [33, 1]>) -> tensor<[64, 32] x f32, strides [32, 1]>
    %flip = aten.flip.default %tanh {arguments = {dims = [1 : i64], self = #aten.operand<0>}} : (tensor<[64, 33] x f32, strides [33, 1]>) -> tensor<[64, 33] x f32, strides [33, 1]>
    %mul = aten.mul.Tensor %flip {arguments = {other = 2 : i64, self = #aten.operand<0>}} : (tensor<[64, 33] x f32, strides [33, 1]>) -> tensor<[64, 33] x f32, strides [33, 1]>
    return %add, %mul : tensor<[64, 32] x f32, strides [32, 1]>, tensor<[64, 33] x f32, strides [33, 1]>
  }
}

