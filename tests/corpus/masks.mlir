// masks of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[40, 40] x f32, strides [40, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}) -> (tensor<[40, 40] x f32, strides [40, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[40, 1]>}, tensor<[40, 40] x f32, strides [40, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[40, 1]>}, tensor<[40, 40] x i1, strides [40, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[40, 1]>}) attributes {level = "aten"} {
    %full = aten.full.default {arguments = {device = #aten.device<"cpu">, dtype = #aten.dtype<"bool">, fill_value = true, layout = #aten.layout<"strided">, pin_memory = false, size = [40 : i64, 40 : i64]}} : tensor<[40, 40] x i1, strides [40, 1]>
    %tril = aten.tril.default %full {arguments = {self = #aten.operand<0>}} : (tensor<[40, 40] x i1, strides [40, 1]>) -> tensor<[40, 40] x i1, strides [40, 1]>
    %bitwise_not = aten.bitwise_not.default %tril {arguments = {self = #aten.operand<0>}} : (tensor<[40, 40] x i1, strides [40, 1]>) -> tensor<[40, 40] x i1, strides [40, 1]>
    %masked_fill = aten.masked_fill.Scalar %arg0_1, %bitwise_not {arguments = {mask = #aten.operand<1>, self = #aten.operand<0>, value = -1000000000.0 : f64}} : (tensor<[40, 40] x f32, strides [40, 1]>, tensor<[40, 40] x i1, strides [40, 1]>) -> tensor<[40, 40] x f32, strides [40, 1]>
    %gt = aten.gt.Scalar %arg0_1 {arguments = {other = 0 : i64, self = #aten.operand<0>}} : (tensor<[40, 40] x f32, strides [40, 1]>) -> tensor<[40, 40] x i1, strides [40, 1]>
    %mul = aten.mul.Tensor %arg0_1 {arguments = {other = 2 : i64, self = #aten.operand<0>}} : (tensor<[40, 40] x f32, strides [40, 1]>) -> tensor<[40, 40] x f32, strides [40, 1]>
    %where = aten.where.self %gt, %arg0_1, %mul {arguments = {condition = #aten.operand<0>, other = #aten.operand<2>, self = #aten.operand<1>}} : (tensor<[40, 40] x i1, strides [40, 1]>, tensor<[40, 40] x f32, strides [40, 1]>, tensor<[40, 40] x f32, strides [40, 1]>) -> tensor<[40, 40] x f32, strides [40, 1]>
    %gt_1 = aten.gt.Scalar %arg0_1 {arguments = {other = 0 : i64, self = #aten.operand<0>}} : (tensor<[40, 40] x f32, strides [40, 1]>) -> tensor<[40, 40] x i1, strides [40, 1]>
    %lt = aten.lt.Scalar %arg0_1 {arguments = {other = 0.5 : f64, self = #aten.operand<0>}} : (tensor<[40, 40] x f32, strides [40, 1]>) -> tensor<[40, 40] x i1, strides [40, 1]>
    %bitwise_and = aten.bitwise_and.Tensor %gt_1, %lt {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[40, 40] x i1, strides [40, 1]>, tensor<[40, 40] x i1, strides [40, 1]>) -> tensor<[40, 40] x i1, strides [40, 1]>
    return %masked_fill, %where, %bitwise_and : tensor<[40, 40] x f32, strides [40, 1]>, tensor<[40, 40] x f32, strides [40, 1]>, tensor<[40, 40] x i1, strides [40, 1]>
  }
}

