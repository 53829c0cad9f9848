builtin.module {
  func.func @main(%arg0_1: tensor<[5, 77] x f32, strides [77, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>, irc.strides = #sym.dims<[77, 1]>}, %arg1_1: tensor<[5, 77] x f32, strides [77, 1]> {irc.kind = "input", irc.name = "arg1", irc.offset = #sym<0>, irc.strides = #sym.dims<[77, 1]>}, %arg2_1: tensor<[5, 1] x f32, strides [1, 1]> {irc.kind = "input", irc.name = "arg2", irc.offset = #sym<0>, irc.strides = #sym.dims<[1, 1]>}, %arg3_1: tensor<[5, 1] x f32, strides [1, 1]> {irc.kind = "input", irc.name = "arg3", irc.offset = #sym<0>, irc.strides = #sym.dims<[1, 1]>}, %arg4_1: tensor<[77] x f32, strides [1]> {irc.kind = "input", irc.name = "arg4", irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}) -> (tensor<[5, 77] x f32, strides [77, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[77, 1]>}, tensor<[77] x f32, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}, tensor<[77] x f32, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}) attributes {level = "loop"} {
    %0 = loop.compute par(i0: 5, i1: 77) -> map {
      %1 = loop.read %arg2_1[i0, 0] : f32
      loop.yield %1
    } : tensor<[5, 77] x f32, strides [77, 1]>
    %sub = loop.compute par(i0: 5, i1: 77) -> map {
      %2 = loop.read %arg1_1[i0, i1] : f32
      %3 = loop.read %0[i0, i1] : f32
      %4 = arith.subf %2, %3 : f32
      loop.yield %4
    } : tensor<[5, 77] x f32, strides [77, 1]>
    %5 = loop.compute par(i0: 5, i1: 77) -> map {
      %6 = loop.read %arg3_1[i0, 0] : f32
      loop.yield %6
    } : tensor<[5, 77] x f32, strides [77, 1]>
    %mul = loop.compute par(i0: 5, i1: 77) -> map {
      %7 = loop.read %sub[i0, i1] : f32
      %8 = loop.read %5[i0, i1] : f32
      %9 = arith.mulf %7, %8 : f32
      loop.yield %9
    } : tensor<[5, 77] x f32, strides [77, 1]>
    %10 = loop.compute par(i0: 5, i1: 77) -> map {
      %11 = loop.read %arg4_1[i1] : f32
      loop.yield %11
    } : tensor<[5, 77] x f32, strides [77, 1]>
    %mul_1 = loop.compute par(i0: 5, i1: 77) -> map {
      %12 = loop.read %arg0_1[i0, i1] : f32
      %13 = loop.read %10[i0, i1] : f32
      %14 = arith.mulf %12, %13 : f32
      loop.yield %14
    } : tensor<[5, 77] x f32, strides [77, 1]>
    %15 = loop.compute par(i0: 5, i1: 77) -> map {
      %16 = arith.constant 77.0 : f32
      loop.yield %16
    } : tensor<[5, 77] x f32, strides [77, 1]>
    %mul_2 = loop.compute par(i0: 5, i1: 77) -> map {
      %17 = loop.read %mul_1[i0, i1] : f32
      %18 = loop.read %15[i0, i1] : f32
      %19 = arith.mulf %17, %18 : f32
      loop.yield %19
    } : tensor<[5, 77] x f32, strides [77, 1]>
    %20 = loop.compute par(i0: 5) red(i1: 77) -> reduce(sum, f32) {
      %21 = loop.read %mul_1[i0, i1] : f32
      loop.yield %21
    } : tensor<[5] x f32, strides [1]>
    %sum_1 = loop.compute par(i0: 5, i1: 1) -> map {
      %22 = loop.read %20[i0] : f32
      loop.yield %22
    } : tensor<[5, 1] x f32, strides [1, 1]>
    %mul_3 = loop.compute par(i0: 5, i1: 77) -> map {
      %23 = loop.read %mul_1[i0, i1] : f32
      %24 = loop.read %mul[i0, i1] : f32
      %25 = arith.mulf %23, %24 : f32
      loop.yield %25
    } : tensor<[5, 77] x f32, strides [77, 1]>
    %26 = loop.compute par(i0: 5) red(i1: 77) -> reduce(sum, f32) {
      %27 = loop.read %mul_3[i0, i1] : f32
      loop.yield %27
    } : tensor<[5] x f32, strides [1]>
    %sum_2 = loop.compute par(i0: 5, i1: 1) -> map {
      %28 = loop.read %26[i0] : f32
      loop.yield %28
    } : tensor<[5, 1] x f32, strides [1, 1]>
    %29 = loop.compute par(i0: 5, i1: 77) -> map {
      %30 = loop.read %sum_2[i0, 0] : f32
      loop.yield %30
    } : tensor<[5, 77] x f32, strides [77, 1]>
    %mul_4 = loop.compute par(i0: 5, i1: 77) -> map {
      %31 = loop.read %mul[i0, i1] : f32
      %32 = loop.read %29[i0, i1] : f32
      %33 = arith.mulf %31, %32 : f32
      loop.yield %33
    } : tensor<[5, 77] x f32, strides [77, 1]>
    %34 = loop.compute par(i0: 5, i1: 77) -> map {
      %35 = loop.read %sum_1[i0, 0] : f32
      loop.yield %35
    } : tensor<[5, 77] x f32, strides [77, 1]>
    %sub_1 = loop.compute par(i0: 5, i1: 77) -> map {
      %36 = loop.read %mul_2[i0, i1] : f32
      %37 = loop.read %34[i0, i1] : f32
      %38 = arith.subf %36, %37 : f32
      loop.yield %38
    } : tensor<[5, 77] x f32, strides [77, 1]>
    %sub_2 = loop.compute par(i0: 5, i1: 77) -> map {
      %39 = loop.read %sub_1[i0, i1] : f32
      %40 = loop.read %mul_4[i0, i1] : f32
      %41 = arith.subf %39, %40 : f32
      loop.yield %41
    } : tensor<[5, 77] x f32, strides [77, 1]>
    %42 = loop.compute par(i0: 5, i1: 1) -> map {
      %43 = arith.constant 77.0 : f32
      loop.yield %43
    } : tensor<[5, 1] x f32, strides [1, 1]>
    %div = loop.compute par(i0: 5, i1: 1) -> map {
      %44 = loop.read %arg3_1[i0, i1] : f32
      %45 = loop.read %42[i0, i1] : f32
      %46 = arith.divf %44, %45 : f32
      loop.yield %46
    } : tensor<[5, 1] x f32, strides [1, 1]>
    %47 = loop.compute par(i0: 5, i1: 77) -> map {
      %48 = loop.read %div[i0, 0] : f32
      loop.yield %48
    } : tensor<[5, 77] x f32, strides [77, 1]>
    %mul_5 = loop.compute par(i0: 5, i1: 77) -> map {
      %49 = loop.read %47[i0, i1] : f32
      %50 = loop.read %sub_2[i0, i1] : f32
      %51 = arith.mulf %49, %50 : f32
      loop.yield %51
    } : tensor<[5, 77] x f32, strides [77, 1]>
    %mul_6 = loop.compute par(i0: 5, i1: 77) -> map {
      %52 = loop.read %arg0_1[i0, i1] : f32
      %53 = loop.read %mul[i0, i1] : f32
      %54 = arith.mulf %52, %53 : f32
      loop.yield %54
    } : tensor<[5, 77] x f32, strides [77, 1]>
    %sum_3 = loop.compute red(i0: 5) par(i1: 77) -> reduce(sum, f32) {
      %55 = loop.read %mul_6[i0, i1] : f32
      loop.yield %55
    } : tensor<[77] x f32, strides [1]>
    %sum_4 = loop.compute red(i0: 5) par(i1: 77) -> reduce(sum, f32) {
      %56 = loop.read %arg0_1[i0, i1] : f32
      loop.yield %56
    } : tensor<[77] x f32, strides [1]>
    return %mul_5, %sum_3, %sum_4 : tensor<[5, 77] x f32, strides [77, 1]>, tensor<[77] x f32, strides [1]>, tensor<[77] x f32, strides [1]>
  }
}

