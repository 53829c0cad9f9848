// embedding_and_its_gradient of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[30, 16] x f32, strides [16, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}, %arg1_1: tensor<[5] x i64, strides [1]> {irc.kind = "input", irc.name = "arg1", irc.offset = #sym<0>}, %arg2_1: tensor<[5, 16] x f32, strides [16, 1]> {irc.kind = "input", irc.name = "arg2", irc.offset = #sym<0>}) -> (tensor<[5, 16] x f32, strides [16, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[16, 1]>}, tensor<[30, 16] x f32, strides [16, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[16, 1]>}) attributes {level = "aten"} {
    %embedding = aten.embedding.default %arg0_1, %arg1_1 {arguments = {indices = #aten.operand<1>, weight = #aten.operand<0>}} : (tensor<[30, 16] x f32, strides [16, 1]>, tensor<[5] x i64, strides [1]>) -> tensor<[5, 16] x f32, strides [16, 1]>
    %add = aten.add.Tensor %embedding {arguments = {other = 1 : i64, self = #aten.operand<0>}} : (tensor<[5, 16] x f32, strides [16, 1]>) -> tensor<[5, 16] x f32, strides [16, 1]>
    %embedding_dense_backward = aten.embedding_dense_backward.default %arg2_1, %arg1_1 {arguments = {grad_output = #aten.operand<0>, indices = #aten.operand<1>, num_weights = 30 : i64, padding_idx = -1 : i64, scale_grad_by_freq = false}} : (tensor<[5, 16] x f32, strides [16, 1]>, tensor<[5] x i64, strides [1]>) -> tensor<[30, 16] x f32, strides [16, 1]>
    %add_1 = aten.add.Tensor %embedding_dense_backward, %arg0_1 {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[30, 16] x f32, strides [16, 1]>, tensor<[30, 16] x f32, strides [16, 1]>) -> tensor<[30, 16] x f32, strides [16, 1]>
    return %add, %add_1 : tensor<[5, 16] x f32, strides [16, 1]>, tensor<[30, 16] x f32, strides [16, 1]>
  }
}

