// half_precision of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[16, 33] x bf16, strides [33, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}, %arg1_1: tensor<[33] x bf16, strides [1]> {irc.kind = "input", irc.name = "arg1", irc.offset = #sym<0>}) -> (tensor<[16, 33] x bf16, strides [33, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[33, 1]>}, tensor<[16, 33] x bf16, strides [33, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[33, 1]>}, tensor<[16] x bf16, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}, tensor<[33] x f32, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}) attributes {level = "aten"} {
    %mul = aten.mul.Tensor %arg0_1, %arg1_1 {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[16, 33] x bf16, strides [33, 1]>, tensor<[33] x bf16, strides [1]>) -> tensor<[16, 33] x bf16, strides [33, 1]>
    %gelu = aten.gelu.default %mul {arguments = {self = #aten.operand<0>}} : (tensor<[16, 33] x bf16, strides [33, 1]>) -> tensor<[16, 33] x bf16, strides [33, 1]>
    %sum_1 = aten.sum.dim_IntList %mul {arguments = {dim = [1 : i64], self = #aten.operand<0>}} : (tensor<[16, 33] x bf16, strides [33, 1]>) -> tensor<[16] x bf16, strides [1]>
    %_to_copy = aten._to_copy.default %mul {arguments = {dtype = #aten.dtype<"float32">, self = #aten.operand<0>}} : (tensor<[16, 33] x bf16, strides [33, 1]>) -> tensor<[16, 33] x f32, strides [33, 1]>
    %pow_1 = aten.pow.Tensor_Scalar %_to_copy {arguments = {exponent = 2 : i64, self = #aten.operand<0>}} : (tensor<[16, 33] x f32, strides [33, 1]>) -> tensor<[16, 33] x f32, strides [33, 1]>
    %mean = aten.mean.dim %pow_1 {arguments = {dim = [0 : i64], self = #aten.operand<0>}} : (tensor<[16, 33] x f32, strides [33, 1]>) -> tensor<[33] x f32, strides [1]>
    return %mul, %gelu, %sum_1, %mean : tensor<[16, 33] x bf16, strides [33, 1]>, tensor<[16, 33] x bf16, strides [33, 1]>, tensor<[16] x bf16, strides [1]>, tensor<[33] x f32, strides [1]>
  }
}

