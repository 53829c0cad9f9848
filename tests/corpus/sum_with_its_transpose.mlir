// sum_with_its_transpose of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[30, 40] x f32, strides [40, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}, %arg1_1: tensor<[40, 30] x f32, strides [30, 1]> {irc.kind = "input", irc.name = "arg1", irc.offset = #sym<0>}) -> (tensor<[30, 40] x f32, strides [40, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[40, 1]>}) attributes {level = "aten"} {
    %permute = aten.permute.default %arg1_1 {arguments = {dims = [1 : i64, 0 : i64], self = #aten.operand<0>}} : (tensor<[40, 30] x f32, strides [30, 1]>) -> tensor<[30, 40] x f32, strides [1, 30]>
    %add = aten.add.Tensor %arg0_1, %permute {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[30, 40] x f32, strides [40, 1]>, tensor<[30, 40] x f32, strides [1, 30]>) -> tensor<[30, 40] x f32, strides [40, 1]>
    return %add : tensor<[30, 40] x f32, strides [40, 1]>
  }
}

