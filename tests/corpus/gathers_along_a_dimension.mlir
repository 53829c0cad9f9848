// gathers_along_a_dimension of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[20, 8] x f32, strides [8, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}, %arg1_1: tensor<[4, 8] x i64, strides [8, 1]> {irc.kind = "input", irc.name = "arg1", irc.offset = #sym<0>}) -> (tensor<[4, 8] x f32, strides [8, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[8, 1]>}, tensor<[20, 8] x f32, strides [8, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[8, 1]>}) attributes {level = "aten"} {
    %gather = aten.gather.default %arg0_1, %arg1_1 {arguments = {dim = 0 : i64, index = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[20, 8] x f32, strides [8, 1]>, tensor<[4, 8] x i64, strides [8, 1]>) -> tensor<[4, 8] x f32, strides [8, 1]>
    %exp = aten.exp.default %gather {arguments = {self = #aten.operand<0>}} : (tensor<[4, 8] x f32, strides [8, 1]>) -> tensor<[4, 8] x f32, strides [8, 1]>
    %full = aten.full.default {arguments = {device = #aten.device<"cpu">, dtype = #aten.dtype<"float32">, fill_value = 0 : i64, layout = #aten.layout<"strided">, pin_memory = false, size = [20 : i64, 8 : i64]}} : tensor<[20, 8] x f32, strides [8, 1]>
    %_to_copy = aten._to_copy.default %arg1_1 {arguments = {dtype = #aten.dtype<"float32">, self = #aten.operand<0>}} : (tensor<[4, 8] x i64, strides [8, 1]>) -> tensor<[4, 8] x f32, strides [8, 1]>
    %scatter_add = aten.scatter_add.default %full, %arg1_1, %_to_copy {arguments = {dim = 0 : i64, index = #aten.operand<1>, self = #aten.operand<0>, src = #aten.operand<2>}} : (tensor<[20, 8] x f32, strides [8, 1]>, tensor<[4, 8] x i64, strides [8, 1]>, tensor<[4, 8] x f32, strides [8, 1]>) -> tensor<[20, 8] x f32, strides [8, 1]>
    return %exp, %scatter_add : tensor<[4, 8] x f32, strides [8, 1]>, tensor<[20, 8] x f32, strides [8, 1]>
  }
}

