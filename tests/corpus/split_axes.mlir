// split_axes of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[24, 6] x f32, strides [6, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}) -> (tensor<[24, 6] x f32, strides [6, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[6, 1]>}, tensor<[4, 6] x f32, strides [6, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[6, 1]>}, tensor<[24, 6] x f32, strides [6, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[6, 1]>}) attributes {level = "aten"} {
    %view = aten.view.default %arg0_1 {arguments = {self = #aten.operand<0>, size = [4 : i64, 6 : i64, 6 : i64]}} : (tensor<[24, 6] x f32, strides [6, 1]>) -> tensor<[4, 6, 6] x f32, strides [36, 6, 1]>
    %exp = aten.exp.default %view {arguments = {self = #aten.operand<0>}} : (tensor<[4, 6, 6] x f32, strides [36, 6, 1]>) -> tensor<[4, 6, 6] x f32, strides [36, 6, 1]>
    %add = aten.add.Tensor %exp {arguments = {other = 1 : i64, self = #aten.operand<0>}} : (tensor<[4, 6, 6] x f32, strides [36, 6, 1]>) -> tensor<[4, 6, 6] x f32, strides [36, 6, 1]>
    %view_1 = aten.view.default %add {arguments = {self = #aten.operand<0>, size = [24 : i64, 6 : i64]}} : (tensor<[4, 6, 6] x f32, strides [36, 6, 1]>) -> tensor<[24, 6] x f32, strides [6, 1]>
    %sum_1 = aten.sum.dim_IntList %view {arguments = {dim = [1 : i64], self = #aten.operand<0>}} : (tensor<[4, 6, 6] x f32, strides [36, 6, 1]>) -> tensor<[4, 6] x f32, strides [6, 1]>
    %permute = aten.permute.default %view {arguments = {dims = [0 : i64, 2 : i64, 1 : i64], self = #aten.operand<0>}} : (tensor<[4, 6, 6] x f32, strides [36, 6, 1]>) -> tensor<[4, 6, 6] x f32, strides [36, 1, 6]>
    %clone = aten.clone.default %permute {arguments = {memory_format = #aten.memory_format<"contiguous_format">, self = #aten.operand<0>}} : (tensor<[4, 6, 6] x f32, strides [36, 1, 6]>) -> tensor<[4, 6, 6] x f32, strides [36, 6, 1]>
    %view_0 = aten.view.default %clone {arguments = {self = #aten.operand<0>, size = [24 : i64, 6 : i64]}} : (tensor<[4, 6, 6] x f32, strides [36, 6, 1]>) -> tensor<[24, 6] x f32, strides [6, 1]>
    return %view_1, %sum_1, %view_0 : tensor<[24, 6] x f32, strides [6, 1]>, tensor<[4, 6] x f32, strides [6, 1]>, tensor<[24, 6] x f32, strides [6, 1]>
  }
}

