// upsampled of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[1, 3, 6, 6] x f32, strides [108, 36, 6, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}) -> (tensor<[1, 3, 12, 12] x f32, strides [432, 144, 12, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[432, 144, 12, 1]>}, tensor<[1, 3, 9, 9] x f32, strides [243, 81, 9, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[243, 81, 9, 1]>}) attributes {level = "aten"} {
    %arange = aten.arange.default {arguments = {device = #aten.device<"cpu">, dtype = #aten.dtype<"float32">, end = 12 : i64, pin_memory = false}} : tensor<[12] x f32, strides [1]>
    %add = aten.add.Tensor %arange {arguments = {other = 0.0 : f64, self = #aten.operand<0>}} : (tensor<[12] x f32, strides [1]>) -> tensor<[12] x f32, strides [1]>
    %mul = aten.mul.Tensor %add {arguments = {other = 0.5 : f64, self = #aten.operand<0>}} : (tensor<[12] x f32, strides [1]>) -> tensor<[12] x f32, strides [1]>
    %_to_copy = aten._to_copy.default %mul {arguments = {dtype = #aten.dtype<"int64">, self = #aten.operand<0>}} : (tensor<[12] x f32, strides [1]>) -> tensor<[12] x i64, strides [1]>
    %unsqueeze = aten.unsqueeze.default %_to_copy {arguments = {dim = -1 : i64, self = #aten.operand<0>}} : (tensor<[12] x i64, strides [1]>) -> tensor<[12, 1] x i64, strides [1, 1]>
    %arange_1 = aten.arange.default {arguments = {device = #aten.device<"cpu">, dtype = #aten.dtype<"float32">, end = 12 : i64, pin_memory = false}} : tensor<[12] x f32, strides [1]>
    %add_1 = aten.add.Tensor %arange_1 {arguments = {other = 0.0 : f64, self = #aten.operand<0>}} : (tensor<[12] x f32, strides [1]>) -> tensor<[12] x f32, strides [1]>
    %mul_1 = aten.mul.Tensor %add_1 {arguments = {other = 0.5 : f64, self = #aten.operand<0>}} : (tensor<[12] x f32, strides [1]>) -> tensor<[12] x f32, strides [1]>
    %_to_copy_1 = aten._to_copy.default %mul_1 {arguments = {dtype = #aten.dtype<"int64">, self = #aten.operand<0>}} : (tensor<[12] x f32, strides [1]>) -> tensor<[12] x i64, strides [1]>
    %index = aten.index.Tensor %arg0_1, %unsqueeze, %_to_copy_1 {arguments = {indices = [#aten.none, #aten.none, #aten.operand<1>, #aten.operand<2>], self = #aten.operand<0>}} : (tensor<[1, 3, 6, 6] x f32, strides [108, 36, 6, 1]>, tensor<[12, 1] x i64, strides [1, 1]>, tensor<[12] x i64, strides [1]>) -> tensor<[1, 3, 12, 12] x f32, strides [432, 144, 12, 1]>
    %arange_0 = aten.arange.default {arguments = {device = #aten.device<"cpu">, dtype = #aten.dtype<"float32">, end = 9 : i64, pin_memory = false}} : tensor<[9] x f32, strides [1]>
    %add_0 = aten.add.Tensor %arange_0 {arguments = {other = 0.0 : f64, self = #aten.operand<0>}} : (tensor<[9] x f32, strides [1]>) -> tensor<[9] x f32, strides [1]>
    %mul_0 = aten.mul.Tensor %add_0 {arguments = {other = 0.6666666666666666 : f64, self = #aten.operand<0>}} : (tensor<[9] x f32, strides [1]>) -> tensor<[9] x f32, strides [1]>
    %_to_copy_0 = aten._to_copy.default %mul_0 {arguments = {dtype = #aten.dtype<"int64">, self = #aten.operand<0>}} : (tensor<[9] x f32, strides [1]>) -> tensor<[9] x i64, strides [1]>
    %unsqueeze_0 = aten.unsqueeze.default %_to_copy_0 {arguments = {dim = -1 : i64, self = #aten.operand<0>}} : (tensor<[9] x i64, strides [1]>) -> tensor<[9, 1] x i64, strides [1, 1]>
    %arange_1_0 = aten.arange.default {arguments = {device = #aten.device<"cpu">, dtype = #aten.dtype<"float32">, end = 9 : i64, pin_memory = false}} : tensor<[9] x f32, strides [1]>
    %add_1_0 = aten.add.Tensor %arange_1_0 {arguments = {other = 0.0 : f64, self = #aten.operand<0>}} : (tensor<[9] x f32, strides [1]>) -> tensor<[9] x f32, strides [1]>
    %mul_1_0 = aten.mul.Tensor %add_1_0 {arguments = {other = 0.6666666666666666 : f64, self = #aten.operand<0>}} : (tensor<[9] x f32, strides [1]>) -> tensor<[9] x f32, strides [1]>
    %_to_copy_1_0 = aten._to_copy.default %mul_1_0 {arguments = {dtype = #aten.dtype<"int64">, self = #aten.operand<0>}} : (tensor<[9] x f32, strides [1]>) -> tensor<[9] x i64, strides [1]>
    %index_0 = aten.index.Tensor %arg0_1, %unsqueeze_0, %_to_copy_1_0 {arguments = {indices = [#aten.none, #aten.none, #aten.operand<1>, #aten.operand<2>], self = #aten.operand<0>}} : (tensor<[1, 3, 6, 6] x f32, strides [108, 36, 6, 1]>, tensor<[9, 1] x i64, strides [1, 1]>, tensor<[9] x i64, strides [1]>) -> tensor<[1, 3, 9, 9] x f32, strides [243, 81, 9, 1]>
    return %index, %index_0 : tensor<[1, 3, 12, 12] x f32, strides [432, 144, 12, 1]>, tensor<[1, 3, 9, 9] x f32, strides [243, 81, 9, 1]>
  }
}

