// pointwise of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[37, 65] x f32, strides [65, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}, %arg1_1: tensor<[37, 65] x f32, strides [65, 1]> {irc.kind = "input", irc.name = "arg1", irc.offset = #sym<0>}) -> (tensor<[37, 65] x f32, strides [65, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[65, 1]>}) attributes {level = "aten"} {
    %mul = aten.mul.Tensor %arg0_1, %arg1_1 {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[37, 65] x f32, strides [65, 1]>, tensor<[37, 65] x f32, strides [65, 1]>) -> tensor<[37, 65] x f32, strides [65, 1]>
    %exp = aten.exp.default %mul {arguments = {self = #aten.operand<0>}} : (tensor<[37, 65] x f32, strides [65, 1]>) -> tensor<[37, 65] x f32, strides [65, 1]>
    %sigmoid = aten.sigmoid.default %arg0_1 {arguments = {self = #aten.operand<0>}} : (tensor<[37, 65] x f32, strides [65, 1]>) -> tensor<[37, 65] x f32, strides [65, 1]>
    %add = aten.add.Tensor %exp, %sigmoid {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[37, 65] x f32, strides [65, 1]>, tensor<[37, 65] x f32, strides [65, 1]>) -> tensor<[37, 65] x f32, strides [65, 1]>
    %sub = aten.sub.Tensor %add, %arg1_1 {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[37, 65] x f32, strides [65, 1]>, tensor<[37, 65] x f32, strides [65, 1]>) -> tensor<[37, 65] x f32, strides [65, 1]>
    return %sub : tensor<[37, 65] x f32, strides [65, 1]>
  }
}

