// updates_arguments of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[20, 30] x f32, strides [30, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}, %arg1_1: tensor<[30] x f32, strides [1]> {irc.kind = "input", irc.name = "arg1", irc.offset = #sym<0>}) -> (tensor<[20] x f32, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}) attributes {level = "aten"} {
    %0 = aten.mul.Tensor %arg0_1 {arguments = {other = 2 : i64, self = #aten.operand<0>}} : (tensor<[20, 30] x f32, strides [30, 1]>) -> tensor<[20, 30] x f32, strides [30, 1]>
    %1 = aten.add.Tensor %arg1_1, %0 {arguments = {other = #aten.operand<0>, self = #aten.operand<1>}} : (tensor<[30] x f32, strides [1]>, tensor<[20, 30] x f32, strides [30, 1]>) -> tensor<[20, 30] x f32, strides [30, 1]>
    %sum_1 = aten.sum.dim_IntList %1 {arguments = {dim = [0 : i64], self = #aten.operand<0>}} : (tensor<[20, 30] x f32, strides [30, 1]>) -> tensor<[30] x f32, strides [1]>
    %2 = aten.copy.default %arg1_1, %sum_1 {arguments = {self = #aten.operand<0>, src = #aten.operand<1>}} : (tensor<[30] x f32, strides [1]>, tensor<[30] x f32, strides [1]>) -> tensor<[30] x f32, strides [1]>
    %amax = aten.amax.default %1 {arguments = {dim = [1 : i64], self = #aten.operand<0>}} : (tensor<[20, 30] x f32, strides [30, 1]>) -> tensor<[20] x f32, strides [1]>
    %3 = aten.copy_.default %arg0_1, %1 {arguments = {self = #aten.operand<0>, src = #aten.operand<1>}} : (tensor<[20, 30] x f32, strides [30, 1]>, tensor<[20, 30] x f32, strides [30, 1]>) -> tensor<[20, 30] x f32, strides [30, 1]>
    %4 = aten.copy_.default %arg1_1, %2 {arguments = {self = #aten.operand<0>, src = #aten.operand<1>}} : (tensor<[30] x f32, strides [1]>, tensor<[30] x f32, strides [1]>) -> tensor<[30] x f32, strides [1]>
    return %amax : tensor<[20] x f32, strides [1]>
  }
}

