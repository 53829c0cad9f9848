// linear_and_activation of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[40, 20] x f32, strides [20, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}, %arg1_1: tensor<[20, 30] x f32, strides [30, 1]> {irc.kind = "input", irc.name = "arg1", irc.offset = #sym<0>}, %arg2_1: tensor<[30] x f32, strides [1]> {irc.kind = "input", irc.name = "arg2", irc.offset = #sym<0>}) -> (tensor<[40, 30] x f32, strides [30, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[30, 1]>}, tensor<[40, 30] x f32, strides [30, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[30, 1]>}) attributes {level = "aten"} {
    %mm = aten.mm.default %arg0_1, %arg1_1 {arguments = {mat2 = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[40, 20] x f32, strides [20, 1]>, tensor<[20, 30] x f32, strides [30, 1]>) -> tensor<[40, 30] x f32, strides [30, 1]>
    %add = aten.add.Tensor %mm, %arg2_1 {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[40, 30] x f32, strides [30, 1]>, tensor<[30] x f32, strides [1]>) -> tensor<[40, 30] x f32, strides [30, 1]>
    %gelu = aten.gelu.default %add {arguments = {self = #aten.operand<0>}} : (tensor<[40, 30] x f32, strides [30, 1]>) -> tensor<[40, 30] x f32, strides [30, 1]>
    %mm_1 = aten.mm.default %arg0_1, %arg1_1 {arguments = {mat2 = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[40, 20] x f32, strides [20, 1]>, tensor<[20, 30] x f32, strides [30, 1]>) -> tensor<[40, 30] x f32, strides [30, 1]>
    %relu = aten.relu.default %mm_1 {arguments = {self = #aten.operand<0>}} : (tensor<[40, 30] x f32, strides [30, 1]>) -> tensor<[40, 30] x f32, strides [30, 1]>
    %mul = aten.mul.Tensor %relu, %arg2_1 {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[40, 30] x f32, strides [30, 1]>, tensor<[30] x f32, strides [1]>) -> tensor<[40, 30] x f32, strides [30, 1]>
    return %gelu, %mul : tensor<[40, 30] x f32, strides [30, 1]>, tensor<[40, 30] x f32, strides [30, 1]>
  }
}

