// The pass expand-streams: blocks of rows walk over the stream, with maxima and sums so far.
// RUN: --expand-streams="rows=16 columns=12"
// VALUES: expand-streams{rows=16 columns=12}

builtin.module attributes {irc.target = #irc.target<avx2>} {
  func.func @main(%q: tensor<[2, 20, 16] x bf16, strides [320, 16, 1]>, %k: tensor<[2, 24, 16] x bf16, strides [384, 16, 1]>, %v: tensor<[2, 24, 8] x bf16, strides [192, 8, 1]>) -> tensor<[2, 20, 8] x f32, strides [160, 8, 1]> attributes {level = "loop"} {
    %y = loop.group (i0: 2, i1: 20) {
      %s = loop.compute par(i0: 2, i1: 20, i2: 24) red(i3: 16) -> reduce(sum, f32) schedule #loop.schedule<cpu> {
        %a = loop.read %q[i0, i1, i3] : bf16
        %b = arith.extf %a : bf16 to f32
        %c = loop.read %k[i0, i2, i3] : bf16
        %d = arith.extf %c : bf16 to f32
        %e = arith.mulf %b, %d : f32
        loop.yield %e
      } : tensor<[2, 20, 24] x f32, strides [480, 24, 1]>
      %m = loop.compute par(i0: 2, i1: 20) red(i2: 24) -> reduce(max, f32) {
        %f = loop.read %s[i0, i1, i2] : f32
        loop.yield %f
      } : tensor<[2, 20] x f32, strides [20, 1]>
      %x = loop.compute par(i0: 2, i1: 20, i2: 24) -> map {
        %g = loop.read %s[i0, i1, i2] : f32
        %h = loop.read %m[i0, i1] : f32
        %low = arith.constant 0xFF800000 : f32
        %none = arith.cmpf oeq, %h, %low : f32
        %zero = arith.constant 0.0 : f32
        %top = arith.select %none, %zero, %h : f32
        %gap = arith.subf %g, %top : f32
        %power = math.exp %gap {nonpositive} : f32
        loop.yield %power
      } : tensor<[2, 20, 24] x f32, strides [480, 24, 1]>
      %t = loop.compute par(i0: 2, i1: 20) red(i2: 24) -> reduce(sum, f32) {
        %i = loop.read %x[i0, i1, i2] : f32
        loop.yield %i
      } : tensor<[2, 20] x f32, strides [20, 1]>
      %o = loop.compute par(i0: 2, i1: 20, i2: 8) red(i3: 24) -> reduce(sum, f32) schedule #loop.schedule<cpu> {
        %j = loop.read %x[i0, i1, i3] : f32
        %l = arith.truncf %j : f32 to bf16
        %n = arith.extf %l : bf16 to f32
        %p = loop.read %v[i0, i3, i2] : bf16
        %r = arith.extf %p : bf16 to f32
        %u = arith.mulf %n, %r : f32
        loop.yield %u
      } : tensor<[2, 20, 8] x f32, strides [160, 8, 1]>
      %y_0 = loop.compute par(i0: 2, i1: 20, i2: 8) -> map {
        %w = loop.read %o[i0, i1, i2] : f32
        %z = loop.read %t[i0, i1] : f32
        %quotient = arith.divf %w, %z : f32
        loop.yield %quotient
      } : tensor<[2, 20, 8] x f32, strides [160, 8, 1]>
      loop.yield %y_0
    } : tensor<[2, 20, 8] x f32, strides [160, 8, 1]>
    return %y : tensor<[2, 20, 8] x f32, strides [160, 8, 1]>
  }
}

