// layer_norm of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[20, 100] x f32, strides [100, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}, %arg1_1: tensor<[100] x f32, strides [1]> {irc.kind = "input", irc.name = "arg1", irc.offset = #sym<0>}, %arg2_1: tensor<[100] x f32, strides [1]> {irc.kind = "input", irc.name = "arg2", irc.offset = #sym<0>}) -> (tensor<[20, 100] x f32, strides [100, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[100, 1]>}, tensor<[20, 100] x f32, strides [100, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[100, 1]>}) attributes {level = "aten"} {
    %native_layer_norm, %native_layer_norm_0, %native_layer_norm_1 = aten.native_layer_norm.default %arg0_1, %arg1_1, %arg2_1 {arguments = {bias = #aten.operand<2>, eps = 1.0e-05 : f64, input = #aten.operand<0>, normalized_shape = [100 : i64], weight = #aten.operand<1>}} : (tensor<[20, 100] x f32, strides [100, 1]>, tensor<[100] x f32, strides [1]>, tensor<[100] x f32, strides [1]>) -> (tensor<[20, 100] x f32, strides [100, 1]>, tensor<[20, 1] x f32, strides [1, 1]>, tensor<[20, 1] x f32, strides [1, 1]>)
    %native_layer_norm_1_0, %native_layer_norm_1_1, %native_layer_norm_1_2 = aten.native_layer_norm.default %arg0_1 {arguments = {bias = #aten.none, eps = 1.0e-05 : f64, input = #aten.operand<0>, normalized_shape = [100 : i64], weight = #aten.none}} : (tensor<[20, 100] x f32, strides [100, 1]>) -> (tensor<[20, 100] x f32, strides [100, 1]>, tensor<[20, 1] x f32, strides [1, 1]>, tensor<[20, 1] x f32, strides [1, 1]>)
    %relu = aten.relu.default %native_layer_norm_1_0 {arguments = {self = #aten.operand<0>}} : (tensor<[20, 100] x f32, strides [100, 1]>) -> tensor<[20, 100] x f32, strides [100, 1]>
    return %native_layer_norm, %relu : tensor<[20, 100] x f32, strides [100, 1]>, tensor<[20, 100] x f32, strides [100, 1]>
  }
}

