builtin.module {
  func.func @main(%arg0_1: tensor<[5, 77] x f32, strides [77, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>, irc.strides = #sym.dims<[77, 1]>}, %arg1_1: tensor<[5, 77] x f32, strides [77, 1]> {irc.kind = "input", irc.name = "arg1", irc.offset = #sym<0>, irc.strides = #sym.dims<[77, 1]>}, %arg2_1: tensor<[5, 1] x f32, strides [1, 1]> {irc.kind = "input", irc.name = "arg2", irc.offset = #sym<0>, irc.strides = #sym.dims<[1, 1]>}, %arg3_1: tensor<[5, 1] x f32, strides [1, 1]> {irc.kind = "input", irc.name = "arg3", irc.offset = #sym<0>, irc.strides = #sym.dims<[1, 1]>}, %arg4_1: tensor<[77] x f32, strides [1]> {irc.kind = "input", irc.name = "arg4", irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}) -> (tensor<[5, 77] x f32, strides [77, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[77, 1]>}, tensor<[77] x f32, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}, tensor<[77] x f32, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}) attributes {level = "loop"} {
    %mul_5 = loop.group (i0: 5) {
      %0, %1 = loop.compute par(i0: 5) red(i1: 77) -> reduce(sum, f32), reduce(sum, f32) {
        %2 = loop.read %arg0_1[i0, i1] : f32
        %3 = loop.read %arg4_1[i1] : f32
        %4 = arith.mulf %2, %3 : f32
        %5 = loop.read %arg1_1[i0, i1] : f32
        %6 = loop.read %arg2_1[i0, 0] : f32
        %7 = arith.subf %5, %6 : f32
        %8 = loop.read %arg3_1[i0, 0] : f32
        %9 = arith.mulf %7, %8 : f32
        %10 = arith.mulf %4, %9 : f32
        loop.yield %4, %10
      } : tensor<[5] x f32, strides [1]>, tensor<[5] x f32, strides [1]>
      %mul_5_0 = loop.compute par(i0: 5, i1: 77) -> map {
        %11 = loop.read %arg3_1[i0, 0] : f32
        %12 = arith.constant 77.0 : f32
        %13 = arith.divf %11, %12 : f32
        %14 = loop.read %arg0_1[i0, i1] : f32
        %15 = loop.read %arg4_1[i1] : f32
        %16 = arith.mulf %14, %15 : f32
        %17 = arith.mulf %16, %12 : f32
        %18 = loop.read %0[i0] : f32
        %19 = arith.subf %17, %18 : f32
        %20 = loop.read %arg1_1[i0, i1] : f32
        %21 = loop.read %arg2_1[i0, 0] : f32
        %22 = arith.subf %20, %21 : f32
        %23 = arith.mulf %22, %11 : f32
        %24 = loop.read %1[i0] : f32
        %25 = arith.mulf %23, %24 : f32
        %26 = arith.subf %19, %25 : f32
        %27 = arith.mulf %13, %26 : f32
        loop.yield %27
      } : tensor<[5, 77] x f32, strides [77, 1]>
      loop.yield %mul_5_0
    } : tensor<[5, 77] x f32, strides [77, 1]>
    %sum_3, %sum_4 = loop.compute red(i0: 5) par(i1: 77) -> reduce(sum, f32), reduce(sum, f32) {
      %28 = loop.read %arg0_1[i0, i1] : f32
      %29 = loop.read %arg1_1[i0, i1] : f32
      %30 = loop.read %arg2_1[i0, 0] : f32
      %31 = arith.subf %29, %30 : f32
      %32 = loop.read %arg3_1[i0, 0] : f32
      %33 = arith.mulf %31, %32 : f32
      %34 = arith.mulf %28, %33 : f32
      loop.yield %34, %28
    } : tensor<[77] x f32, strides [1]>, tensor<[77] x f32, strides [1]>
    return %mul_5, %sum_3, %sum_4 : tensor<[5, 77] x f32, strides [77, 1]>, tensor<[77] x f32, strides [1]>, tensor<[77] x f32, strides [1]>
  }
}

