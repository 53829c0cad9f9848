// symbolic_gathers of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[s27, s18] x f32, strides [s18, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}, %arg1_1: tensor<[3] x i64, strides [1]> {irc.kind = "input", irc.name = "arg1", irc.offset = #sym<0>}) -> (tensor<[3, s18] x f32, strides [s18, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[s18, 1]>}, tensor<[s27, s18] x f32, strides [s18, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[s18, 1]>}, tensor<[s27, s18] x f32, strides [s18, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[s18, 1]>}) attributes {level = "aten"} {
    %s27 = sym.bind_size %arg0_1 {dim = 0 : i64, hint = 20 : i64, minimum = 3 : i64, symbol = "s27"} : (tensor<[s27, s18] x f32, strides [s18, 1]>) -> index
    %s18 = sym.bind_size %arg0_1 {dim = 1 : i64, hint = 33 : i64, minimum = 33 : i64, symbol = "s18"} : (tensor<[s27, s18] x f32, strides [s18, 1]>) -> index
    sym.assert {lhs = #sym<3>, message = "Runtime assertion failed for expression s27 >= 3", relation = "le", rhs = #sym<s27>}
    sym.assert {lhs = #sym<33>, message = "Runtime assertion failed for expression s18 >= 33", relation = "le", rhs = #sym<s18>}
    %index = aten.index.Tensor %arg0_1, %arg1_1 {arguments = {indices = [#aten.operand<1>], self = #aten.operand<0>}} : (tensor<[s27, s18] x f32, strides [s18, 1]>, tensor<[3] x i64, strides [1]>) -> tensor<[3, s18] x f32, strides [s18, 1]>
    %add = aten.add.Tensor %index {arguments = {other = 1 : i64, self = #aten.operand<0>}} : (tensor<[3, s18] x f32, strides [s18, 1]>) -> tensor<[3, s18] x f32, strides [s18, 1]>
    %slice_1 = aten.slice.Tensor %arg0_1 {arguments = {end = 3 : i64, self = #aten.operand<0>, start = 0 : i64}} : (tensor<[s27, s18] x f32, strides [s18, 1]>) -> tensor<[3, s18] x f32, strides [s18, 1]>
    %index_add = aten.index_add.default %arg0_1, %arg1_1, %slice_1 {arguments = {dim = 0 : i64, index = #aten.operand<1>, self = #aten.operand<0>, source = #aten.operand<2>}} : (tensor<[s27, s18] x f32, strides [s18, 1]>, tensor<[3] x i64, strides [1]>, tensor<[3, s18] x f32, strides [s18, 1]>) -> tensor<[s27, s18] x f32, strides [s18, 1]>
    %unsqueeze = aten.unsqueeze.default %arg1_1 {arguments = {dim = 1 : i64, self = #aten.operand<0>}} : (tensor<[3] x i64, strides [1]>) -> tensor<[3, 1] x i64, strides [1, 1]>
    %expand = aten.expand.default %unsqueeze {arguments = {self = #aten.operand<0>, size = [3 : i64, 33 : i64]}} : (tensor<[3, 1] x i64, strides [1, 1]>) -> tensor<[3, 33] x i64, strides [1, 0]>
    %scatter = aten.scatter.value %arg0_1, %expand {arguments = {dim = 0 : i64, index = #aten.operand<1>, self = #aten.operand<0>, value = 1.0 : f64}} : (tensor<[s27, s18] x f32, strides [s18, 1]>, tensor<[3, 33] x i64, strides [1, 0]>) -> tensor<[s27, s18] x f32, strides [s18, 1]>
    return %add, %index_add, %scatter : tensor<[3, s18] x f32, strides [s18, 1]>, tensor<[s27, s18] x f32, strides [s18, 1]>, tensor<[s27, s18] x f32, strides [s18, 1]>
  }
}

