// joins_that_are_updated of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[12, 6] x f32, strides [6, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}, %arg1_1: tensor<[3, 6] x f32, strides [6, 1]> {irc.kind = "input", irc.name = "arg1", irc.offset = #sym<0>}) -> (tensor<[12, 6] x f32, strides [6, 1]> {irc.offset = #sym<18>, irc.strides = #sym.dims<[6, 1]>}) attributes {level = "aten"} {
    %cat = aten.cat.default %arg0_1, %arg1_1 {arguments = {tensors = [#aten.operand<0>, #aten.operand<1>]}} : (tensor<[12, 6] x f32, strides [6, 1]>, tensor<[3, 6] x f32, strides [6, 1]>) -> tensor<[15, 6] x f32, strides [6, 1]>
    %0 = graph.constant {value = dense<0.0> : tensor<[] x f32, strides []>} : tensor<[] x f32, strides []>
    %lift_fresh_copy = aten.lift_fresh_copy.default %0 {arguments = {self = #aten.operand<0>}} : (tensor<[] x f32, strides []>) -> tensor<[] x f32, strides []>
    %slice_1 = aten.slice.Tensor %cat {arguments = {end = 4 : i64, self = #aten.operand<0>, start = 2 : i64}} : (tensor<[15, 6] x f32, strides [6, 1]>) -> tensor<[2, 6] x f32, strides [6, 1]>
    %copy = aten.copy.default %slice_1, %lift_fresh_copy {arguments = {self = #aten.operand<0>, src = #aten.operand<1>}} : (tensor<[2, 6] x f32, strides [6, 1]>, tensor<[] x f32, strides []>) -> tensor<[2, 6] x f32, strides [6, 1]>
    %1 = aten.slice_scatter.default %cat, %copy {arguments = {end = 4 : i64, self = #aten.operand<0>, src = #aten.operand<1>, start = 2 : i64}} : (tensor<[15, 6] x f32, strides [6, 1]>, tensor<[2, 6] x f32, strides [6, 1]>) -> tensor<[15, 6] x f32, strides [6, 1]>
    %slice_2 = aten.slice.Tensor %1 {arguments = {end = 12 : i64, self = #aten.operand<0>, start = 0 : i64}} : (tensor<[15, 6] x f32, strides [6, 1]>) -> tensor<[12, 6] x f32, strides [6, 1]>
    %add = aten.add.Tensor %slice_2 {arguments = {other = 1 : i64, self = #aten.operand<0>}} : (tensor<[12, 6] x f32, strides [6, 1]>) -> tensor<[12, 6] x f32, strides [6, 1]>
    %2 = aten.copy.default %arg0_1, %add {arguments = {self = #aten.operand<0>, src = #aten.operand<1>}} : (tensor<[12, 6] x f32, strides [6, 1]>, tensor<[12, 6] x f32, strides [6, 1]>) -> tensor<[12, 6] x f32, strides [6, 1]>
    %unsqueeze = aten.unsqueeze.default %1 {arguments = {dim = 1 : i64, self = #aten.operand<0>}} : (tensor<[15, 6] x f32, strides [6, 1]>) -> tensor<[15, 1, 6] x f32, strides [6, 6, 1]>
    %slice_3 = aten.slice.Tensor %unsqueeze {arguments = {end = 9223372036854775807 : i64, self = #aten.operand<0>, start = 3 : i64}} : (tensor<[15, 1, 6] x f32, strides [6, 6, 1]>) -> tensor<[12, 1, 6] x f32, strides [6, 6, 1]>
    %squeeze = aten.squeeze.dims %slice_3 {arguments = {dim = [1 : i64], self = #aten.operand<0>}} : (tensor<[12, 1, 6] x f32, strides [6, 6, 1]>) -> tensor<[12, 6] x f32, strides [6, 1]>
    %3 = aten.copy_.default %arg0_1, %2 {arguments = {self = #aten.operand<0>, src = #aten.operand<1>}} : (tensor<[12, 6] x f32, strides [6, 1]>, tensor<[12, 6] x f32, strides [6, 1]>) -> tensor<[12, 6] x f32, strides [6, 1]>
    %4 = aten.unsqueeze.default %1 {arguments = {dim = 1 : i64, self = #aten.operand<0>}} : (tensor<[15, 6] x f32, strides [6, 1]>) -> tensor<[15, 1, 6] x f32, strides [6, 6, 1]>
    %5 = aten.slice.Tensor %4 {arguments = {end = 9223372036854775807 : i64, self = #aten.operand<0>, start = 3 : i64}} : (tensor<[15, 1, 6] x f32, strides [6, 6, 1]>) -> tensor<[12, 1, 6] x f32, strides [6, 6, 1]>
    %squeeze_0 = aten.squeeze.dims %5 {arguments = {dim = [1 : i64], self = #aten.operand<0>}} : (tensor<[12, 1, 6] x f32, strides [6, 6, 1]>) -> tensor<[12, 6] x f32, strides [6, 1]>
    return %squeeze_0 : tensor<[12, 6] x f32, strides [6, 1]>
  }
}

