// rounded_sums_and_scans of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[16, 33] x bf16, strides [33, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}) -> (tensor<[16] x f32, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}, tensor<[16, 33] x f32, strides [33, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[33, 1]>}, tensor<[16, 33] x bf16, strides [33, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[33, 1]>}, tensor<[16, 33] x bf16, strides [33, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[33, 1]>}) attributes {level = "aten"} {
    %sum_1 = aten.sum.dim_IntList %arg0_1 {arguments = {dim = [1 : i64], self = #aten.operand<0>}} : (tensor<[16, 33] x bf16, strides [33, 1]>) -> tensor<[16] x bf16, strides [1]>
    %_to_copy = aten._to_copy.default %sum_1 {arguments = {dtype = #aten.dtype<"float32">, self = #aten.operand<0>}} : (tensor<[16] x bf16, strides [1]>) -> tensor<[16] x f32, strides [1]>
    %mul = aten.mul.Tensor %_to_copy {arguments = {other = 2 : i64, self = #aten.operand<0>}} : (tensor<[16] x f32, strides [1]>) -> tensor<[16] x f32, strides [1]>
    %cumsum = aten.cumsum.default %arg0_1 {arguments = {dim = 1 : i64, self = #aten.operand<0>}} : (tensor<[16, 33] x bf16, strides [33, 1]>) -> tensor<[16, 33] x bf16, strides [33, 1]>
    %_to_copy_1 = aten._to_copy.default %cumsum {arguments = {dtype = #aten.dtype<"float32">, self = #aten.operand<0>}} : (tensor<[16, 33] x bf16, strides [33, 1]>) -> tensor<[16, 33] x f32, strides [33, 1]>
    %_softmax = aten._softmax.default %arg0_1 {arguments = {dim = 1 : i64, half_to_float = false, self = #aten.operand<0>}} : (tensor<[16, 33] x bf16, strides [33, 1]>) -> tensor<[16, 33] x bf16, strides [33, 1]>
    %_to_copy_2 = aten._to_copy.default %arg0_1 {arguments = {dtype = #aten.dtype<"float32">, self = #aten.operand<0>}} : (tensor<[16, 33] x bf16, strides [33, 1]>) -> tensor<[16, 33] x f32, strides [33, 1]>
    %_to_copy_3 = aten._to_copy.default %_to_copy_2 {arguments = {dtype = #aten.dtype<"bfloat16">, self = #aten.operand<0>}} : (tensor<[16, 33] x f32, strides [33, 1]>) -> tensor<[16, 33] x bf16, strides [33, 1]>
    return %mul, %_to_copy_1, %_softmax, %_to_copy_3 : tensor<[16] x f32, strides [1]>, tensor<[16, 33] x f32, strides [33, 1]>, tensor<[16, 33] x bf16, strides [33, 1]>, tensor<[16, 33] x bf16, strides [33, 1]>
  }
}

