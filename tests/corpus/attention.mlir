// attention of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[4, 30, 16] x f32, strides [480, 16, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}, %arg1_1: tensor<[4, 30, 16] x f32, strides [480, 16, 1]> {irc.kind = "input", irc.name = "arg1", irc.offset = #sym<0>}, %arg2_1: tensor<[4, 30, 16] x f32, strides [480, 16, 1]> {irc.kind = "input", irc.name = "arg2", irc.offset = #sym<0>}) -> (tensor<[4, 30, 16] x f32, strides [480, 16, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[480, 16, 1]>}) attributes {level = "aten"} {
    %permute = aten.permute.default %arg1_1 {arguments = {dims = [0 : i64, 2 : i64, 1 : i64], self = #aten.operand<0>}} : (tensor<[4, 30, 16] x f32, strides [480, 16, 1]>) -> tensor<[4, 16, 30] x f32, strides [480, 1, 16]>
    %expand = aten.expand.default %arg0_1 {arguments = {self = #aten.operand<0>, size = [4 : i64, 30 : i64, 16 : i64]}} : (tensor<[4, 30, 16] x f32, strides [480, 16, 1]>) -> tensor<[4, 30, 16] x f32, strides [480, 16, 1]>
    %view = aten.view.default %expand {arguments = {self = #aten.operand<0>, size = [4 : i64, 30 : i64, 16 : i64]}} : (tensor<[4, 30, 16] x f32, strides [480, 16, 1]>) -> tensor<[4, 30, 16] x f32, strides [480, 16, 1]>
    %expand_1 = aten.expand.default %permute {arguments = {self = #aten.operand<0>, size = [4 : i64, 16 : i64, 30 : i64]}} : (tensor<[4, 16, 30] x f32, strides [480, 1, 16]>) -> tensor<[4, 16, 30] x f32, strides [480, 1, 16]>
    %view_1 = aten.view.default %expand_1 {arguments = {self = #aten.operand<0>, size = [4 : i64, 16 : i64, 30 : i64]}} : (tensor<[4, 16, 30] x f32, strides [480, 1, 16]>) -> tensor<[4, 16, 30] x f32, strides [480, 1, 16]>
    %bmm = aten.bmm.default %view, %view_1 {arguments = {mat2 = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[4, 30, 16] x f32, strides [480, 16, 1]>, tensor<[4, 16, 30] x f32, strides [480, 1, 16]>) -> tensor<[4, 30, 30] x f32, strides [900, 30, 1]>
    %view_0 = aten.view.default %bmm {arguments = {self = #aten.operand<0>, size = [4 : i64, 30 : i64, 30 : i64]}} : (tensor<[4, 30, 30] x f32, strides [900, 30, 1]>) -> tensor<[4, 30, 30] x f32, strides [900, 30, 1]>
    %div = aten.div.Tensor %view_0 {arguments = {other = 4 : i64, self = #aten.operand<0>}} : (tensor<[4, 30, 30] x f32, strides [900, 30, 1]>) -> tensor<[4, 30, 30] x f32, strides [900, 30, 1]>
    %gt = aten.gt.Scalar %div {arguments = {other = 2 : i64, self = #aten.operand<0>}} : (tensor<[4, 30, 30] x f32, strides [900, 30, 1]>) -> tensor<[4, 30, 30] x i1, strides [900, 30, 1]>
    %masked_fill = aten.masked_fill.Scalar %div, %gt {arguments = {mask = #aten.operand<1>, self = #aten.operand<0>, value = 0 : i64}} : (tensor<[4, 30, 30] x f32, strides [900, 30, 1]>, tensor<[4, 30, 30] x i1, strides [900, 30, 1]>) -> tensor<[4, 30, 30] x f32, strides [900, 30, 1]>
    %_softmax = aten._softmax.default %masked_fill {arguments = {dim = -1 : i64, half_to_float = false, self = #aten.operand<0>}} : (tensor<[4, 30, 30] x f32, strides [900, 30, 1]>) -> tensor<[4, 30, 30] x f32, strides [900, 30, 1]>
    %expand_2 = aten.expand.default %_softmax {arguments = {self = #aten.operand<0>, size = [4 : i64, 30 : i64, 30 : i64]}} : (tensor<[4, 30, 30] x f32, strides [900, 30, 1]>) -> tensor<[4, 30, 30] x f32, strides [900, 30, 1]>
    %view_2 = aten.view.default %expand_2 {arguments = {self = #aten.operand<0>, size = [4 : i64, 30 : i64, 30 : i64]}} : (tensor<[4, 30, 30] x f32, strides [900, 30, 1]>) -> tensor<[4, 30, 30] x f32, strides [900, 30, 1]>
    %expand_3 = aten.expand.default %arg2_1 {arguments = {self = #aten.operand<0>, size = [4 : i64, 30 : i64, 16 : i64]}} : (tensor<[4, 30, 16] x f32, strides [480, 16, 1]>) -> tensor<[4, 30, 16] x f32, strides [480, 16, 1]>
    %view_3 = aten.view.default %expand_3 {arguments = {self = #aten.operand<0>, size = [4 : i64, 30 : i64, 16 : i64]}} : (tensor<[4, 30, 16] x f32, strides [480, 16, 1]>) -> tensor<[4, 30, 16] x f32, strides [480, 16, 1]>
    %bmm_1 = aten.bmm.default %view_2, %view_3 {arguments = {mat2 = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[4, 30, 30] x f32, strides [900, 30, 1]>, tensor<[4, 30, 16] x f32, strides [480, 16, 1]>) -> tensor<[4, 30, 16] x f32, strides [480, 16, 1]>
    %view_4 = aten.view.default %bmm_1 {arguments = {self = #aten.operand<0>, size = [4 : i64, 30 : i64, 16 : i64]}} : (tensor<[4, 30, 16] x f32, strides [480, 16, 1]>) -> tensor<[4, 30, 16] x f32, strides [480, 16, 1]>
    return %view_4 : tensor<[4, 30, 16] x f32, strides [480, 16, 1]>
  }
}

