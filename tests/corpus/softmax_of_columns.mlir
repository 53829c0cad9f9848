// softmax_of_columns of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[50, 300] x f32, strides [300, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}) -> (tensor<[50, 300] x f32, strides [300, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[300, 1]>}) attributes {level = "aten"} {
    %_log_softmax = aten._log_softmax.default %arg0_1 {arguments = {dim = 0 : i64, half_to_float = false, self = #aten.operand<0>}} : (tensor<[50, 300] x f32, strides [300, 1]>) -> tensor<[50, 300] x f32, strides [300, 1]>
    return %_log_softmax : tensor<[50, 300] x f32, strides [300, 1]>
  }
}

