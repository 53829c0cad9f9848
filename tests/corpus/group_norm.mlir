// group_norm of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[2, 6, 8, 8] x f32, strides [384, 64, 8, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}, %arg1_1: tensor<[6] x f32, strides [1]> {irc.kind = "input", irc.name = "arg1", irc.offset = #sym<0>}, %arg2_1: tensor<[6] x f32, strides [1]> {irc.kind = "input", irc.name = "arg2", irc.offset = #sym<0>}) -> (tensor<[2, 6, 8, 8] x f32, strides [384, 64, 8, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[384, 64, 8, 1]>}) attributes {level = "aten"} {
    %native_group_norm, %native_group_norm_0, %native_group_norm_1 = aten.native_group_norm.default %arg0_1, %arg1_1, %arg2_1 {arguments = {C = 6 : i64, HxW = 64 : i64, N = 2 : i64, bias = #aten.operand<2>, eps = 1.0e-05 : f64, group = 3 : i64, input = #aten.operand<0>, weight = #aten.operand<1>}} : (tensor<[2, 6, 8, 8] x f32, strides [384, 64, 8, 1]>, tensor<[6] x f32, strides [1]>, tensor<[6] x f32, strides [1]>) -> (tensor<[2, 6, 8, 8] x f32, strides [384, 64, 8, 1]>, tensor<[2, 3] x f32, strides [3, 1]>, tensor<[2, 3] x f32, strides [3, 1]>)
    return %native_group_norm : tensor<[2, 6, 8, 8] x f32, strides [384, 64, 8, 1]>
  }
}

