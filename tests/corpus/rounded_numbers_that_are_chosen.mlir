// rounded_numbers_that_are_chosen of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[16, 33] x f32, strides [33, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}, %arg1_1: tensor<[16, 33] x f32, strides [33, 1]> {irc.kind = "input", irc.name = "arg1", irc.offset = #sym<0>}) -> (tensor<[16, 33] x f32, strides [33, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[33, 1]>}, tensor<[16] x f32, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}, tensor<[16, 33] x f64, strides [33, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[33, 1]>}) attributes {level = "aten"} {
    %gt = aten.gt.Scalar %arg0_1 {arguments = {other = 0 : i64, self = #aten.operand<0>}} : (tensor<[16, 33] x f32, strides [33, 1]>) -> tensor<[16, 33] x i1, strides [33, 1]>
    %_to_copy = aten._to_copy.default %arg0_1 {arguments = {dtype = #aten.dtype<"bfloat16">, self = #aten.operand<0>}} : (tensor<[16, 33] x f32, strides [33, 1]>) -> tensor<[16, 33] x bf16, strides [33, 1]>
    %_to_copy_1 = aten._to_copy.default %arg1_1 {arguments = {dtype = #aten.dtype<"bfloat16">, self = #aten.operand<0>}} : (tensor<[16, 33] x f32, strides [33, 1]>) -> tensor<[16, 33] x bf16, strides [33, 1]>
    %where = aten.where.self %gt, %_to_copy, %_to_copy_1 {arguments = {condition = #aten.operand<0>, other = #aten.operand<2>, self = #aten.operand<1>}} : (tensor<[16, 33] x i1, strides [33, 1]>, tensor<[16, 33] x bf16, strides [33, 1]>, tensor<[16, 33] x bf16, strides [33, 1]>) -> tensor<[16, 33] x bf16, strides [33, 1]>
    %_to_copy_2 = aten._to_copy.default %where {arguments = {dtype = #aten.dtype<"float32">, self = #aten.operand<0>}} : (tensor<[16, 33] x bf16, strides [33, 1]>) -> tensor<[16, 33] x f32, strides [33, 1]>
    %exp = aten.exp.default %_to_copy_2 {arguments = {self = #aten.operand<0>}} : (tensor<[16, 33] x f32, strides [33, 1]>) -> tensor<[16, 33] x f32, strides [33, 1]>
    %mul = aten.mul.Tensor %where {arguments = {other = 2 : i64, self = #aten.operand<0>}} : (tensor<[16, 33] x bf16, strides [33, 1]>) -> tensor<[16, 33] x bf16, strides [33, 1]>
    %_to_copy_3 = aten._to_copy.default %mul {arguments = {dtype = #aten.dtype<"float32">, self = #aten.operand<0>}} : (tensor<[16, 33] x bf16, strides [33, 1]>) -> tensor<[16, 33] x f32, strides [33, 1]>
    %sum_1 = aten.sum.dim_IntList %_to_copy_3 {arguments = {dim = [1 : i64], self = #aten.operand<0>}} : (tensor<[16, 33] x f32, strides [33, 1]>) -> tensor<[16] x f32, strides [1]>
    %_to_copy_4 = aten._to_copy.default %where {arguments = {dtype = #aten.dtype<"float64">, self = #aten.operand<0>}} : (tensor<[16, 33] x bf16, strides [33, 1]>) -> tensor<[16, 33] x f64, strides [33, 1]>
    return %exp, %sum_1, %_to_copy_4 : tensor<[16, 33] x f32, strides [33, 1]>, tensor<[16] x f32, strides [1]>, tensor<[16, 33] x f64, strides [33, 1]>
  }
}

