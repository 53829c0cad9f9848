// integers of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[17, 9] x i64, strides [9, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}) -> (tensor<[17, 9] x i64, strides [9, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[9, 1]>}, tensor<[17, 9] x i64, strides [9, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[9, 1]>}, tensor<[9] x i64, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}, tensor<[17, 9] x i8, strides [9, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[9, 1]>}, tensor<[17, 9] x i64, strides [9, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[9, 1]>}, tensor<[17, 9] x i64, strides [9, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[9, 1]>}) attributes {level = "aten"} {
    %div = aten.div.Tensor_mode %arg0_1 {arguments = {other = 3 : i64, rounding_mode = "floor", self = #aten.operand<0>}} : (tensor<[17, 9] x i64, strides [9, 1]>) -> tensor<[17, 9] x i64, strides [9, 1]>
    %remainder = aten.remainder.Scalar %arg0_1 {arguments = {other = 7 : i64, self = #aten.operand<0>}} : (tensor<[17, 9] x i64, strides [9, 1]>) -> tensor<[17, 9] x i64, strides [9, 1]>
    %gt = aten.gt.Scalar %arg0_1 {arguments = {other = 0 : i64, self = #aten.operand<0>}} : (tensor<[17, 9] x i64, strides [9, 1]>) -> tensor<[17, 9] x i1, strides [9, 1]>
    %sum_1 = aten.sum.dim_IntList %gt {arguments = {dim = [0 : i64], self = #aten.operand<0>}} : (tensor<[17, 9] x i1, strides [9, 1]>) -> tensor<[9] x i64, strides [1]>
    %_to_copy = aten._to_copy.default %arg0_1 {arguments = {dtype = #aten.dtype<"int8">, self = #aten.operand<0>}} : (tensor<[17, 9] x i64, strides [9, 1]>) -> tensor<[17, 9] x i8, strides [9, 1]>
    %mul = aten.mul.Tensor %arg0_1 {arguments = {other = #aten.operand<0>, self = #aten.operand<0>}} : (tensor<[17, 9] x i64, strides [9, 1]>) -> tensor<[17, 9] x i64, strides [9, 1]>
    %sub = aten.sub.Tensor %mul {arguments = {other = 1 : i64, self = #aten.operand<0>}} : (tensor<[17, 9] x i64, strides [9, 1]>) -> tensor<[17, 9] x i64, strides [9, 1]>
    %bitwise_and = aten.bitwise_and.Scalar %arg0_1 {arguments = {other = 6 : i64, self = #aten.operand<0>}} : (tensor<[17, 9] x i64, strides [9, 1]>) -> tensor<[17, 9] x i64, strides [9, 1]>
    return %div, %remainder, %sum_1, %_to_copy, %sub, %bitwise_and : tensor<[17, 9] x i64, strides [9, 1]>, tensor<[17, 9] x i64, strides [9, 1]>, tensor<[9] x i64, strides [1]>, tensor<[17, 9] x i8, strides [9, 1]>, tensor<[17, 9] x i64, strides [9, 1]>, tensor<[17, 9] x i64, strides [9, 1]>
  }
}

