// pointwise_with_rows_and_columns of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[37, 65] x f32, strides [65, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}, %arg1_1: tensor<[65] x f32, strides [1]> {irc.kind = "input", irc.name = "arg1", irc.offset = #sym<0>}, %arg2_1: tensor<[37, 1] x f32, strides [1, 1]> {irc.kind = "input", irc.name = "arg2", irc.offset = #sym<0>}) -> (tensor<[37, 65] x f32, strides [65, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[65, 1]>}, tensor<[37, 65] x f32, strides [65, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[65, 1]>}) attributes {level = "aten"} {
    %add = aten.add.Tensor %arg0_1, %arg1_1 {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[37, 65] x f32, strides [65, 1]>, tensor<[65] x f32, strides [1]>) -> tensor<[37, 65] x f32, strides [65, 1]>
    %mul = aten.mul.Tensor %add, %arg2_1 {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[37, 65] x f32, strides [65, 1]>, tensor<[37, 1] x f32, strides [1, 1]>) -> tensor<[37, 65] x f32, strides [65, 1]>
    %sub = aten.sub.Tensor %arg0_1, %arg2_1 {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[37, 65] x f32, strides [65, 1]>, tensor<[37, 1] x f32, strides [1, 1]>) -> tensor<[37, 65] x f32, strides [65, 1]>
    return %mul, %sub : tensor<[37, 65] x f32, strides [65, 1]>, tensor<[37, 65] x f32, strides [65, 1]>
  }
}

