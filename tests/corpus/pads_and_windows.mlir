// pads_and_windows of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[3, 20, 20] x f32, strides [400, 20, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}) -> (tensor<[3, 23, 23] x f32, strides [529, 23, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[529, 23, 1]>}, tensor<[3, 6, 20] x f32, strides [120, 20, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[120, 20, 1]>}, tensor<[3, 20, 19] x f32, strides [380, 19, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[380, 19, 1]>}) attributes {level = "aten"} {
    %constant_pad_nd = aten.constant_pad_nd.default %arg0_1 {arguments = {pad = [1 : i64, 2 : i64, 0 : i64, 3 : i64], self = #aten.operand<0>, value = 2.0 : f64}} : (tensor<[3, 20, 20] x f32, strides [400, 20, 1]>) -> tensor<[3, 23, 23] x f32, strides [529, 23, 1]>
    %mul = aten.mul.Tensor %constant_pad_nd {arguments = {other = 2 : i64, self = #aten.operand<0>}} : (tensor<[3, 23, 23] x f32, strides [529, 23, 1]>) -> tensor<[3, 23, 23] x f32, strides [529, 23, 1]>
    %unfold = aten.unfold.default %arg0_1 {arguments = {dimension = 1 : i64, self = #aten.operand<0>, size = 5 : i64, step = 3 : i64}} : (tensor<[3, 20, 20] x f32, strides [400, 20, 1]>) -> tensor<[3, 6, 20, 5] x f32, strides [400, 60, 1, 20]>
    %sum_1 = aten.sum.dim_IntList %unfold {arguments = {dim = [-1 : i64], self = #aten.operand<0>}} : (tensor<[3, 6, 20, 5] x f32, strides [400, 60, 1, 20]>) -> tensor<[3, 6, 20] x f32, strides [120, 20, 1]>
    %constant_pad_nd_1 = aten.constant_pad_nd.default %arg0_1 {arguments = {pad = [-1 : i64, 0 : i64, 2 : i64, -2 : i64], self = #aten.operand<0>, value = 0.0 : f64}} : (tensor<[3, 20, 20] x f32, strides [400, 20, 1]>) -> tensor<[3, 20, 19] x f32, strides [380, 19, 1]>
    return %mul, %sum_1, %constant_pad_nd_1 : tensor<[3, 23, 23] x f32, strides [529, 23, 1]>, tensor<[3, 6, 20] x f32, strides [120, 20, 1]>, tensor<[3, 20, 19] x f32, strides [380, 19, 1]>
  }
}

