// slices_and_steps of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[12, 40] x f32, strides [40, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}) -> (tensor<[10, 40] x f32, strides [40, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[40, 1]>}, tensor<[12, 20] x f32, strides [20, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[20, 1]>}, tensor<[4] x f32, strides [120]> {irc.alias_of = 0 : i64, irc.offset = #sym<5>, irc.strides = #sym.dims<[120]>}) attributes {level = "aten"} {
    %slice_1 = aten.slice.Tensor %arg0_1 {arguments = {end = -1 : i64, self = #aten.operand<0>, start = 1 : i64}} : (tensor<[12, 40] x f32, strides [40, 1]>) -> tensor<[10, 40] x f32, strides [40, 1]>
    %slice_2 = aten.slice.Tensor %arg0_1 {arguments = {end = 9223372036854775807 : i64, self = #aten.operand<0>, start = 2 : i64}} : (tensor<[12, 40] x f32, strides [40, 1]>) -> tensor<[10, 40] x f32, strides [40, 1]>
    %add = aten.add.Tensor %slice_1, %slice_2 {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[10, 40] x f32, strides [40, 1]>, tensor<[10, 40] x f32, strides [40, 1]>) -> tensor<[10, 40] x f32, strides [40, 1]>
    %slice_3 = aten.slice.Tensor %arg0_1 {arguments = {dim = 1 : i64, end = 9223372036854775807 : i64, self = #aten.operand<0>, start = 0 : i64, step = 2 : i64}} : (tensor<[12, 40] x f32, strides [40, 1]>) -> tensor<[12, 20] x f32, strides [40, 2]>
    %mul = aten.mul.Tensor %slice_3 {arguments = {other = 3 : i64, self = #aten.operand<0>}} : (tensor<[12, 20] x f32, strides [40, 2]>) -> tensor<[12, 20] x f32, strides [20, 1]>
    %slice_4 = aten.slice.Tensor %arg0_1 {arguments = {end = 9223372036854775807 : i64, self = #aten.operand<0>, start = 0 : i64, step = 3 : i64}} : (tensor<[12, 40] x f32, strides [40, 1]>) -> tensor<[4, 40] x f32, strides [120, 1]>
    %select = aten.select.int %slice_4 {arguments = {dim = 1 : i64, index = 5 : i64, self = #aten.operand<0>}} : (tensor<[4, 40] x f32, strides [120, 1]>) -> tensor<[4] x f32, strides [120]>
    return %add, %mul, %select : tensor<[10, 40] x f32, strides [40, 1]>, tensor<[12, 20] x f32, strides [20, 1]>, tensor<[4] x f32, strides [120]>
  }
}

