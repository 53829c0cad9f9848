// two_narrow_types of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[16, 33] x f16, strides [33, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}, %arg1_1: tensor<[16, 33] x bf16, strides [33, 1]> {irc.kind = "input", irc.name = "arg1", irc.offset = #sym<0>}) -> (tensor<[16, 33] x bf16, strides [33, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[33, 1]>}, tensor<[16, 33] x f16, strides [33, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[33, 1]>}, tensor<[16, 33] x f16, strides [33, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[33, 1]>}, tensor<[16, 33] x i1, strides [33, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[33, 1]>}) attributes {level = "aten"} {
    %_to_copy = aten._to_copy.default %arg0_1 {arguments = {dtype = #aten.dtype<"float32">, self = #aten.operand<0>}} : (tensor<[16, 33] x f16, strides [33, 1]>) -> tensor<[16, 33] x f32, strides [33, 1]>
    %_to_copy_1 = aten._to_copy.default %arg1_1 {arguments = {dtype = #aten.dtype<"float32">, self = #aten.operand<0>}} : (tensor<[16, 33] x bf16, strides [33, 1]>) -> tensor<[16, 33] x f32, strides [33, 1]>
    %add = aten.add.Tensor %_to_copy, %_to_copy_1 {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[16, 33] x f32, strides [33, 1]>, tensor<[16, 33] x f32, strides [33, 1]>) -> tensor<[16, 33] x f32, strides [33, 1]>
    %_to_copy_2 = aten._to_copy.default %add {arguments = {dtype = #aten.dtype<"float16">, self = #aten.operand<0>}} : (tensor<[16, 33] x f32, strides [33, 1]>) -> tensor<[16, 33] x f16, strides [33, 1]>
    %_to_copy_3 = aten._to_copy.default %_to_copy_2 {arguments = {dtype = #aten.dtype<"bfloat16">, self = #aten.operand<0>}} : (tensor<[16, 33] x f16, strides [33, 1]>) -> tensor<[16, 33] x bf16, strides [33, 1]>
    %_to_copy_4 = aten._to_copy.default %add {arguments = {dtype = #aten.dtype<"bfloat16">, self = #aten.operand<0>}} : (tensor<[16, 33] x f32, strides [33, 1]>) -> tensor<[16, 33] x bf16, strides [33, 1]>
    %_to_copy_5 = aten._to_copy.default %_to_copy_4 {arguments = {dtype = #aten.dtype<"float16">, self = #aten.operand<0>}} : (tensor<[16, 33] x bf16, strides [33, 1]>) -> tensor<[16, 33] x f16, strides [33, 1]>
    %mul = aten.mul.Tensor %arg0_1 {arguments = {other = 2 : i64, self = #aten.operand<0>}} : (tensor<[16, 33] x f16, strides [33, 1]>) -> tensor<[16, 33] x f16, strides [33, 1]>
    %eq = aten.eq.Scalar %arg0_1 {arguments = {other = 0 : i64, self = #aten.operand<0>}} : (tensor<[16, 33] x f16, strides [33, 1]>) -> tensor<[16, 33] x i1, strides [33, 1]>
    %eq_1 = aten.eq.Scalar %arg1_1 {arguments = {other = 0 : i64, self = #aten.operand<0>}} : (tensor<[16, 33] x bf16, strides [33, 1]>) -> tensor<[16, 33] x i1, strides [33, 1]>
    %bitwise_or = aten.bitwise_or.Tensor %eq, %eq_1 {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[16, 33] x i1, strides [33, 1]>, tensor<[16, 33] x i1, strides [33, 1]>) -> tensor<[16, 33] x i1, strides [33, 1]>
    return %_to_copy_3, %_to_copy_5, %mul, %bitwise_or : tensor<[16, 33] x bf16, strides [33, 1]>, tensor<[16, 33] x f16, strides [33, 1]>, tensor<[16, 33] x f16, strides [33, 1]>, tensor<[16, 33] x i1, strides [33, 1]>
  }
}

