// symbolic_joins_and_pads of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[s27, 6] x f32, strides [6, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}) -> (tensor<[floordiv(s27, 2) + s27, 6] x f32, strides [6, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[6, 1]>}, tensor<[s27 + 2, 6] x f32, strides [6, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[6, 1]>}, tensor<[s27, 4, 6] x f32, strides [24, 6, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[24, 6, 1]>}) attributes {level = "aten"} {
    %s27 = sym.bind_size %arg0_1 {dim = 0 : i64, hint = 20 : i64, minimum = 2 : i64, symbol = "s27"} : (tensor<[s27, 6] x f32, strides [6, 1]>) -> index
    sym.assert {lhs = #sym<floordiv(s27, 2)>, message = "Runtime assertion failed for expression ((s27//2)) <= s27", relation = "le", rhs = #sym<s27>}
    sym.assert {lhs = #sym<floordiv(s27, 2)>, message = "Runtime assertion failed for expression Ne((s27//2), 1)", relation = "ne", rhs = #sym<1>}
    %slice_1 = aten.slice.Tensor %arg0_1 {arguments = {end = #sym<floordiv(s27, 2)>, self = #aten.operand<0>, start = 0 : i64}} : (tensor<[s27, 6] x f32, strides [6, 1]>) -> tensor<[floordiv(s27, 2), 6] x f32, strides [6, 1]>
    %cat = aten.cat.default %arg0_1, %slice_1 {arguments = {tensors = [#aten.operand<0>, #aten.operand<1>]}} : (tensor<[s27, 6] x f32, strides [6, 1]>, tensor<[floordiv(s27, 2), 6] x f32, strides [6, 1]>) -> tensor<[floordiv(s27, 2) + s27, 6] x f32, strides [6, 1]>
    %constant_pad_nd = aten.constant_pad_nd.default %arg0_1 {arguments = {pad = [0 : i64, 0 : i64, 1 : i64, 1 : i64], self = #aten.operand<0>, value = 0.0 : f64}} : (tensor<[s27, 6] x f32, strides [6, 1]>) -> tensor<[s27 + 2, 6] x f32, strides [6, 1]>
    %slice_2 = aten.slice.Tensor %arg0_1 {arguments = {end = 9223372036854775807 : i64, self = #aten.operand<0>, start = 0 : i64}} : (tensor<[s27, 6] x f32, strides [6, 1]>) -> tensor<[s27, 6] x f32, strides [6, 1]>
    %unsqueeze = aten.unsqueeze.default %slice_2 {arguments = {dim = 1 : i64, self = #aten.operand<0>}} : (tensor<[s27, 6] x f32, strides [6, 1]>) -> tensor<[s27, 1, 6] x f32, strides [6, 6, 1]>
    %expand = aten.expand.default %unsqueeze {arguments = {self = #aten.operand<0>, size = [#sym<s27>, 4 : i64, 6 : i64]}} : (tensor<[s27, 1, 6] x f32, strides [6, 6, 1]>) -> tensor<[s27, 4, 6] x f32, strides [6, 0, 1]>
    %add = aten.add.Tensor %expand {arguments = {other = 1 : i64, self = #aten.operand<0>}} : (tensor<[s27, 4, 6] x f32, strides [6, 0, 1]>) -> tensor<[s27, 4, 6] x f32, strides [24, 6, 1]>
    return %cat, %constant_pad_nd, %add : tensor<[floordiv(s27, 2) + s27, 6] x f32, strides [6, 1]>, tensor<[s27 + 2, 6] x f32, strides [6, 1]>, tensor<[s27, 4, 6] x f32, strides [24, 6, 1]>
  }
}

