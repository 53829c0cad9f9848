// The pass fuse-attention: both products, the scale, the mask and the softmax become one operator. The
// keys that a view repeats for two heads are read as they are; rows without a key are NaN as before.
// RUN: --fuse-attention=force=true --dce --target=avx2
// VALUES: fuse-attention{force=true}

func.func @main(%q: tensor<[1, 4, 3, 8] x f32, strides [96, 24, 8, 1]>, %k: tensor<[1, 2, 5, 8] x f32, strides [80, 40, 8, 1]>, %v: tensor<[1, 2, 5, 8] x f32, strides [80, 40, 8, 1]>, %m: tensor<[1, 1, 3, 5] x i1, strides [15, 15, 5, 1]>) -> (tensor<[1, 4, 3, 8] x f32, strides [96, 24, 8, 1]>) attributes {level = "aten"} {
  %unsqueeze = aten.unsqueeze.default %k {arguments = {dim = 2 : i64, self = #aten.operand<0>}} : (tensor<[1, 2, 5, 8] x f32, strides [80, 40, 8, 1]>) -> tensor<[1, 2, 1, 5, 8] x f32, strides [80, 40, 40, 8, 1]>
  %expand = aten.expand.default %unsqueeze {arguments = {self = #aten.operand<0>, size = [1 : i64, 2 : i64, 2 : i64, 5 : i64, 8 : i64]}} : (tensor<[1, 2, 1, 5, 8] x f32, strides [80, 40, 40, 8, 1]>) -> tensor<[1, 2, 2, 5, 8] x f32, strides [80, 40, 0, 8, 1]>
  %clone = aten.clone.default %expand {arguments = {memory_format = #aten.memory_format<"contiguous_format">, self = #aten.operand<0>}} : (tensor<[1, 2, 2, 5, 8] x f32, strides [80, 40, 0, 8, 1]>) -> tensor<[1, 2, 2, 5, 8] x f32, strides [160, 80, 40, 8, 1]>
  %view = aten.view.default %clone {arguments = {self = #aten.operand<0>, size = [1 : i64, 4 : i64, 5 : i64, 8 : i64]}} : (tensor<[1, 2, 2, 5, 8] x f32, strides [160, 80, 40, 8, 1]>) -> tensor<[1, 4, 5, 8] x f32, strides [160, 40, 8, 1]>
  %unsqueeze_1 = aten.unsqueeze.default %v {arguments = {dim = 2 : i64, self = #aten.operand<0>}} : (tensor<[1, 2, 5, 8] x f32, strides [80, 40, 8, 1]>) -> tensor<[1, 2, 1, 5, 8] x f32, strides [80, 40, 40, 8, 1]>
  %expand_1 = aten.expand.default %unsqueeze_1 {arguments = {self = #aten.operand<0>, size = [1 : i64, 2 : i64, 2 : i64, 5 : i64, 8 : i64]}} : (tensor<[1, 2, 1, 5, 8] x f32, strides [80, 40, 40, 8, 1]>) -> tensor<[1, 2, 2, 5, 8] x f32, strides [80, 40, 0, 8, 1]>
  %clone_1 = aten.clone.default %expand_1 {arguments = {memory_format = #aten.memory_format<"contiguous_format">, self = #aten.operand<0>}} : (tensor<[1, 2, 2, 5, 8] x f32, strides [80, 40, 0, 8, 1]>) -> tensor<[1, 2, 2, 5, 8] x f32, strides [160, 80, 40, 8, 1]>
  %view_0 = aten.view.default %clone_1 {arguments = {self = #aten.operand<0>, size = [1 : i64, 4 : i64, 5 : i64, 8 : i64]}} : (tensor<[1, 2, 2, 5, 8] x f32, strides [160, 80, 40, 8, 1]>) -> tensor<[1, 4, 5, 8] x f32, strides [160, 40, 8, 1]>
  %permute = aten.permute.default %view {arguments = {dims = [0 : i64, 1 : i64, 3 : i64, 2 : i64], self = #aten.operand<0>}} : (tensor<[1, 4, 5, 8] x f32, strides [160, 40, 8, 1]>) -> tensor<[1, 4, 8, 5] x f32, strides [160, 40, 1, 8]>
  %view_1 = aten.view.default %q {arguments = {self = #aten.operand<0>, size = [4 : i64, 3 : i64, 8 : i64]}} : (tensor<[1, 4, 3, 8] x f32, strides [96, 24, 8, 1]>) -> tensor<[4, 3, 8] x f32, strides [24, 8, 1]>
  %view_1_0 = aten.view.default %permute {arguments = {self = #aten.operand<0>, size = [4 : i64, 8 : i64, 5 : i64]}} : (tensor<[1, 4, 8, 5] x f32, strides [160, 40, 1, 8]>) -> tensor<[4, 8, 5] x f32, strides [40, 1, 8]>
  %bmm = aten.bmm.default %view_1, %view_1_0 {arguments = {mat2 = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[4, 3, 8] x f32, strides [24, 8, 1]>, tensor<[4, 8, 5] x f32, strides [40, 1, 8]>) -> tensor<[4, 3, 5] x f32, strides [15, 5, 1]>
  %view_2 = aten.view.default %bmm {arguments = {self = #aten.operand<0>, size = [1 : i64, 4 : i64, 3 : i64, 5 : i64]}} : (tensor<[4, 3, 5] x f32, strides [15, 5, 1]>) -> tensor<[1, 4, 3, 5] x f32, strides [60, 15, 5, 1]>
  %mul = aten.mul.Tensor %view_2 {arguments = {other = 0.5 : f64, self = #aten.operand<0>}} : (tensor<[1, 4, 3, 5] x f32, strides [60, 15, 5, 1]>) -> tensor<[1, 4, 3, 5] x f32, strides [60, 15, 5, 1]>
  %masked_fill = aten.masked_fill.Scalar %mul, %m {arguments = {mask = #aten.operand<1>, self = #aten.operand<0>, value = 0xFFF0000000000000 : f64}} : (tensor<[1, 4, 3, 5] x f32, strides [60, 15, 5, 1]>, tensor<[1, 1, 3, 5] x i1, strides [15, 15, 5, 1]>) -> tensor<[1, 4, 3, 5] x f32, strides [60, 15, 5, 1]>
  %_softmax = aten._softmax.default %masked_fill {arguments = {dim = -1 : i64, half_to_float = false, self = #aten.operand<0>}} : (tensor<[1, 4, 3, 5] x f32, strides [60, 15, 5, 1]>) -> tensor<[1, 4, 3, 5] x f32, strides [60, 15, 5, 1]>
  %view_2_0 = aten.view.default %_softmax {arguments = {self = #aten.operand<0>, size = [4 : i64, 3 : i64, 5 : i64]}} : (tensor<[1, 4, 3, 5] x f32, strides [60, 15, 5, 1]>) -> tensor<[4, 3, 5] x f32, strides [15, 5, 1]>
  %view_3 = aten.view.default %view_0 {arguments = {self = #aten.operand<0>, size = [4 : i64, 5 : i64, 8 : i64]}} : (tensor<[1, 4, 5, 8] x f32, strides [160, 40, 8, 1]>) -> tensor<[4, 5, 8] x f32, strides [40, 8, 1]>
  %bmm_1 = aten.bmm.default %view_2_0, %view_3 {arguments = {mat2 = #aten.operand<1>, self = #aten.operand<0>}} : (tensor<[4, 3, 5] x f32, strides [15, 5, 1]>, tensor<[4, 5, 8] x f32, strides [40, 8, 1]>) -> tensor<[4, 3, 8] x f32, strides [24, 8, 1]>
  %view_4 = aten.view.default %bmm_1 {arguments = {self = #aten.operand<0>, size = [1 : i64, 4 : i64, 3 : i64, 8 : i64]}} : (tensor<[4, 3, 8] x f32, strides [24, 8, 1]>) -> tensor<[1, 4, 3, 8] x f32, strides [96, 24, 8, 1]>
  return %view_4 : tensor<[1, 4, 3, 8] x f32, strides [96, 24, 8, 1]>
}

// CHECK: builtin.module attributes {irc.target = #irc.target<avx2>} {
// CHECK-NEXT:   func.func @main(%q: tensor<[1, 4, 3, 8] x f32, strides [96, 24, 8, 1]>, %k: tensor<[1, 2, 5, 8] x f32, strides [80, 40, 8, 1]>, %v: tensor<[1, 2, 5, 8] x f32, strides [80, 40, 8, 1]>, %m: tensor<[1, 1, 3, 5] x i1, strides [15, 15, 5, 1]>) -> tensor<[1, 4, 3, 8] x f32, strides [96, 24, 8, 1]> attributes {level = "aten"} {
// CHECK-NEXT:     %0 = aten.full.default {arguments = {device = #aten.device<"cpu">, dtype = #aten.dtype<"float32">, fill_value = 0xFFF0000000000000 : f64, size = []}} : tensor<[] x f32, strides []>
// CHECK-NEXT:     %1 = aten.full.default {arguments = {device = #aten.device<"cpu">, dtype = #aten.dtype<"float32">, fill_value = 0.0 : f64, size = []}} : tensor<[] x f32, strides []>
// CHECK-NEXT:     %2 = aten.where.self %m, %0, %1 {arguments = {condition = #aten.operand<0>, other = #aten.operand<2>, self = #aten.operand<1>}} : (tensor<[1, 1, 3, 5] x i1, strides [15, 15, 5, 1]>, tensor<[] x f32, strides []>, tensor<[] x f32, strides []>) -> tensor<[1, 1, 3, 5] x f32, strides [15, 15, 5, 1]>
// CHECK-NEXT:     %3 = aten.amax.default %2 {arguments = {dim = [-1 : i64], keepdim = true, self = #aten.operand<0>}} : (tensor<[1, 1, 3, 5] x f32, strides [15, 15, 5, 1]>) -> tensor<[1, 1, 3, 1] x f32, strides [3, 3, 1, 1]>
// CHECK-NEXT:     %4 = aten.abs.default %3 {arguments = {self = #aten.operand<0>}} : (tensor<[1, 1, 3, 1] x f32, strides [3, 3, 1, 1]>) -> tensor<[1, 1, 3, 1] x f32, strides [3, 3, 1, 1]>
// CHECK-NEXT:     %5 = aten.lt.Scalar %4 {arguments = {other = 0x7FF0000000000000 : f64, self = #aten.operand<0>}} : (tensor<[1, 1, 3, 1] x f32, strides [3, 3, 1, 1]>) -> tensor<[1, 1, 3, 1] x i1, strides [3, 3, 1, 1]>
// CHECK-NEXT:     %6, %7 = aten._scaled_dot_product_flash_attention_for_cpu.default %q, %k, %v, %2 {arguments = {attn_mask = #aten.operand<3>, key = #aten.operand<1>, query = #aten.operand<0>, scale = 0.5 : f64, value = #aten.operand<2>}} : (tensor<[1, 4, 3, 8] x f32, strides [96, 24, 8, 1]>, tensor<[1, 2, 5, 8] x f32, strides [80, 40, 8, 1]>, tensor<[1, 2, 5, 8] x f32, strides [80, 40, 8, 1]>, tensor<[1, 1, 3, 5] x f32, strides [15, 15, 5, 1]>) -> (tensor<[1, 4, 3, 8] x f32, strides [96, 24, 8, 1]>, tensor<[1, 4, 3] x f32, strides [12, 1, 4]>)
// CHECK-NEXT:     %8 = aten.full.default {arguments = {device = #aten.device<"cpu">, dtype = #aten.dtype<"float32">, fill_value = 0x7FF8000000000000 : f64, size = []}} : tensor<[] x f32, strides []>
// CHECK-NEXT:     %9 = aten.where.self %5, %6, %8 {arguments = {condition = #aten.operand<0>, other = #aten.operand<2>, self = #aten.operand<1>}} : (tensor<[1, 1, 3, 1] x i1, strides [3, 3, 1, 1]>, tensor<[1, 4, 3, 8] x f32, strides [96, 24, 8, 1]>, tensor<[] x f32, strides []>) -> tensor<[1, 4, 3, 8] x f32, strides [96, 24, 8, 1]>
// CHECK-NEXT:     %bmm_1 = aten.reshape.default %9 {arguments = {self = #aten.operand<0>, shape = [4 : i64, 3 : i64, 8 : i64]}} : (tensor<[1, 4, 3, 8] x f32, strides [96, 24, 8, 1]>) -> tensor<[4, 3, 8] x f32, strides [24, 8, 1]>
// CHECK-NEXT:     %view_4 = aten.view.default %bmm_1 {arguments = {self = #aten.operand<0>, size = [1 : i64, 4 : i64, 3 : i64, 8 : i64]}} : (tensor<[4, 3, 8] x f32, strides [24, 8, 1]>) -> tensor<[1, 4, 3, 8] x f32, strides [96, 24, 8, 1]>
// CHECK-NEXT:     return %view_4 : tensor<[1, 4, 3, 8] x f32, strides [96, 24, 8, 1]>
// CHECK-NEXT:   }
// CHECK-NEXT: }
