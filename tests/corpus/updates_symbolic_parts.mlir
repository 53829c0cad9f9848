// updates_symbolic_parts of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[s27, s18, s51] x f32, strides [s18*s51, s51, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}, %arg1_1: tensor<[s27, 1, s51] x f32, strides [s51, s51, 1]> {irc.kind = "input", irc.name = "arg1", irc.offset = #sym<0>}) -> (tensor<[s27, s51] x f32, strides [s51, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[s51, 1]>}) attributes {level = "aten"} {
    %s27 = sym.bind_size %arg0_1 {dim = 0 : i64, hint = 6 : i64, minimum = 2 : i64, symbol = "s27"} : (tensor<[s27, s18, s51] x f32, strides [s18*s51, s51, 1]>) -> index
    %s18 = sym.bind_size %arg0_1 {dim = 1 : i64, hint = 10 : i64, minimum = 3 : i64, symbol = "s18"} : (tensor<[s27, s18, s51] x f32, strides [s18*s51, s51, 1]>) -> index
    %s51 = sym.bind_size %arg0_1 {dim = 2 : i64, hint = 4 : i64, minimum = 2 : i64, symbol = "s51"} : (tensor<[s27, s18, s51] x f32, strides [s18*s51, s51, 1]>) -> index
    sym.assert {lhs = #sym<3>, message = "Runtime assertion failed for expression s18 >= 3", relation = "le", rhs = #sym<s18>}
    sym.assert {lhs = #sym<s18*s51>, message = "Runtime assertion failed for expression Ne(s18*s51, 3*s51)", relation = "ne", rhs = #sym<s51*3>}
    %slice_1 = aten.slice.Tensor %arg0_1 {arguments = {end = 9223372036854775807 : i64, self = #aten.operand<0>, start = 0 : i64}} : (tensor<[s27, s18, s51] x f32, strides [s18*s51, s51, 1]>) -> tensor<[s27, s18, s51] x f32, strides [s18*s51, s51, 1]>
    %slice_2 = aten.slice.Tensor %slice_1 {arguments = {dim = 1 : i64, end = 3 : i64, self = #aten.operand<0>, start = 2 : i64}} : (tensor<[s27, s18, s51] x f32, strides [s18*s51, s51, 1]>) -> tensor<[s27, 1, s51] x f32, strides [s18*s51, s51, 1]>
    %0 = aten.copy.default %slice_2, %arg1_1 {arguments = {self = #aten.operand<0>, src = #aten.operand<1>}} : (tensor<[s27, 1, s51] x f32, strides [s18*s51, s51, 1]>, tensor<[s27, 1, s51] x f32, strides [s51, s51, 1]>) -> tensor<[s27, 1, s51] x f32, strides [s18*s51, s51, 1]>
    %1 = aten.slice.Tensor %arg0_1 {arguments = {end = 9223372036854775807 : i64, self = #aten.operand<0>, start = 0 : i64}} : (tensor<[s27, s18, s51] x f32, strides [s18*s51, s51, 1]>) -> tensor<[s27, s18, s51] x f32, strides [s18*s51, s51, 1]>
    %2 = aten.slice_scatter.default %1, %0 {arguments = {dim = 1 : i64, end = 3 : i64, self = #aten.operand<0>, src = #aten.operand<1>, start = 2 : i64}} : (tensor<[s27, s18, s51] x f32, strides [s18*s51, s51, 1]>, tensor<[s27, 1, s51] x f32, strides [s18*s51, s51, 1]>) -> tensor<[s27, s18, s51] x f32, strides [s18*s51, s51, 1]>
    %3 = aten.slice_scatter.default %arg0_1, %2 {arguments = {end = 9223372036854775807 : i64, self = #aten.operand<0>, src = #aten.operand<1>, start = 0 : i64}} : (tensor<[s27, s18, s51] x f32, strides [s18*s51, s51, 1]>, tensor<[s27, s18, s51] x f32, strides [s18*s51, s51, 1]>) -> tensor<[s27, s18, s51] x f32, strides [s18*s51, s51, 1]>
    %slice_3 = aten.slice.Tensor %3 {arguments = {end = 9223372036854775807 : i64, self = #aten.operand<0>, start = 0 : i64}} : (tensor<[s27, s18, s51] x f32, strides [s18*s51, s51, 1]>) -> tensor<[s27, s18, s51] x f32, strides [s18*s51, s51, 1]>
    %slice_4 = aten.slice.Tensor %slice_3 {arguments = {dim = 1 : i64, end = 3 : i64, self = #aten.operand<0>, start = 0 : i64}} : (tensor<[s27, s18, s51] x f32, strides [s18*s51, s51, 1]>) -> tensor<[s27, 3, s51] x f32, strides [s18*s51, s51, 1]>
    %sum_1 = aten.sum.dim_IntList %slice_4 {arguments = {dim = [1 : i64], self = #aten.operand<0>}} : (tensor<[s27, 3, s51] x f32, strides [s18*s51, s51, 1]>) -> tensor<[s27, s51] x f32, strides [s51, 1]>
    %4 = aten.copy_.default %arg0_1, %3 {arguments = {self = #aten.operand<0>, src = #aten.operand<1>}} : (tensor<[s27, s18, s51] x f32, strides [s18*s51, s51, 1]>, tensor<[s27, s18, s51] x f32, strides [s18*s51, s51, 1]>) -> tensor<[s27, s18, s51] x f32, strides [s18*s51, s51, 1]>
    return %sum_1 : tensor<[s27, s51] x f32, strides [s51, 1]>
  }
}

