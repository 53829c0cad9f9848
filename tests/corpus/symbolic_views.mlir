// symbolic_views of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[s27, s18, s51] x f32, strides [s18*s51, s51, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}) -> (tensor<[s18*s27, s51] x f32, strides [s51, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[s51, 1]>}, tensor<[s18, s27*s51] x f32, strides [s27*s51, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[s27*s51, 1]>}, tensor<[s27 - 1, s18, ceildiv(s51, 2)] x f32, strides [s18*s51, s51, 2]> {irc.alias_of = 0 : i64, irc.offset = #sym<s18*s51>, irc.strides = #sym.dims<[s18*s51, s51, 2]>}) attributes {level = "aten"} {
    %s27 = sym.bind_size %arg0_1 {dim = 0 : i64, hint = 4 : i64, minimum = 2 : i64, symbol = "s27"} : (tensor<[s27, s18, s51] x f32, strides [s18*s51, s51, 1]>) -> index
    %s18 = sym.bind_size %arg0_1 {dim = 1 : i64, hint = 6 : i64, minimum = 2 : i64, symbol = "s18"} : (tensor<[s27, s18, s51] x f32, strides [s18*s51, s51, 1]>) -> index
    %s51 = sym.bind_size %arg0_1 {dim = 2 : i64, hint = 5 : i64, minimum = 2 : i64, symbol = "s51"} : (tensor<[s27, s18, s51] x f32, strides [s18*s51, s51, 1]>) -> index
    sym.assert {lhs = #sym<s27 - 1>, message = "Runtime assertion failed for expression Ne(s27 - 1, 1)", relation = "ne", rhs = #sym<1>}
    sym.assert {lhs = #sym<ceildiv(s51, 2)>, message = "Runtime assertion failed for expression Ne(((s51 + 1)//2), 1)", relation = "ne", rhs = #sym<1>}
    %view = aten.view.default %arg0_1 {arguments = {self = #aten.operand<0>, size = [-1 : i64, #sym<s51>]}} : (tensor<[s27, s18, s51] x f32, strides [s18*s51, s51, 1]>) -> tensor<[s18*s27, s51] x f32, strides [s51, 1]>
    %mul_4 = aten.mul.Tensor %view {arguments = {other = 2 : i64, self = #aten.operand<0>}} : (tensor<[s18*s27, s51] x f32, strides [s51, 1]>) -> tensor<[s18*s27, s51] x f32, strides [s51, 1]>
    %permute = aten.permute.default %arg0_1 {arguments = {dims = [1 : i64, 0 : i64, 2 : i64], self = #aten.operand<0>}} : (tensor<[s27, s18, s51] x f32, strides [s18*s51, s51, 1]>) -> tensor<[s18, s27, s51] x f32, strides [s51, s18*s51, 1]>
    %clone = aten.clone.default %permute {arguments = {memory_format = #aten.memory_format<"contiguous_format">, self = #aten.operand<0>}} : (tensor<[s18, s27, s51] x f32, strides [s51, s18*s51, 1]>) -> tensor<[s18, s27, s51] x f32, strides [s27*s51, s51, 1]>
    %view_0 = aten.view.default %clone {arguments = {self = #aten.operand<0>, size = [#sym<s18>, #sym<s27*s51>]}} : (tensor<[s18, s27, s51] x f32, strides [s27*s51, s51, 1]>) -> tensor<[s18, s27*s51] x f32, strides [s27*s51, 1]>
    %slice_1 = aten.slice.Tensor %arg0_1 {arguments = {end = 9223372036854775807 : i64, self = #aten.operand<0>, start = 1 : i64}} : (tensor<[s27, s18, s51] x f32, strides [s18*s51, s51, 1]>) -> tensor<[s27 - 1, s18, s51] x f32, strides [s18*s51, s51, 1]>
    %slice_2 = aten.slice.Tensor %slice_1 {arguments = {dim = 1 : i64, end = 9223372036854775807 : i64, self = #aten.operand<0>, start = 0 : i64}} : (tensor<[s27 - 1, s18, s51] x f32, strides [s18*s51, s51, 1]>) -> tensor<[s27 - 1, s18, s51] x f32, strides [s18*s51, s51, 1]>
    %slice_3 = aten.slice.Tensor %slice_2 {arguments = {dim = 2 : i64, end = 9223372036854775807 : i64, self = #aten.operand<0>, start = 0 : i64, step = 2 : i64}} : (tensor<[s27 - 1, s18, s51] x f32, strides [s18*s51, s51, 1]>) -> tensor<[s27 - 1, s18, ceildiv(s51, 2)] x f32, strides [s18*s51, s51, 2]>
    return %mul_4, %view_0, %slice_3 : tensor<[s18*s27, s51] x f32, strides [s51, 1]>, tensor<[s18, s27*s51] x f32, strides [s27*s51, 1]>, tensor<[s27 - 1, s18, ceildiv(s51, 2)] x f32, strides [s18*s51, s51, 2]>
  }
}

