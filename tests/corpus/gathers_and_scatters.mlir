// gathers_and_scatters of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[20, 8] x f32, strides [8, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}, %arg1_1: tensor<[4] x i64, strides [1]> {irc.kind = "input", irc.name = "arg1", irc.offset = #sym<0>}, %arg2_1: tensor<[4, 8] x f32, strides [8, 1]> {irc.kind = "input", irc.name = "arg2", irc.offset = #sym<0>}) -> (tensor<[4, 8] x f32, strides [8, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[8, 1]>}, tensor<[20, 8] x f32, strides [8, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[8, 1]>}, tensor<[20, 8] x f32, strides [8, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[8, 1]>}, tensor<[8] x f32, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}) attributes {level = "aten"} {
    %index = aten.index.Tensor %arg0_1, %arg1_1 {arguments = {indices = [#aten.operand<1>], self = #aten.operand<0>}} : (tensor<[20, 8] x f32, strides [8, 1]>, tensor<[4] x i64, strides [1]>) -> tensor<[4, 8] x f32, strides [8, 1]>
    %mul = aten.mul.Tensor %index {arguments = {other = 2 : i64, self = #aten.operand<0>}} : (tensor<[4, 8] x f32, strides [8, 1]>) -> tensor<[4, 8] x f32, strides [8, 1]>
    %index_add = aten.index_add.default %arg0_1, %arg1_1, %arg2_1 {arguments = {dim = 0 : i64, index = #aten.operand<1>, self = #aten.operand<0>, source = #aten.operand<2>}} : (tensor<[20, 8] x f32, strides [8, 1]>, tensor<[4] x i64, strides [1]>, tensor<[4, 8] x f32, strides [8, 1]>) -> tensor<[20, 8] x f32, strides [8, 1]>
    %index_copy = aten.index_copy.default %arg0_1, %arg1_1, %arg2_1 {arguments = {dim = 0 : i64, index = #aten.operand<1>, self = #aten.operand<0>, source = #aten.operand<2>}} : (tensor<[20, 8] x f32, strides [8, 1]>, tensor<[4] x i64, strides [1]>, tensor<[4, 8] x f32, strides [8, 1]>) -> tensor<[20, 8] x f32, strides [8, 1]>
    %index_select = aten.index_select.default %arg0_1, %arg1_1 {arguments = {dim = 0 : i64, index = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[20, 8] x f32, strides [8, 1]>, tensor<[4] x i64, strides [1]>) -> tensor<[4, 8] x f32, strides [8, 1]>
    %sum_1 = aten.sum.dim_IntList %index_select {arguments = {dim = [0 : i64], self = #aten.operand<0>}} : (tensor<[4, 8] x f32, strides [8, 1]>) -> tensor<[8] x f32, strides [1]>
    return %mul, %index_add, %index_copy, %sum_1 : tensor<[4, 8] x f32, strides [8, 1]>, tensor<[20, 8] x f32, strides [8, 1]>, tensor<[20, 8] x f32, strides [8, 1]>, tensor<[8] x f32, strides [1]>
  }
}

