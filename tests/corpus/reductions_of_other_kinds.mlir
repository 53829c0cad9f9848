// reductions_of_other_kinds of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[64, 200] x f32, strides [200, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}) -> (tensor<[64] x i64, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}, tensor<[] x i64, strides []> {irc.offset = #sym<0>, irc.strides = #sym.dims<[]>}, tensor<[200] x f32, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}, tensor<[64] x f32, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}, tensor<[64] x i1, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}, tensor<[64] x f32, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}) attributes {level = "aten"} {
    %argmax = aten.argmax.default %arg0_1 {arguments = {dim = 1 : i64, self = #aten.operand<0>}} : (tensor<[64, 200] x f32, strides [200, 1]>) -> tensor<[64] x i64, strides [1]>
    %argmin = aten.argmin.default %arg0_1 {arguments = {self = #aten.operand<0>}} : (tensor<[64, 200] x f32, strides [200, 1]>) -> tensor<[] x i64, strides []>
    %var = aten.var.correction %arg0_1 {arguments = {correction = 1 : i64, dim = [0 : i64], self = #aten.operand<0>}} : (tensor<[64, 200] x f32, strides [200, 1]>) -> tensor<[200] x f32, strides [1]>
    %std = aten.std.correction %arg0_1 {arguments = {correction = 1 : i64, dim = [1 : i64], self = #aten.operand<0>}} : (tensor<[64, 200] x f32, strides [200, 1]>) -> tensor<[64] x f32, strides [1]>
    %gt = aten.gt.Scalar %arg0_1 {arguments = {other = 0 : i64, self = #aten.operand<0>}} : (tensor<[64, 200] x f32, strides [200, 1]>) -> tensor<[64, 200] x i1, strides [200, 1]>
    %any_1 = aten.any.dim %gt {arguments = {dim = 1 : i64, self = #aten.operand<0>}} : (tensor<[64, 200] x i1, strides [200, 1]>) -> tensor<[64] x i1, strides [1]>
    %linalg_vector_norm = aten.linalg_vector_norm.default %arg0_1 {arguments = {dim = [1 : i64], self = #aten.operand<0>}} : (tensor<[64, 200] x f32, strides [200, 1]>) -> tensor<[64] x f32, strides [1]>
    return %argmax, %argmin, %var, %std, %any_1, %linalg_vector_norm : tensor<[64] x i64, strides [1]>, tensor<[] x i64, strides []>, tensor<[200] x f32, strides [1]>, tensor<[64] x f32, strides [1]>, tensor<[64] x i1, strides [1]>, tensor<[64] x f32, strides [1]>
  }
}

