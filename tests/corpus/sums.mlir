// sums of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[64, 200] x f32, strides [200, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}) -> (tensor<[] x f32, strides []> {irc.offset = #sym<0>, irc.strides = #sym.dims<[]>}, tensor<[200] x f32, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}, tensor<[64] x f32, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}, tensor<[1, 1] x f32, strides [1, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1, 1]>}, tensor<[64] x f32, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}, tensor<[200] x f32, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}) attributes {level = "aten"} {
    %sum_1 = aten.sum.dim_IntList %arg0_1 {arguments = {dim = [], self = #aten.operand<0>}} : (tensor<[64, 200] x f32, strides [200, 1]>) -> tensor<[] x f32, strides []>
    %sum_2 = aten.sum.dim_IntList %arg0_1 {arguments = {dim = [0 : i64], self = #aten.operand<0>}} : (tensor<[64, 200] x f32, strides [200, 1]>) -> tensor<[200] x f32, strides [1]>
    %sum_3 = aten.sum.dim_IntList %arg0_1 {arguments = {dim = [1 : i64], self = #aten.operand<0>}} : (tensor<[64, 200] x f32, strides [200, 1]>) -> tensor<[64] x f32, strides [1]>
    %mean = aten.mean.dim %arg0_1 {arguments = {dim = [0 : i64, 1 : i64], keepdim = true, self = #aten.operand<0>}} : (tensor<[64, 200] x f32, strides [200, 1]>) -> tensor<[1, 1] x f32, strides [1, 1]>
    %amax = aten.amax.default %arg0_1 {arguments = {dim = [1 : i64], self = #aten.operand<0>}} : (tensor<[64, 200] x f32, strides [200, 1]>) -> tensor<[64] x f32, strides [1]>
    %prod = aten.prod.dim_int %arg0_1 {arguments = {dim = 0 : i64, self = #aten.operand<0>}} : (tensor<[64, 200] x f32, strides [200, 1]>) -> tensor<[200] x f32, strides [1]>
    return %sum_1, %sum_2, %sum_3, %mean, %amax, %prod : tensor<[] x f32, strides []>, tensor<[200] x f32, strides [1]>, tensor<[64] x f32, strides [1]>, tensor<[1, 1] x f32, strides [1, 1]>, tensor<[64] x f32, strides [1]>, tensor<[200] x f32, strides [1]>
  }
}

