// transposed_and_not of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[33, 70] x f32, strides [70, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}) -> (tensor<[70, 33] x f32, strides [1, 70]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1, 70]>}, tensor<[33, 70] x f32, strides [70, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[70, 1]>}, tensor<[2310] x f32, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}) attributes {level = "aten"} {
    %permute = aten.permute.default %arg0_1 {arguments = {dims = [1 : i64, 0 : i64], self = #aten.operand<0>}} : (tensor<[33, 70] x f32, strides [70, 1]>) -> tensor<[70, 33] x f32, strides [1, 70]>
    %add = aten.add.Tensor %permute {arguments = {other = 1 : i64, self = #aten.operand<0>}} : (tensor<[70, 33] x f32, strides [1, 70]>) -> tensor<[70, 33] x f32, strides [1, 70]>
    %mul = aten.mul.Tensor %arg0_1 {arguments = {other = 2 : i64, self = #aten.operand<0>}} : (tensor<[33, 70] x f32, strides [70, 1]>) -> tensor<[33, 70] x f32, strides [70, 1]>
    %permute_0 = aten.permute.default %arg0_1 {arguments = {dims = [1 : i64, 0 : i64], self = #aten.operand<0>}} : (tensor<[33, 70] x f32, strides [70, 1]>) -> tensor<[70, 33] x f32, strides [1, 70]>
    %clone = aten.clone.default %permute_0 {arguments = {memory_format = #aten.memory_format<"contiguous_format">, self = #aten.operand<0>}} : (tensor<[70, 33] x f32, strides [1, 70]>) -> tensor<[70, 33] x f32, strides [33, 1]>
    %view = aten.view.default %clone {arguments = {self = #aten.operand<0>, size = [-1 : i64]}} : (tensor<[70, 33] x f32, strides [33, 1]>) -> tensor<[2310] x f32, strides [1]>
    return %add, %mul, %view : tensor<[70, 33] x f32, strides [1, 70]>, tensor<[33, 70] x f32, strides [70, 1]>, tensor<[2310] x f32, strides [1]>
  }
}

