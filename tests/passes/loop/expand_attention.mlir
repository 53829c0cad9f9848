// The pass expand-attention: a call is a group of five computes at each head, or block of its rows.
// RUN: --expand-attention=force=true --target=avx2
// VALUES: expand-attention{force=true}

func.func @main(%q: tensor<[1, 2, 9, 8] x f32, strides [144, 8, 16, 1]>, %k: tensor<[1, 2, 11, 8] x f32, strides [176, 8, 16, 1]>, %m: tensor<[1, 1, 1, 11] x f32, strides [11, 11, 11, 1]>) -> tensor<[1, 2, 9, 8] x f32, strides [144, 8, 16, 1]> attributes {level = "loop"} {
  %y, %l = graph.call_aten %q, %k, %k, %m {callee = "aten._scaled_dot_product_flash_attention_for_cpu.default", arguments = {attn_mask = #aten.operand<3>, dropout_p = 0.0 : f64, is_causal = false, key = #aten.operand<1>, query = #aten.operand<0>, scale = 0.5 : f64, value = #aten.operand<2>}, eager_strides = [#sym.dims<[144, 8, 16, 1]>, #sym.dims<[18, 1, 2]>]} : (tensor<[1, 2, 9, 8] x f32, strides [144, 8, 16, 1]>, tensor<[1, 2, 11, 8] x f32, strides [176, 8, 16, 1]>, tensor<[1, 2, 11, 8] x f32, strides [176, 8, 16, 1]>, tensor<[1, 1, 1, 11] x f32, strides [11, 11, 11, 1]>) -> (tensor<[1, 2, 9, 8] x f32, strides [144, 8, 16, 1]>, tensor<[1, 2, 9] x f32, strides [18, 1, 2]>)
  return %y : tensor<[1, 2, 9, 8] x f32, strides [144, 8, 16, 1]>
}

// CHECK: builtin.module attributes {irc.target = #irc.target<avx2>} {
// CHECK-NEXT:   func.func @main(%q: tensor<[1, 2, 9, 8] x f32, strides [144, 8, 16, 1]>, %k: tensor<[1, 2, 11, 8] x f32, strides [176, 8, 16, 1]>, %m: tensor<[1, 1, 1, 11] x f32, strides [11, 11, 11, 1]>) -> tensor<[1, 2, 9, 8] x f32, strides [144, 8, 16, 1]> attributes {level = "loop"} {
// CHECK-NEXT:     %0 = graph.undefined : tensor<[1, 2, 9, 8] x f32, strides [144, 8, 16, 1]>
// CHECK-NEXT:     %y = loop.group (h: 2) schedule #loop.schedule<cpu, collapse = [], outer = ["h"], scratch = 0 : i64, vector_axis = ""> {
// CHECK-NEXT:       %1 = loop.compute par(h: 2, r: 9, n: 11) red(d: 8) -> reduce(sum, f32) schedule #loop.schedule<cpu, block_depth = 0 : i64, block_rows = 0 : i64, collapse = [], depth_order = ["d"], group = 1 : i64, in_turn = false, inner = "rows", lanes = 8 : i64, offset = 0 : i64, outer_rows = [], pack_ahead = 0 : i64, pack_left = false, pack_right = false, point_columns = 0 : i64, point_rows = 0 : i64, products = "depth", row_axis = "r", rows_ahead = 0 : i64, skew = 16 : i64, terms = 2 : i64, tile_columns = 4 : i64, tile_rows = 2 : i64, tile_vectors = 1 : i64, vector_axis = "n", woven = false> {
// CHECK-NEXT:         %2 = loop.read %q[0, h, r, d] : f32
// CHECK-NEXT:         %3 = loop.read %k[0, h, n, d] : f32
// CHECK-NEXT:         %4 = arith.mulf %2, %3 : f32
// CHECK-NEXT:         loop.yield %4
// CHECK-NEXT:       } : tensor<[2, 9, 11] x f32, strides [144, 16, 1]>
// CHECK-NEXT:       %5 = loop.compute par(h: 2, r: 9) red(n: 11) -> reduce(max, f32) schedule #loop.schedule<cpu, chunks = [], collapse = [], copies = 1 : i64, lanes = 8 : i64, order = ["r", "n"], partial = [], spans = 1 : i64, streams = false, tail = "mask", vector_axis = "n"> {
// CHECK-NEXT:         %6 = loop.read %1[h, r, n] : f32
// CHECK-NEXT:         %7 = loop.read %m[0, 0, 0, n] : f32
// CHECK-NEXT:         %8 = arith.constant 0.5 : f32
// CHECK-NEXT:         %9 = arith.mulf %6, %8 : f32
// CHECK-NEXT:         %10 = arith.addf %9, %7 : f32
// CHECK-NEXT:         loop.yield %10
// CHECK-NEXT:       } : tensor<[2, 9] x f32, strides [9, 1]>
// CHECK-NEXT:       %11, %12 = loop.compute par(h: 2, r: 9) red(n: 11) -> map, reduce(sum, f32) schedule #loop.schedule<cpu, chunks = [], collapse = [], copies = 1 : i64, lanes = 8 : i64, order = ["r", "n"], partial = [], spans = 1 : i64, streams = false, tail = "mask", vector_axis = "n"> {
// CHECK-NEXT:         %13 = loop.read %5[h, r] : f32
// CHECK-NEXT:         %14 = arith.constant 0xFF800000 : f32
// CHECK-NEXT:         %15 = arith.cmpf oeq, %13, %14 : f32
// CHECK-NEXT:         %16 = arith.constant 0.0 : f32
// CHECK-NEXT:         %17 = arith.select %15, %16, %13 : f32
// CHECK-NEXT:         %18 = loop.read %1[h, r, n] : f32
// CHECK-NEXT:         %19 = loop.read %m[0, 0, 0, n] : f32
// CHECK-NEXT:         %20 = arith.constant 0.5 : f32
// CHECK-NEXT:         %21 = arith.mulf %18, %20 : f32
// CHECK-NEXT:         %22 = arith.addf %21, %19 : f32
// CHECK-NEXT:         %23 = arith.subf %22, %17 : f32
// CHECK-NEXT:         %24 = math.exp %23 : f32
// CHECK-NEXT:         loop.yield %24, %24
// CHECK-NEXT:       } : tensor<[2, 9, 11] x f32, strides [288, 32, 1]>, tensor<[2, 9] x f32, strides [9, 1]>
// CHECK-NEXT:       %25 = loop.compute par(h: 2, r: 9, d: 8) red(n: 11) -> reduce(sum, f32) schedule #loop.schedule<cpu, block_depth = 0 : i64, block_rows = 0 : i64, collapse = [], depth_order = ["n"], group = 1 : i64, in_turn = false, inner = "columns", lanes = 8 : i64, offset = 0 : i64, outer_rows = [], pack_ahead = 0 : i64, pack_left = false, pack_right = false, point_columns = 0 : i64, point_rows = 0 : i64, products = "lanes", row_axis = "r", rows_ahead = 0 : i64, skew = 16 : i64, terms = 2 : i64, tile_rows = 9 : i64, tile_vectors = 1 : i64, vector_axis = "d", woven = false> {
// CHECK-NEXT:         %26 = loop.read %11[h, r, n] : f32
// CHECK-NEXT:         %27 = loop.read %k[0, h, n, d] : f32
// CHECK-NEXT:         %28 = arith.mulf %26, %27 : f32
// CHECK-NEXT:         loop.yield %28
// CHECK-NEXT:       } : tensor<[2, 9, 8] x f32, strides [72, 8, 1]>
// CHECK-NEXT:       %29 = loop.compute par(h: 2, r: 9, d: 8) inits(%0) -> scatter(set, [0, h, r, d]) schedule #loop.schedule<cpu, chunks = [], collapse = [], copies = 1 : i64, lanes = 8 : i64, order = ["r", "d"], partial = [], spans = 1 : i64, streams = false, tail = "mask", vector_axis = "d"> {
// CHECK-NEXT:         %30 = loop.read %12[h, r] : f32
// CHECK-NEXT:         %31 = arith.constant 0.0 : f32
// CHECK-NEXT:         %32 = arith.cmpf oeq, %30, %31 : f32
// CHECK-NEXT:         %33 = arith.constant 1.0 : f32
// CHECK-NEXT:         %34 = arith.select %32, %33, %30 : f32
// CHECK-NEXT:         %35 = arith.divf %33, %34 : f32
// CHECK-NEXT:         %36 = loop.read %25[h, r, d] : f32
// CHECK-NEXT:         %37 = arith.mulf %36, %35 : f32
// CHECK-NEXT:         loop.yield %37
// CHECK-NEXT:       } : tensor<[1, 2, 9, 8] x f32, strides [144, 8, 16, 1]>
// CHECK-NEXT:       loop.yield %29
// CHECK-NEXT:     } : tensor<[1, 2, 9, 8] x f32, strides [144, 8, 16, 1]>
// CHECK-NEXT:     return %y : tensor<[1, 2, 9, 8] x f32, strides [144, 8, 16, 1]>
// CHECK-NEXT:   }
// CHECK-NEXT: }
