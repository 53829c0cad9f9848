// pools of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[1, 3, 12, 12] x f32, strides [432, 144, 12, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}) -> (tensor<[1, 3, 6, 6] x f32, strides [108, 36, 6, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[108, 36, 6, 1]>}, tensor<[1, 3, 6, 6] x f32, strides [108, 36, 6, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[108, 36, 6, 1]>}, tensor<[1, 3, 5, 4] x f32, strides [60, 20, 4, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[60, 20, 4, 1]>}) attributes {level = "aten"} {
    %max_pool2d_with_indices, %max_pool2d_with_indices_0 = aten.max_pool2d_with_indices.default %arg0_1 {arguments = {kernel_size = [3 : i64, 3 : i64], padding = [1 : i64, 1 : i64], self = #aten.operand<0>, stride = [2 : i64, 2 : i64]}} : (tensor<[1, 3, 12, 12] x f32, strides [432, 144, 12, 1]>) -> (tensor<[1, 3, 6, 6] x f32, strides [108, 36, 6, 1]>, tensor<[1, 3, 6, 6] x i64, strides [108, 36, 6, 1]>)
    %avg_pool2d = aten.avg_pool2d.default %arg0_1 {arguments = {kernel_size = [2 : i64, 2 : i64], self = #aten.operand<0>}} : (tensor<[1, 3, 12, 12] x f32, strides [432, 144, 12, 1]>) -> tensor<[1, 3, 6, 6] x f32, strides [108, 36, 6, 1]>
    %_adaptive_avg_pool2d = aten._adaptive_avg_pool2d.default %arg0_1 {arguments = {output_size = [5 : i64, 4 : i64], self = #aten.operand<0>}} : (tensor<[1, 3, 12, 12] x f32, strides [432, 144, 12, 1]>) -> tensor<[1, 3, 5, 4] x f32, strides [60, 20, 4, 1]>
    return %max_pool2d_with_indices, %avg_pool2d, %_adaptive_avg_pool2d : tensor<[1, 3, 6, 6] x f32, strides [108, 36, 6, 1]>, tensor<[1, 3, 6, 6] x f32, strides [108, 36, 6, 1]>, tensor<[1, 3, 5, 4] x f32, strides [60, 20, 4, 1]>
  }
}

