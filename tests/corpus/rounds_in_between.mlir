// rounds_in_between of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[16, 33] x f32, strides [33, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}, %arg1_1: tensor<[33] x f32, strides [1]> {irc.kind = "input", irc.name = "arg1", irc.offset = #sym<0>}) -> (tensor<[16, 33] x f32, strides [33, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[33, 1]>}, tensor<[16, 33] x f32, strides [33, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[33, 1]>}, tensor<[16, 33] x bf16, strides [33, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[33, 1]>}) attributes {level = "aten"} {
    %_to_copy = aten._to_copy.default %arg0_1 {arguments = {dtype = #aten.dtype<"bfloat16">, self = #aten.operand<0>}} : (tensor<[16, 33] x f32, strides [33, 1]>) -> tensor<[16, 33] x bf16, strides [33, 1]>
    %mul = aten.mul.Tensor %_to_copy {arguments = {other = 3 : i64, self = #aten.operand<0>}} : (tensor<[16, 33] x bf16, strides [33, 1]>) -> tensor<[16, 33] x bf16, strides [33, 1]>
    %_to_copy_1 = aten._to_copy.default %arg1_1 {arguments = {dtype = #aten.dtype<"bfloat16">, self = #aten.operand<0>}} : (tensor<[33] x f32, strides [1]>) -> tensor<[33] x bf16, strides [1]>
    %add = aten.add.Tensor %mul, %_to_copy_1 {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[16, 33] x bf16, strides [33, 1]>, tensor<[33] x bf16, strides [1]>) -> tensor<[16, 33] x bf16, strides [33, 1]>
    %_to_copy_2 = aten._to_copy.default %add {arguments = {dtype = #aten.dtype<"float32">, self = #aten.operand<0>}} : (tensor<[16, 33] x bf16, strides [33, 1]>) -> tensor<[16, 33] x f32, strides [33, 1]>
    %exp = aten.exp.default %mul {arguments = {self = #aten.operand<0>}} : (tensor<[16, 33] x bf16, strides [33, 1]>) -> tensor<[16, 33] x bf16, strides [33, 1]>
    %_to_copy_3 = aten._to_copy.default %exp {arguments = {dtype = #aten.dtype<"float32">, self = #aten.operand<0>}} : (tensor<[16, 33] x bf16, strides [33, 1]>) -> tensor<[16, 33] x f32, strides [33, 1]>
    %mul_1 = aten.mul.Tensor %_to_copy_3 {arguments = {other = 2 : i64, self = #aten.operand<0>}} : (tensor<[16, 33] x f32, strides [33, 1]>) -> tensor<[16, 33] x f32, strides [33, 1]>
    %_to_copy_4 = aten._to_copy.default %arg0_1 {arguments = {dtype = #aten.dtype<"bfloat16">, self = #aten.operand<0>}} : (tensor<[16, 33] x f32, strides [33, 1]>) -> tensor<[16, 33] x bf16, strides [33, 1]>
    %add_1 = aten.add.Tensor %_to_copy_4 {arguments = {other = 1 : i64, self = #aten.operand<0>}} : (tensor<[16, 33] x bf16, strides [33, 1]>) -> tensor<[16, 33] x bf16, strides [33, 1]>
    return %_to_copy_2, %mul_1, %add_1 : tensor<[16, 33] x f32, strides [33, 1]>, tensor<[16, 33] x f32, strides [33, 1]>, tensor<[16, 33] x bf16, strides [33, 1]>
  }
}

