// reversed_rolled_repeated of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[6, 8] x f32, strides [8, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}) -> (tensor<[6, 8] x f32, strides [8, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[8, 1]>}, tensor<[6, 8] x f32, strides [8, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[8, 1]>}, tensor<[12, 24] x f32, strides [24, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[24, 1]>}, tensor<[6] x f32, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}, tensor<[6, 8] x f32, strides [8, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[8, 1]>}) attributes {level = "aten"} {
    %flip = aten.flip.default %arg0_1 {arguments = {dims = [0 : i64], self = #aten.operand<0>}} : (tensor<[6, 8] x f32, strides [8, 1]>) -> tensor<[6, 8] x f32, strides [8, 1]>
    %roll = aten.roll.default %arg0_1 {arguments = {dims = [1 : i64], self = #aten.operand<0>, shifts = [3 : i64]}} : (tensor<[6, 8] x f32, strides [8, 1]>) -> tensor<[6, 8] x f32, strides [8, 1]>
    %repeat = aten.repeat.default %arg0_1 {arguments = {repeats = [2 : i64, 3 : i64], self = #aten.operand<0>}} : (tensor<[6, 8] x f32, strides [8, 1]>) -> tensor<[12, 24] x f32, strides [24, 1]>
    %diagonal = aten.diagonal.default %arg0_1 {arguments = {self = #aten.operand<0>}} : (tensor<[6, 8] x f32, strides [8, 1]>) -> tensor<[6] x f32, strides [9]>
    %add = aten.add.Tensor %diagonal {arguments = {other = 1 : i64, self = #aten.operand<0>}} : (tensor<[6] x f32, strides [9]>) -> tensor<[6] x f32, strides [1]>
    %tril = aten.tril.default %arg0_1 {arguments = {self = #aten.operand<0>}} : (tensor<[6, 8] x f32, strides [8, 1]>) -> tensor<[6, 8] x f32, strides [8, 1]>
    return %flip, %roll, %repeat, %add, %tril : tensor<[6, 8] x f32, strides [8, 1]>, tensor<[6, 8] x f32, strides [8, 1]>, tensor<[12, 24] x f32, strides [24, 1]>, tensor<[6] x f32, strides [1]>, tensor<[6, 8] x f32, strides [8, 1]>
  }
}

