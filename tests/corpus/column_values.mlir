// column_values of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[64] x f32, strides [1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}, %arg1_1: tensor<[64, 128] x f32, strides [128, 1]> {irc.kind = "input", irc.name = "arg1", irc.offset = #sym<0>}) -> (tensor<[64, 128] x f32, strides [128, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[128, 1]>}, tensor<[128, 64] x f32, strides [1, 128]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1, 128]>}) attributes {level = "aten"} {
    %add = aten.add.Tensor %arg0_1 {arguments = {other = 1.0e-05 : f64, self = #aten.operand<0>}} : (tensor<[64] x f32, strides [1]>) -> tensor<[64] x f32, strides [1]>
    %rsqrt = aten.rsqrt.default %add {arguments = {self = #aten.operand<0>}} : (tensor<[64] x f32, strides [1]>) -> tensor<[64] x f32, strides [1]>
    %unsqueeze = aten.unsqueeze.default %rsqrt {arguments = {dim = 1 : i64, self = #aten.operand<0>}} : (tensor<[64] x f32, strides [1]>) -> tensor<[64, 1] x f32, strides [1, 1]>
    %mul = aten.mul.Tensor %arg1_1, %unsqueeze {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[64, 128] x f32, strides [128, 1]>, tensor<[64, 1] x f32, strides [1, 1]>) -> tensor<[64, 128] x f32, strides [128, 1]>
    %permute = aten.permute.default %arg1_1 {arguments = {dims = [1 : i64, 0 : i64], self = #aten.operand<0>}} : (tensor<[64, 128] x f32, strides [128, 1]>) -> tensor<[128, 64] x f32, strides [1, 128]>
    %add_1 = aten.add.Tensor %arg0_1 {arguments = {other = 1.0e-05 : f64, self = #aten.operand<0>}} : (tensor<[64] x f32, strides [1]>) -> tensor<[64] x f32, strides [1]>
    %rsqrt_1 = aten.rsqrt.default %add_1 {arguments = {self = #aten.operand<0>}} : (tensor<[64] x f32, strides [1]>) -> tensor<[64] x f32, strides [1]>
    %mul_1 = aten.mul.Tensor %permute, %rsqrt_1 {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[128, 64] x f32, strides [1, 128]>, tensor<[64] x f32, strides [1]>) -> tensor<[128, 64] x f32, strides [1, 128]>
    return %mul, %mul_1 : tensor<[64, 128] x f32, strides [128, 1]>, tensor<[128, 64] x f32, strides [1, 128]>
  }
}

