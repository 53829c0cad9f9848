// puts of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[5, 6] x f32, strides [6, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}, %arg1_1: tensor<[2] x i64, strides [1]> {irc.kind = "input", irc.name = "arg1", irc.offset = #sym<0>}, %arg2_1: tensor<[2] x i64, strides [1]> {irc.kind = "input", irc.name = "arg2", irc.offset = #sym<0>}) -> (tensor<[5, 6] x f32, strides [6, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[6, 1]>}, tensor<[5, 6] x f32, strides [6, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[6, 1]>}, tensor<[5, 2] x f32, strides [2, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[2, 1]>}) attributes {level = "aten"} {
    %full = aten.full.default {arguments = {device = #aten.device<"cpu">, dtype = #aten.dtype<"float32">, fill_value = 1 : i64, layout = #aten.layout<"strided">, pin_memory = false, size = [2 : i64]}} : tensor<[2] x f32, strides [1]>
    %index_put = aten.index_put.default %arg0_1, %arg1_1, %arg2_1, %full {arguments = {indices = [#aten.operand<1>, #aten.operand<2>], self = #aten.operand<0>, values = #aten.operand<3>}} : (tensor<[5, 6] x f32, strides [6, 1]>, tensor<[2] x i64, strides [1]>, tensor<[2] x i64, strides [1]>, tensor<[2] x f32, strides [1]>) -> tensor<[5, 6] x f32, strides [6, 1]>
    %index = aten.index.Tensor %arg0_1, %arg1_1, %arg2_1 {arguments = {indices = [#aten.operand<1>, #aten.operand<2>], self = #aten.operand<0>}} : (tensor<[5, 6] x f32, strides [6, 1]>, tensor<[2] x i64, strides [1]>, tensor<[2] x i64, strides [1]>) -> tensor<[2] x f32, strides [1]>
    %index_put_1 = aten.index_put.default %arg0_1, %arg1_1, %arg2_1, %index {arguments = {accumulate = true, indices = [#aten.operand<1>, #aten.operand<2>], self = #aten.operand<0>, values = #aten.operand<3>}} : (tensor<[5, 6] x f32, strides [6, 1]>, tensor<[2] x i64, strides [1]>, tensor<[2] x i64, strides [1]>, tensor<[2] x f32, strides [1]>) -> tensor<[5, 6] x f32, strides [6, 1]>
    %index_1 = aten.index.Tensor %arg0_1, %arg2_1 {arguments = {indices = [#aten.none, #aten.operand<1>], self = #aten.operand<0>}} : (tensor<[5, 6] x f32, strides [6, 1]>, tensor<[2] x i64, strides [1]>) -> tensor<[5, 2] x f32, strides [2, 1]>
    %sub = aten.sub.Tensor %index_1 {arguments = {other = 1 : i64, self = #aten.operand<0>}} : (tensor<[5, 2] x f32, strides [2, 1]>) -> tensor<[5, 2] x f32, strides [2, 1]>
    return %index_put, %index_put_1, %sub : tensor<[5, 6] x f32, strides [6, 1]>, tensor<[5, 6] x f32, strides [6, 1]>, tensor<[5, 2] x f32, strides [2, 1]>
  }
}