// CHECK: builtin.module attributes {irc.target = #irc.target<avx2>} {
// CHECK-NEXT:   func.func @main(%q: tensor<[2, 20, 16] x bf16, strides [320, 16, 1]>, %k: tensor<[2, 24, 16] x bf16, strides [384, 16, 1]>, %v: tensor<[2, 24, 8] x bf16, strides [192, 8, 1]>) -> tensor<[2, 20, 8] x f32, strides [160, 8, 1]> attributes {level = "loop"} {
// CHECK-NEXT:     %0 = graph.undefined : tensor<[2, 20, 8] x f32, strides [160, 8, 1]>
// CHECK-NEXT:     %y = loop.group (i0: 2, block: 2) schedule #loop.schedule<cpu, collapse = [], outer = ["i0", "block"], scratch = 0 : i64, vector_axis = ""> {
// CHECK-NEXT:       %1 = loop.compute par(i0: 2, block: 2, panel: 1, depth0: 16, lane: 16) -> map schedule #loop.schedule<cpu, chunks = [], collapse = [], copies = 2 : i64, lanes = 8 : i64, order = ["panel", "depth0", "lane"], partial = [], spans = 1 : i64, streams = false, tail = "mask", vector_axis = "lane"> {
// CHECK-NEXT:         %2 = loop.index {expression = #sym<block*16 + lane + panel*16>} : index
// CHECK-NEXT:         %3 = arith.constant 20 : index
// CHECK-NEXT:         %4 = arith.cmpi slt, %2, %3 : index
// CHECK-NEXT:         %5 = loop.read %q[i0, block*16 + lane + panel*16, depth0] (where %4) : bf16
// CHECK-NEXT:         %6 = arith.extf %5 : bf16 to f32
// CHECK-NEXT:         %7 = arith.constant 0.0 : f32
// CHECK-NEXT:         %8 = arith.select %4, %6, %7 : f32
// CHECK-NEXT:         loop.yield %8
// CHECK-NEXT:       } : tensor<[2, 2, 1, 16, 16] x f32, strides [512, 256, 256, 16, 1]>
// CHECK-NEXT:       %9 = loop.compute par(i0: 2, block: 2, panel: 1, lane: 16) -> map schedule #loop.schedule<cpu, chunks = [], collapse = [], copies = 2 : i64, lanes = 8 : i64, order = ["panel", "lane"], partial = [], spans = 1 : i64, streams = false, tail = "mask", vector_axis = "lane"> {
// CHECK-NEXT:         %10 = arith.constant -3.4028235e+38 : f32
// CHECK-NEXT:         loop.yield %10
// CHECK-NEXT:       } : tensor<[2, 2, 1, 16] x f32, strides [32, 16, 16, 1]>
// CHECK-NEXT:       %11 = loop.compute par(i0: 2, block: 2, panel: 1, lane: 16) -> map schedule #loop.schedule<cpu, chunks = [], collapse = [], copies = 2 : i64, lanes = 8 : i64, order = ["panel", "lane"], partial = [], spans = 1 : i64, streams = false, tail = "mask", vector_axis = "lane"> {
// CHECK-NEXT:         %12 = arith.constant 0.0 : f32
// CHECK-NEXT:         loop.yield %12
// CHECK-NEXT:       } : tensor<[2, 2, 1, 16] x f32, strides [32, 16, 16, 1]>
// CHECK-NEXT:       %13 = loop.compute par(i0: 2, block: 2, panel: 1, width: 8, lane: 16) -> map schedule #loop.schedule<cpu, chunks = [], collapse = [], copies = 2 : i64, lanes = 8 : i64, order = ["panel", "width", "lane"], partial = [], spans = 1 : i64, streams = false, tail = "mask", vector_axis = "lane"> {
// CHECK-NEXT:         %14 = arith.constant 0.0 : f32
// CHECK-NEXT:         loop.yield %14
// CHECK-NEXT:       } : tensor<[2, 2, 1, 8, 16] x f32, strides [256, 128, 128, 16, 1]>
// CHECK-NEXT:       %15, %16, %17 = loop.group (i0: 2, block: 2, step: 2) iter_args(%9, %11, %13) schedule #loop.schedule<cpu, outer = ["step"]> {
// CHECK-NEXT:       ^bb0(%18: tensor<[2, 2, 1, 16] x f32, strides [32, 16, 16, 1]>, %19: tensor<[2, 2, 1, 16] x f32, strides [32, 16, 16, 1]>, %20: tensor<[2, 2, 1, 8, 16] x f32, strides [256, 128, 128, 16, 1]>):
// CHECK-NEXT:         %21 = loop.compute par(i0: 2, block: 2, step: 2, column: 12, depth0: 16) -> map schedule #loop.schedule<cpu, chunks = [], collapse = [], copies = 2 : i64, lanes = 8 : i64, order = ["column", "depth0"], partial = [], spans = 1 : i64, streams = false, tail = "mask", vector_axis = "depth0"> {
// CHECK-NEXT:           %22 = loop.read %k[i0, column + step*12, depth0] : bf16
// CHECK-NEXT:           %23 = arith.extf %22 : bf16 to f32
// CHECK-NEXT:           loop.yield %23
// CHECK-NEXT:         } : tensor<[2, 2, 2, 12, 16] x f32, strides [768, 384, 192, 16, 1]>
// CHECK-NEXT:         %24 = loop.compute par(i0: 2, block: 2, step: 2, column: 12, row: 16) red(depth0: 16) -> reduce(sum, f32) schedule #loop.schedule<cpu, block_depth = 0 : i64, block_rows = 0 : i64, collapse = [], depth_order = ["depth0"], group = 1 : i64, in_turn = false, inner = "columns", lanes = 8 : i64, offset = 0 : i64, outer_rows = [], pack_ahead = 0 : i64, pack_left = false, pack_right = false, point_columns = 0 : i64, point_rows = 0 : i64, products = "lanes", row_axis = "column", rows_ahead = 0 : i64, skew = 16 : i64, terms = 2 : i64, tile_rows = 6 : i64, tile_vectors = 2 : i64, vector_axis = "row", woven = false> {
// CHECK-NEXT:           %25 = loop.read %21[i0, block, step, column, depth0] : f32
// CHECK-NEXT:           %26 = loop.read %1[i0, block, floordiv(row, 16), depth0, mod(row, 16)] : f32
// CHECK-NEXT:           %27 = arith.mulf %25, %26 : f32
// CHECK-NEXT:           loop.yield %27
// CHECK-NEXT:         } : tensor<[2, 2, 2, 12, 16] x f32, strides [768, 384, 192, 16, 1]>
// CHECK-NEXT:         %28 = loop.compute par(i0: 2, block: 2, step: 2, panel: 1) red(column: 12) par(lane: 16) -> reduce(max, f32) schedule #loop.schedule<cpu, chunks = [], collapse = [], copies = 2 : i64, lanes = 8 : i64, order = ["panel", "lane", "column"], partial = [], spans = 1 : i64, streams = false, tail = "mask", vector_axis = "lane"> {
// CHECK-NEXT:           %29 = loop.read %24[i0, block, step, column, lane + panel*16] : f32
// CHECK-NEXT:           loop.yield %29
// CHECK-NEXT:         } : tensor<[2, 2, 2, 1, 16] x f32, strides [64, 32, 16, 16, 1]>
// CHECK-NEXT:         %30, %31 = loop.compute par(i0: 2, block: 2, step: 2, panel: 1, lane: 16) -> map, map schedule #loop.schedule<cpu, chunks = [], collapse = [], copies = 2 : i64, lanes = 8 : i64, order = ["panel", "lane"], partial = [], spans = 1 : i64, streams = false, tail = "mask", vector_axis = "lane"> {
// CHECK-NEXT:           %32 = loop.read %18[i0, block, panel, lane] : f32
// CHECK-NEXT:           %33 = loop.read %28[i0, block, step, panel, lane] : f32
// CHECK-NEXT:           %34 = arith.maximumf %32, %33 : f32
// CHECK-NEXT:           %35 = arith.subf %32, %34 : f32
// CHECK-NEXT:           %36 = math.exp %35 {nonpositive} : f32
// CHECK-NEXT:           loop.yield %34, %36
// CHECK-NEXT:         } : tensor<[2, 2, 2, 1, 16] x f32, strides [64, 32, 16, 16, 1]>, tensor<[2, 2, 2, 1, 16] x f32, strides [64, 32, 16, 16, 1]>
// CHECK-NEXT:         %37, %38 = loop.compute par(i0: 2, block: 2, step: 2, panel: 1) red(column: 12) par(lane: 16) -> reduce(sum, f32), map schedule #loop.schedule<cpu, chunks = [], collapse = [], copies = 2 : i64, lanes = 8 : i64, order = ["panel", "lane", "column"], partial = [], spans = 1 : i64, streams = false, tail = "mask", vector_axis = "lane"> {
// CHECK-NEXT:           %39 = loop.read %24[i0, block, step, column, lane + panel*16] : f32
// CHECK-NEXT:           %40 = loop.read %30[i0, block, step, panel, lane] : f32
// CHECK-NEXT:           %41 = arith.subf %39, %40 : f32
// CHECK-NEXT:           %42 = math.exp %41 {nonpositive} : f32
// CHECK-NEXT:           loop.yield %42, %42
// CHECK-NEXT:         } : tensor<[2, 2, 2, 1, 16] x f32, strides [64, 32, 16, 16, 1]>, tensor<[2, 2, 2, 1, 12, 16] x f32, strides [768, 384, 192, 192, 16, 1]>
// CHECK-NEXT:         %43 = loop.compute par(i0: 2, block: 2, step: 2, column: 12, width: 8) -> map schedule #loop.schedule<cpu, chunks = [], collapse = [], copies = 1 : i64, lanes = 8 : i64, order = ["column", "width"], partial = [], spans = 1 : i64, streams = false, tail = "mask", vector_axis = "width"> {
// CHECK-NEXT:           %44 = loop.read %v[i0, column + step*12, width] : bf16
// CHECK-NEXT:           %45 = arith.extf %44 : bf16 to f32
// CHECK-NEXT:           loop.yield %45
// CHECK-NEXT:         } : tensor<[2, 2, 2, 12, 8] x f32, strides [384, 192, 96, 8, 1]>
// CHECK-NEXT:         %46 = loop.compute par(i0: 2, block: 2, step: 2, width: 8, row: 16) red(column: 12) -> reduce(sum, f32) schedule #loop.schedule<cpu, block_depth = 0 : i64, block_rows = 0 : i64, collapse = [], depth_order = ["column"], group = 1 : i64, in_turn = false, inner = "columns", lanes = 8 : i64, offset = 0 : i64, outer_rows = [], pack_ahead = 0 : i64, pack_left = false, pack_right = false, point_columns = 0 : i64, point_rows = 0 : i64, products = "lanes", row_axis = "width", rows_ahead = 0 : i64, skew = 16 : i64, terms = 2 : i64, tile_rows = 4 : i64, tile_vectors = 2 : i64, vector_axis = "row", woven = false> {
// CHECK-NEXT:           %47 = loop.read %43[i0, block, step, column, width] : f32
// CHECK-NEXT:           %48 = loop.read %38[i0, block, step, floordiv(row, 16), column, mod(row, 16)] : f32
// CHECK-NEXT:           %49 = arith.mulf %47, %48 : f32
// CHECK-NEXT:           loop.yield %49
// CHECK-NEXT:         } : tensor<[2, 2, 2, 8, 16] x f32, strides [512, 256, 128, 16, 1]>
// CHECK-NEXT:         %50 = loop.compute par(i0: 2, block: 2, step: 2, panel: 1, lane: 16) -> map schedule #loop.schedule<cpu, chunks = [], collapse = [], copies = 2 : i64, lanes = 8 : i64, order = ["panel", "lane"], partial = [], spans = 1 : i64, streams = false, tail = "mask", vector_axis = "lane"> {
// CHECK-NEXT:           %51 = loop.read %19[i0, block, panel, lane] : f32
// CHECK-NEXT:           %52 = loop.read %31[i0, block, step, panel, lane] : f32
// CHECK-NEXT:           %53 = arith.mulf %51, %52 : f32
// CHECK-NEXT:           %54 = loop.read %37[i0, block, step, panel, lane] : f32
// CHECK-NEXT:           %55 = arith.addf %53, %54 : f32
// CHECK-NEXT:           loop.yield %55
// CHECK-NEXT:         } : tensor<[2, 2, 2, 1, 16] x f32, strides [64, 32, 16, 16, 1]>
// CHECK-NEXT:         %56 = loop.compute par(i0: 2, block: 2, step: 2, panel: 1, width: 8, lane: 16) -> map schedule #loop.schedule<cpu, chunks = [], collapse = [], copies = 2 : i64, lanes = 8 : i64, order = ["panel", "width", "lane"], partial = [], spans = 1 : i64, streams = false, tail = "mask", vector_axis = "lane"> {
// CHECK-NEXT:           %57 = loop.read %20[i0, block, panel, width, lane] : f32
// CHECK-NEXT:           %58 = loop.read %31[i0, block, step, panel, lane] : f32
// CHECK-NEXT:           %59 = arith.mulf %57, %58 : f32
// CHECK-NEXT:           %60 = loop.read %46[i0, block, step, width, lane + panel*16] : f32
// CHECK-NEXT:           %61 = arith.addf %59, %60 : f32
// CHECK-NEXT:           loop.yield %61
// CHECK-NEXT:         } : tensor<[2, 2, 2, 1, 8, 16] x f32, strides [512, 256, 128, 128, 16, 1]>
// CHECK-NEXT:         loop.yield %30, %50, %56
// CHECK-NEXT:       } : tensor<[2, 2, 1, 16] x f32, strides [32, 16, 16, 1]>, tensor<[2, 2, 1, 16] x f32, strides [32, 16, 16, 1]>, tensor<[2, 2, 1, 8, 16] x f32, strides [256, 128, 128, 16, 1]>
// CHECK-NEXT:       %62 = loop.compute par(i0: 2, block: 2, panel: 1, width: 8, lane: 16) inits(%0) -> scatter(set, [i0, block*16 + lane + panel*16, width]) schedule #loop.schedule<cpu, chunks = [], collapse = [], copies = 1 : i64, lanes = 8 : i64, order = ["panel", "lane", "width"], partial = [], spans = 1 : i64, streams = false, tail = "mask", vector_axis = "width"> {
// CHECK-NEXT:         %63 = loop.index {expression = #sym<block*16 + lane + panel*16>} : index
// CHECK-NEXT:         %64 = arith.constant 20 : index
// CHECK-NEXT:         %65 = arith.cmpi slt, %63, %64 : index
// CHECK-NEXT:         %66 = loop.read %17[i0, block, panel, width, lane] : f32
// CHECK-NEXT:         %67 = loop.read %16[i0, block, panel, lane] : f32
// CHECK-NEXT:         %68 = arith.divf %66, %67 : f32
// CHECK-NEXT:         loop.yield %68 masks(%65)
// CHECK-NEXT:       } : tensor<[2, 20, 8] x f32, strides [160, 8, 1]>
// CHECK-NEXT:       loop.yield %62
// CHECK-NEXT:     } : tensor<[2, 20, 8] x f32, strides [160, 8, 1]>
// CHECK-NEXT:     return %y : tensor<[2, 20, 8] x f32, strides [160, 8, 1]>
// CHECK-NEXT:   }
// CHECK-NEXT: }
