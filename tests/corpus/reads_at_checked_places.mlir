// reads_at_checked_places of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[5, 40] x f32, strides [40, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}, %arg1_1: tensor<[2] x i64, strides [1]> {irc.kind = "input", irc.name = "arg1", irc.offset = #sym<0>}) -> (tensor<[2, 40] x f32, strides [40, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[40, 1]>}, tensor<[2, 2] x f32, strides [2, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[2, 1]>}) attributes {level = "aten"} {
    %index_select = aten.index_select.default %arg0_1, %arg1_1 {arguments = {dim = 0 : i64, index = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[5, 40] x f32, strides [40, 1]>, tensor<[2] x i64, strides [1]>) -> tensor<[2, 40] x f32, strides [40, 1]>
    %select = aten.select.int %arg0_1 {arguments = {dim = 0 : i64, index = 0 : i64, self = #aten.operand<0>}} : (tensor<[5, 40] x f32, strides [40, 1]>) -> tensor<[40] x f32, strides [1]>
    %add = aten.add.Tensor %index_select, %select {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[2, 40] x f32, strides [40, 1]>, tensor<[40] x f32, strides [1]>) -> tensor<[2, 40] x f32, strides [40, 1]>
    %index = aten.index.Tensor %arg0_1, %arg1_1 {arguments = {indices = [#aten.operand<1>], self = #aten.operand<0>}} : (tensor<[5, 40] x f32, strides [40, 1]>, tensor<[2] x i64, strides [1]>) -> tensor<[2, 40] x f32, strides [40, 1]>
    %index_1 = aten.index.Tensor %index, %arg1_1 {arguments = {indices = [#aten.none, #aten.operand<1>], self = #aten.operand<0>}} : (tensor<[2, 40] x f32, strides [40, 1]>, tensor<[2] x i64, strides [1]>) -> tensor<[2, 2] x f32, strides [2, 1]>
    return %add, %index_1 : tensor<[2, 40] x f32, strides [40, 1]>, tensor<[2, 2] x f32, strides [2, 1]>
  }
}

