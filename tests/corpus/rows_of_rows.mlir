// rows_of_rows of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[6, 50, 20] x f32, strides [1000, 20, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}, %arg1_1: tensor<[6, 50, 20] x f32, strides [1000, 20, 1]> {irc.kind = "input", irc.name = "arg1", irc.offset = #sym<0>}) -> (tensor<[6, 50, 20] x f32, strides [1000, 20, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1000, 20, 1]>}, tensor<[6, 50] x f32, strides [50, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[50, 1]>}, tensor<[6] x f32, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}) attributes {level = "aten"} {
    %add = aten.add.Tensor %arg0_1, %arg1_1 {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[6, 50, 20] x f32, strides [1000, 20, 1]>, tensor<[6, 50, 20] x f32, strides [1000, 20, 1]>) -> tensor<[6, 50, 20] x f32, strides [1000, 20, 1]>
    %_softmax = aten._softmax.default %add {arguments = {dim = 2 : i64, half_to_float = false, self = #aten.operand<0>}} : (tensor<[6, 50, 20] x f32, strides [1000, 20, 1]>) -> tensor<[6, 50, 20] x f32, strides [1000, 20, 1]>
    %native_layer_norm, %native_layer_norm_0, %native_layer_norm_1 = aten.native_layer_norm.default %_softmax {arguments = {bias = #aten.none, eps = 1.0e-05 : f64, input = #aten.operand<0>, normalized_shape = [50 : i64, 20 : i64], weight = #aten.none}} : (tensor<[6, 50, 20] x f32, strides [1000, 20, 1]>) -> (tensor<[6, 50, 20] x f32, strides [1000, 20, 1]>, tensor<[6, 1, 1] x f32, strides [1, 1, 1]>, tensor<[6, 1, 1] x f32, strides [1, 1, 1]>)
    %mean = aten.mean.dim %_softmax {arguments = {dim = [2 : i64], self = #aten.operand<0>}} : (tensor<[6, 50, 20] x f32, strides [1000, 20, 1]>) -> tensor<[6, 50] x f32, strides [50, 1]>
    %mul = aten.mul.Tensor %_softmax, %arg1_1 {arguments = {other = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[6, 50, 20] x f32, strides [1000, 20, 1]>, tensor<[6, 50, 20] x f32, strides [1000, 20, 1]>) -> tensor<[6, 50, 20] x f32, strides [1000, 20, 1]>
    %sum_1 = aten.sum.dim_IntList %mul {arguments = {dim = [1 : i64, 2 : i64], self = #aten.operand<0>}} : (tensor<[6, 50, 20] x f32, strides [1000, 20, 1]>) -> tensor<[6] x f32, strides [1]>
    return %native_layer_norm, %mean, %sum_1 : tensor<[6, 50, 20] x f32, strides [1000, 20, 1]>, tensor<[6, 50] x f32, strides [50, 1]>, tensor<[6] x f32, strides [1]>
  }
}

