// updates_parts of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[20, 30] x f32, strides [30, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}, %arg1_1: tensor<[5, 30] x f32, strides [30, 1]> {irc.kind = "input", irc.name = "arg1", irc.offset = #sym<0>}) -> (tensor<[20, 30] x f32, strides [30, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[30, 1]>}) attributes {level = "aten"} {
    %slice_1 = aten.slice.Tensor %arg0_1 {arguments = {end = 8 : i64, self = #aten.operand<0>, start = 3 : i64}} : (tensor<[20, 30] x f32, strides [30, 1]>) -> tensor<[5, 30] x f32, strides [30, 1]>
    %0 = aten.copy.default %slice_1, %arg1_1 {arguments = {self = #aten.operand<0>, src = #aten.operand<1>}} : (tensor<[5, 30] x f32, strides [30, 1]>, tensor<[5, 30] x f32, strides [30, 1]>) -> tensor<[5, 30] x f32, strides [30, 1]>
    %1 = aten.slice_scatter.default %arg0_1, %0 {arguments = {end = 8 : i64, self = #aten.operand<0>, src = #aten.operand<1>, start = 3 : i64}} : (tensor<[20, 30] x f32, strides [30, 1]>, tensor<[5, 30] x f32, strides [30, 1]>) -> tensor<[20, 30] x f32, strides [30, 1]>
    %slice_2 = aten.slice.Tensor %1 {arguments = {dim = 1 : i64, end = 3 : i64, self = #aten.operand<0>, start = 1 : i64}} : (tensor<[20, 30] x f32, strides [30, 1]>) -> tensor<[20, 2] x f32, strides [30, 1]>
    %2 = aten.add.Tensor %slice_2 {arguments = {other = 1 : i64, self = #aten.operand<0>}} : (tensor<[20, 2] x f32, strides [30, 1]>) -> tensor<[20, 2] x f32, strides [2, 1]>
    %3 = aten.slice_scatter.default %1, %2 {arguments = {dim = 1 : i64, end = 3 : i64, self = #aten.operand<0>, src = #aten.operand<1>, start = 1 : i64}} : (tensor<[20, 30] x f32, strides [30, 1]>, tensor<[20, 2] x f32, strides [2, 1]>) -> tensor<[20, 30] x f32, strides [30, 1]>
    %slice_3 = aten.slice.Tensor %3 {arguments = {dim = 1 : i64, end = 3 : i64, self = #aten.operand<0>, start = 1 : i64}} : (tensor<[20, 30] x f32, strides [30, 1]>) -> tensor<[20, 2] x f32, strides [30, 1]>
    %4 = aten.copy.default %slice_3, %2 {arguments = {self = #aten.operand<0>, src = #aten.operand<1>}} : (tensor<[20, 2] x f32, strides [30, 1]>, tensor<[20, 2] x f32, strides [2, 1]>) -> tensor<[20, 2] x f32, strides [30, 1]>
    %5 = aten.reshape.default %4 {arguments = {self = #aten.operand<0>, shape = [40 : i64]}} : (tensor<[20, 2] x f32, strides [30, 1]>) -> tensor<[40] x f32, strides [1]>
    %6 = aten.reshape.default %5 {arguments = {self = #aten.operand<0>, shape = [20 : i64, 2 : i64]}} : (tensor<[40] x f32, strides [1]>) -> tensor<[20, 2] x f32, strides [2, 1]>
    %7 = aten.slice_scatter.default %3, %6 {arguments = {dim = 1 : i64, end = 3 : i64, self = #aten.operand<0>, src = #aten.operand<1>, start = 1 : i64}} : (tensor<[20, 30] x f32, strides [30, 1]>, tensor<[20, 2] x f32, strides [2, 1]>) -> tensor<[20, 30] x f32, strides [30, 1]>
    %mul = aten.mul.Tensor %7 {arguments = {other = 2 : i64, self = #aten.operand<0>}} : (tensor<[20, 30] x f32, strides [30, 1]>) -> tensor<[20, 30] x f32, strides [30, 1]>
    %8 = aten.copy_.default %arg0_1, %7 {arguments = {self = #aten.operand<0>, src = #aten.operand<1>}} : (tensor<[20, 30] x f32, strides [30, 1]>, tensor<[20, 30] x f32, strides [30, 1]>) -> tensor<[20, 30] x f32, strides [30, 1]>
    return %mul : tensor<[20, 30] x f32, strides [30, 1]>
  }
}

