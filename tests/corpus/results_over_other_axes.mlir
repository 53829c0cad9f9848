// results_over_other_axes of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[3, 5, 7] x f32, strides [35, 7, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}, %arg1_1: tensor<[3, 5, 1] x f32, strides [5, 1, 1]> {irc.kind = "input", irc.name = "arg1", irc.offset = #sym<0>}, %arg2_1: tensor<[5, 7] x f32, strides [7, 1]> {irc.kind = "input", irc.name = "arg2", irc.offset = #sym<0>}) -> (tensor<[5, 7] x f32, strides [7, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[7, 1]>}, tensor<[3, 5, 1] x f32, strides [5, 1, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[5, 1, 1]>}, tensor<[7] x f32, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}, tensor<[3] x f32, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}, tensor<[3, 5, 1] x f32, strides [5, 1, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[5, 1, 1]>}) attributes {level = "aten"} {
    %sum_1 = aten.sum.dim_IntList %arg0_1 {arguments = {dim = [0 : i64], self = #aten.operand<0>}} : (tensor<[3, 5, 7] x f32, strides [35, 7, 1]>) -> tensor<[5, 7] x f32, strides [7, 1]>
    %add = aten.add.Tensor %sum_1, %arg2_1 {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[5, 7] x f32, strides [7, 1]>, tensor<[5, 7] x f32, strides [7, 1]>) -> tensor<[5, 7] x f32, strides [7, 1]>
    %sum_2 = aten.sum.dim_IntList %arg0_1 {arguments = {dim = [2 : i64], keepdim = true, self = #aten.operand<0>}} : (tensor<[3, 5, 7] x f32, strides [35, 7, 1]>) -> tensor<[3, 5, 1] x f32, strides [5, 1, 1]>
    %mul = aten.mul.Tensor %sum_2, %arg1_1 {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[3, 5, 1] x f32, strides [5, 1, 1]>, tensor<[3, 5, 1] x f32, strides [5, 1, 1]>) -> tensor<[3, 5, 1] x f32, strides [5, 1, 1]>
    %sum_3 = aten.sum.dim_IntList %arg0_1 {arguments = {dim = [0 : i64, 1 : i64], self = #aten.operand<0>}} : (tensor<[3, 5, 7] x f32, strides [35, 7, 1]>) -> tensor<[7] x f32, strides [1]>
    %mul_1 = aten.mul.Tensor %arg0_1, %arg2_1 {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[3, 5, 7] x f32, strides [35, 7, 1]>, tensor<[5, 7] x f32, strides [7, 1]>) -> tensor<[3, 5, 7] x f32, strides [35, 7, 1]>
    %amax = aten.amax.default %mul_1 {arguments = {dim = [1 : i64, 2 : i64], self = #aten.operand<0>}} : (tensor<[3, 5, 7] x f32, strides [35, 7, 1]>) -> tensor<[3] x f32, strides [1]>
    %add_1 = aten.add.Tensor %arg1_1 {arguments = {other = 1 : i64, self = #aten.operand<0>}} : (tensor<[3, 5, 1] x f32, strides [5, 1, 1]>) -> tensor<[3, 5, 1] x f32, strides [5, 1, 1]>
    return %add, %mul, %sum_3, %amax, %add_1 : tensor<[5, 7] x f32, strides [7, 1]>, tensor<[3, 5, 1] x f32, strides [5, 1, 1]>, tensor<[7] x f32, strides [1]>, tensor<[3] x f32, strides [1]>, tensor<[3, 5, 1] x f32, strides [5, 1, 1]>
  }
}

