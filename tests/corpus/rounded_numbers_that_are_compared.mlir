// rounded_numbers_that_are_compared of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[16, 33] x f32, strides [33, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}, %arg1_1: tensor<[16, 33] x f32, strides [33, 1]> {irc.kind = "input", irc.name = "arg1", irc.offset = #sym<0>}) -> (tensor<[16, 33] x f32, strides [33, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[33, 1]>}, tensor<[16, 33] x f32, strides [33, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[33, 1]>}) attributes {level = "aten"} {
    %_to_copy = aten._to_copy.default %arg0_1 {arguments = {dtype = #aten.dtype<"bfloat16">, self = #aten.operand<0>}} : (tensor<[16, 33] x f32, strides [33, 1]>) -> tensor<[16, 33] x bf16, strides [33, 1]>
    %_to_copy_1 = aten._to_copy.default %arg1_1 {arguments = {dtype = #aten.dtype<"bfloat16">, self = #aten.operand<0>}} : (tensor<[16, 33] x f32, strides [33, 1]>) -> tensor<[16, 33] x bf16, strides [33, 1]>
    %_to_copy_2 = aten._to_copy.default %_to_copy {arguments = {dtype = #aten.dtype<"float32">, self = #aten.operand<0>}} : (tensor<[16, 33] x bf16, strides [33, 1]>) -> tensor<[16, 33] x f32, strides [33, 1]>
    %eq = aten.eq.Tensor %_to_copy_2, %arg0_1 {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[16, 33] x f32, strides [33, 1]>, tensor<[16, 33] x f32, strides [33, 1]>) -> tensor<[16, 33] x i1, strides [33, 1]>
    %_to_copy_3 = aten._to_copy.default %eq {arguments = {dtype = #aten.dtype<"float32">, self = #aten.operand<0>}} : (tensor<[16, 33] x i1, strides [33, 1]>) -> tensor<[16, 33] x f32, strides [33, 1]>
    %_to_copy_4 = aten._to_copy.default %_to_copy {arguments = {dtype = #aten.dtype<"float32">, self = #aten.operand<0>}} : (tensor<[16, 33] x bf16, strides [33, 1]>) -> tensor<[16, 33] x f32, strides [33, 1]>
    %mul = aten.mul.Tensor %_to_copy_3, %_to_copy_4 {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[16, 33] x f32, strides [33, 1]>, tensor<[16, 33] x f32, strides [33, 1]>) -> tensor<[16, 33] x f32, strides [33, 1]>
    %gt = aten.gt.Tensor %_to_copy, %_to_copy_1 {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[16, 33] x bf16, strides [33, 1]>, tensor<[16, 33] x bf16, strides [33, 1]>) -> tensor<[16, 33] x i1, strides [33, 1]>
    %where = aten.where.self %gt, %_to_copy, %_to_copy_1 {arguments = {condition = #aten.operand<0>, other = #aten.operand<2>, self = #aten.operand<1>}} : (tensor<[16, 33] x i1, strides [33, 1]>, tensor<[16, 33] x bf16, strides [33, 1]>, tensor<[16, 33] x bf16, strides [33, 1]>) -> tensor<[16, 33] x bf16, strides [33, 1]>
    %_to_copy_5 = aten._to_copy.default %where {arguments = {dtype = #aten.dtype<"float32">, self = #aten.operand<0>}} : (tensor<[16, 33] x bf16, strides [33, 1]>) -> tensor<[16, 33] x f32, strides [33, 1]>
    %add = aten.add.Tensor %_to_copy_5 {arguments = {other = 1 : i64, self = #aten.operand<0>}} : (tensor<[16, 33] x f32, strides [33, 1]>) -> tensor<[16, 33] x f32, strides [33, 1]>
    return %mul, %add : tensor<[16, 33] x f32, strides [33, 1]>, tensor<[16, 33] x f32, strides [33, 1]>
  }
}

