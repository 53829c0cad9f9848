// a_loop_of_slices of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[8, 8] x f32, strides [8, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}) -> (tensor<[8, 8] x f32, strides [8, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[8, 1]>}) attributes {level = "aten"} {
    %select = aten.select.int %arg0_1 {arguments = {dim = 1 : i64, index = 0 : i64, self = #aten.operand<0>}} : (tensor<[8, 8] x f32, strides [8, 1]>) -> tensor<[8] x f32, strides [8]>
    %full = aten.full.default {arguments = {device = #aten.device<"cpu">, dtype = #aten.dtype<"float32">, fill_value = 0 : i64, layout = #aten.layout<"strided">, pin_memory = false, size = [8 : i64, 8 : i64]}} : tensor<[8, 8] x f32, strides [8, 1]>
    %mul = aten.mul.Tensor %select {arguments = {other = 0.5 : f64, self = #aten.operand<0>}} : (tensor<[8] x f32, strides [8]>) -> tensor<[8] x f32, strides [1]>
    %select_1 = aten.select.int %arg0_1 {arguments = {dim = 1 : i64, index = 0 : i64, self = #aten.operand<0>}} : (tensor<[8, 8] x f32, strides [8, 1]>) -> tensor<[8] x f32, strides [8]>
    %add = aten.add.Tensor %mul, %select_1 {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[8] x f32, strides [1]>, tensor<[8] x f32, strides [8]>) -> tensor<[8] x f32, strides [1]>
    %select_2 = aten.select.int %full {arguments = {dim = 1 : i64, index = 0 : i64, self = #aten.operand<0>}} : (tensor<[8, 8] x f32, strides [8, 1]>) -> tensor<[8] x f32, strides [8]>
    %0 = aten.copy.default %select_2, %add {arguments = {self = #aten.operand<0>, src = #aten.operand<1>}} : (tensor<[8] x f32, strides [8]>, tensor<[8] x f32, strides [1]>) -> tensor<[8] x f32, strides [8]>
    %1 = aten.select_scatter.default %full, %0 {arguments = {dim = 1 : i64, index = 0 : i64, self = #aten.operand<0>, src = #aten.operand<1>}} : (tensor<[8, 8] x f32, strides [8, 1]>, tensor<[8] x f32, strides [8]>) -> tensor<[8, 8] x f32, strides [8, 1]>
    %mul_1 = aten.mul.Tensor %add {arguments = {other = 0.5 : f64, self = #aten.operand<0>}} : (tensor<[8] x f32, strides [1]>) -> tensor<[8] x f32, strides [1]>
    %select_3 = aten.select.int %arg0_1 {arguments = {dim = 1 : i64, index = 1 : i64, self = #aten.operand<0>}} : (tensor<[8, 8] x f32, strides [8, 1]>) -> tensor<[8] x f32, strides [8]>
    %add_1 = aten.add.Tensor %mul_1, %select_3 {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[8] x f32, strides [1]>, tensor<[8] x f32, strides [8]>) -> tensor<[8] x f32, strides [1]>
    %select_4 = aten.select.int %1 {arguments = {dim = 1 : i64, index = 1 : i64, self = #aten.operand<0>}} : (tensor<[8, 8] x f32, strides [8, 1]>) -> tensor<[8] x f32, strides [8]>
    %2 = aten.copy.default %select_4, %add_1 {arguments = {self = #aten.operand<0>, src = #aten.operand<1>}} : (tensor<[8] x f32, strides [8]>, tensor<[8] x f32, strides [1]>) -> tensor<[8] x f32, strides [8]>
    %3 = aten.select_scatter.default %1, %2 {arguments = {dim = 1 : i64, index = 1 : i64, self = #aten.operand<0>, src = #aten.operand<1>}} : (tensor<[8, 8] x f32, strides [8, 1]>, tensor<[8] x f32, strides [8]>) -> tensor<[8, 8] x f32, strides [8, 1]>
    %mul_2 = aten.mul.Tensor %add_1 {arguments = {other = 0.5 : f64, self = #aten.operand<0>}} : (tensor<[8] x f32, strides [1]>) -> tensor<[8] x f32, strides [1]>
    %select_5 = aten.select.int %arg0_1 {arguments = {dim = 1 : i64, index = 2 : i64, self = #aten.operand<0>}} : (tensor<[8, 8] x f32, strides [8, 1]>) -> tensor<[8] x f32, strides [8]>
    %add_2 = aten.add.Tensor %mul_2, %select_5 {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[8] x f32, strides [1]>, tensor<[8] x f32, strides [8]>) -> tensor<[8] x f32, strides [1]>
    %select_6 = aten.select.int %3 {arguments = {dim = 1 : i64, index = 2 : i64, self = #aten.operand<0>}} : (tensor<[8, 8] x f32, strides [8, 1]>) -> tensor<[8] x f32, strides [8]>
    %4 = aten.copy.default %select_6, %add_2 {arguments = {self = #aten.operand<0>, src = #aten.operand<1>}} : (tensor<[8] x f32, strides [8]>, tensor<[8] x f32, strides [1]>) -> tensor<[8] x f32, strides [8]>
    %5 = aten.select_scatter.default %3, %4 {arguments = {dim = 1 : i64, index = 2 : i64, self = #aten.operand<0>, src = #aten.operand<1>}} : (tensor<[8, 8] x f32, strides [8, 1]>, tensor<[8] x f32, strides [8]>) -> tensor<[8, 8] x f32, strides [8, 1]>
    %mul_3 = aten.mul.Tensor %add_2 {arguments = {other = 0.5 : f64, self = #aten.operand<0>}} : (tensor<[8] x f32, strides [1]>) -> tensor<[8] x f32, strides [1]>
    %select_7 = aten.select.int %arg0_1 {arguments = {dim = 1 : i64, index = 3 : i64, self = #aten.operand<0>}} : (tensor<[8, 8] x f32, strides [8, 1]>) -> tensor<[8] x f32, strides [8]>
    %add_3 = aten.add.Tensor %mul_3, %select_7 {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[8] x f32, strides [1]>, tensor<[8] x f32, strides [8]>) -> tensor<[8] x f32, strides [1]>
    %select_8 = aten.select.int %5 {arguments = {dim = 1 : i64, index = 3 : i64, self = #aten.operand<0>}} : (tensor<[8, 8] x f32, strides [8, 1]>) -> tensor<[8] x f32, strides [8]>
    %6 = aten.copy.default %select_8, %add_3 {arguments = {self = #aten.operand<0>, src = #aten.operand<1>}} : (tensor<[8] x f32, strides [8]>, tensor<[8] x f32, strides [1]>) -> tensor<[8] x f32, strides [8]>
    %7 = aten.select_scatter.default %5, %6 {arguments = {dim = 1 : i64, index = 3 : i64, self = #aten.operand<0>, src = #aten.operand<1>}} : (tensor<[8, 8] x f32, strides [8, 1]>, tensor<[8] x f32, strides [8]>) -> tensor<[8, 8] x f32, strides [8, 1]>
    return %7 : tensor<[8, 8] x f32, strides [8, 1]>
  }
}

