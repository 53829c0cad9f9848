// split_symbolic_axes of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[s27, 6] x f32, strides [6, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}) -> (tensor<[floordiv(s27, 2), 6] x f32, strides [6, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[6, 1]>}, tensor<[floordiv(s27, 2)*floordiv(s27, floordiv(s27, 2)), 6] x f32, strides [6, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[6, 1]>}) attributes {level = "aten"} {
    %s27 = sym.bind_size %arg0_1 {dim = 0 : i64, hint = 24 : i64, minimum = 2 : i64, symbol = "s27"} : (tensor<[s27, 6] x f32, strides [6, 1]>) -> index
    sym.assert {lhs = #sym<floordiv(s27, 2)>, message = "Runtime assertion failed for expression Ne((s27//2), s27)", relation = "ne", rhs = #sym<s27>}
    sym.assert {lhs = #sym<mod(s27, floordiv(s27, 2))>, message = "Runtime assertion failed for expression Eq(Mod(s27, (s27//2)), 0)", relation = "eq", rhs = #sym<0>}
    sym.assert {lhs = #sym<floordiv(s27, floordiv(s27, 2))>, message = "Runtime assertion failed for expression Eq((s27//((s27//2))), 2)", relation = "eq", rhs = #sym<2>}
    sym.assert {lhs = #sym<2>, message = "Runtime assertion failed for expression 6*((s27//2))*((s27//((s27//2)))) >= 2", relation = "le", rhs = #sym<floordiv(s27, 2)*floordiv(s27, floordiv(s27, 2))*6>}
    sym.assert {lhs = #sym<floordiv(s27, floordiv(s27, 2))>, message = "Runtime assertion failed for expression Ne((s27//((s27//2))), 1)", relation = "ne", rhs = #sym<1>}
    sym.assert {lhs = #sym<floordiv(s27, 2)>, message = "Runtime assertion failed for expression Ne((s27//2), 1)", relation = "ne", rhs = #sym<1>}
    sym.assert {lhs = #sym<max(floordiv(s27, floordiv(s27, 2)), 1)*6>, message = "Runtime assertion failed for expression Eq(6*Max(1, (s27//((s27//2)))), 6*((s27//((s27//2)))))", relation = "eq", rhs = #sym<floordiv(s27, floordiv(s27, 2))*6>}
    sym.assert {lhs = #sym<floordiv(s27, 2)*floordiv(s27, floordiv(s27, 2))*6>, message = "Runtime assertion failed for expression Ne(6*((s27//2))*((s27//((s27//2)))), 0)", relation = "ne", rhs = #sym<0>}
    sym.assert {lhs = #sym<floordiv(s27, 2)*floordiv(s27, floordiv(s27, 2))>, message = "Runtime assertion failed for expression Ne(((s27//2))*((s27//((s27//2)))), (s27//2))", relation = "ne", rhs = #sym<floordiv(s27, 2)>}
    sym.assert {lhs = #sym<mod(floordiv(s27, 2), floordiv(s27, 2)*floordiv(s27, floordiv(s27, 2)))>, message = "Runtime assertion failed for expression Ne(Mod((s27//2), ((s27//2))*((s27//((s27//2))))), 0)", relation = "ne", rhs = #sym<0>}
    sym.assert {lhs = #sym<floordiv(s27, floordiv(s27, 2))>, message = "Runtime assertion failed for expression Ne((s27//((s27//2))), 0)", relation = "ne", rhs = #sym<0>}
    sym.assert {lhs = #sym<floordiv(s27, 2)*floordiv(s27, floordiv(s27, 2))>, message = "Runtime assertion failed for expression Ne(((s27//2))*((s27//((s27//2)))), 1)", relation = "ne", rhs = #sym<1>}
    %view = aten.view.default %arg0_1 {arguments = {self = #aten.operand<0>, size = [#sym<floordiv(s27, 2)>, 2 : i64, 6 : i64]}} : (tensor<[s27, 6] x f32, strides [6, 1]>) -> tensor<[floordiv(s27, 2), floordiv(s27, floordiv(s27, 2)), 6] x f32, strides [floordiv(s27, floordiv(s27, 2))*6, 6, 1]>
    %sum_1 = aten.sum.dim_IntList %view {arguments = {dim = [1 : i64], self = #aten.operand<0>}} : (tensor<[floordiv(s27, 2), floordiv(s27, floordiv(s27, 2)), 6] x f32, strides [floordiv(s27, floordiv(s27, 2))*6, 6, 1]>) -> tensor<[floordiv(s27, 2), 6] x f32, strides [6, 1]>
    %mul_2 = aten.mul.Tensor %view {arguments = {other = 2 : i64, self = #aten.operand<0>}} : (tensor<[floordiv(s27, 2), floordiv(s27, floordiv(s27, 2)), 6] x f32, strides [floordiv(s27, floordiv(s27, 2))*6, 6, 1]>) -> tensor<[floordiv(s27, 2), floordiv(s27, floordiv(s27, 2)), 6] x f32, strides [max(floordiv(s27, floordiv(s27, 2)), 1)*6, 6, 1]>
    %view_1 = aten.view.default %mul_2 {arguments = {self = #aten.operand<0>, size = [-1 : i64, 6 : i64]}} : (tensor<[floordiv(s27, 2), floordiv(s27, floordiv(s27, 2)), 6] x f32, strides [max(floordiv(s27, floordiv(s27, 2)), 1)*6, 6, 1]>) -> tensor<[floordiv(s27, 2)*floordiv(s27, floordiv(s27, 2)), 6] x f32, strides [6, 1]>
    return %sum_1, %view_1 : tensor<[floordiv(s27, 2), 6] x f32, strides [6, 1]>, tensor<[floordiv(s27, 2)*floordiv(s27, floordiv(s27, 2)), 6] x f32, strides [6, 1]>
  }
}

