// scans of programs.py, functionalized.

builtin.module {
  func.func @main(%arg0_1: tensor<[9, 40] x f32, strides [40, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>}) -> (tensor<[9, 40] x f32, strides [40, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[40, 1]>}, tensor<[9, 40] x f32, strides [40, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[40, 1]>}, tensor<[9, 40] x f32, strides [40, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[40, 1]>}, tensor<[9, 40] x f32, strides [40, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[40, 1]>}, tensor<[9, 40] x f32, strides [40, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[40, 1]>}) attributes {level = "aten"} {
    %cumsum = aten.cumsum.default %arg0_1 {arguments = {dim = 1 : i64, self = #aten.operand<0>}} : (tensor<[9, 40] x f32, strides [40, 1]>) -> tensor<[9, 40] x f32, strides [40, 1]>
    %add = aten.add.Tensor %arg0_1 {arguments = {other = 1 : i64, self = #aten.operand<0>}} : (tensor<[9, 40] x f32, strides [40, 1]>) -> tensor<[9, 40] x f32, strides [40, 1]>
    %cumsum_1 = aten.cumsum.default %add {arguments = {dim = 0 : i64, self = #aten.operand<0>}} : (tensor<[9, 40] x f32, strides [40, 1]>) -> tensor<[9, 40] x f32, strides [40, 1]>
    %cummax, %cummax_0 = aten.cummax.default %arg0_1 {arguments = {dim = 1 : i64, self = #aten.operand<0>}} : (tensor<[9, 40] x f32, strides [40, 1]>) -> (tensor<[9, 40] x f32, strides [40, 1]>, tensor<[9, 40] x i64, strides [40, 1]>)
    %logcumsumexp = aten.logcumsumexp.default %arg0_1 {arguments = {dim = 1 : i64, self = #aten.operand<0>}} : (tensor<[9, 40] x f32, strides [40, 1]>) -> tensor<[9, 40] x f32, strides [40, 1]>
    %cumprod = aten.cumprod.default %arg0_1 {arguments = {dim = 1 : i64, self = #aten.operand<0>}} : (tensor<[9, 40] x f32, strides [40, 1]>) -> tensor<[9, 40] x f32, strides [40, 1]>
    %mul = aten.mul.Tensor %cumprod {arguments = {other = 2 : i64, self = #aten.operand<0>}} : (tensor<[9, 40] x f32, strides [40, 1]>) -> tensor<[9, 40] x f32, strides [40, 1]>
    return %cumsum, %cumsum_1, %cummax, %logcumsumexp, %mul : tensor<[9, 40] x f32, strides [40, 1]>, tensor<[9, 40] x f32, strides [40, 1]>, tensor<[9, 40] x f32, strides [40, 1]>, tensor<[9, 40] x f32, strides [40, 1]>, tensor<[9, 40] x f32, strides [40, 1]>
  }
}

