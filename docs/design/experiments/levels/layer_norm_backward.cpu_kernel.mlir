builtin.module {
  func.func @main(%arg0_1: tensor<[5, 77] x f32, strides [77, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>, irc.strides = #sym.dims<[77, 1]>}, %arg1_1: tensor<[5, 77] x f32, strides [77, 1]> {irc.kind = "input", irc.name = "arg1", irc.offset = #sym<0>, irc.strides = #sym.dims<[77, 1]>}, %arg2_1: tensor<[5, 1] x f32, strides [1, 1]> {irc.kind = "input", irc.name = "arg2", irc.offset = #sym<0>, irc.strides = #sym.dims<[1, 1]>}, %arg3_1: tensor<[5, 1] x f32, strides [1, 1]> {irc.kind = "input", irc.name = "arg3", irc.offset = #sym<0>, irc.strides = #sym.dims<[1, 1]>}, %arg4_1: tensor<[77] x f32, strides [1]> {irc.kind = "input", irc.name = "arg4", irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}) -> (tensor<[5, 77] x f32, strides [77, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[77, 1]>}, tensor<[77] x f32, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}, tensor<[77] x f32, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}) attributes {level = "loop"} {
    %mul_5 = host.launch %arg0_1, %arg4_1, %arg1_1, %arg2_1, %arg3_1 {callee = @k0} : (tensor<[5, 77] x f32, strides [77, 1]>, tensor<[77] x f32, strides [1]>, tensor<[5, 77] x f32, strides [77, 1]>, tensor<[5, 1] x f32, strides [1, 1]>, tensor<[5, 1] x f32, strides [1, 1]>) -> tensor<[5, 77] x f32, strides [77, 1]>
    %sum_3, %sum_4 = host.launch %arg0_1, %arg1_1, %arg2_1, %arg3_1 {callee = @k1} : (tensor<[5, 77] x f32, strides [77, 1]>, tensor<[5, 77] x f32, strides [77, 1]>, tensor<[5, 1] x f32, strides [1, 1]>, tensor<[5, 1] x f32, strides [1, 1]>) -> (tensor<[77] x f32, strides [1]>, tensor<[77] x f32, strides [1]>)
    return %mul_5, %sum_3, %sum_4 : tensor<[5, 77] x f32, strides [77, 1]>, tensor<[77] x f32, strides [1]>, tensor<[77] x f32, strides [1]>
  }
  kernel.func @k0(%arg0_1: !kernel.ptr<f32>, %arg4_1: !kernel.ptr<f32>, %arg1_1: !kernel.ptr<f32>, %arg2_1: !kernel.ptr<f32>, %arg3_1: !kernel.ptr<f32>, %0: !kernel.ptr<f32>, %begin: index, %end: index) attributes {grid = #sym<5>, inplace = array<i64: 0, 5, 2, 5>, outputs = array<i64: 5>, symbols = [], target = "cpu", work = #sym<2387>} {
    %1 = arith.constant 77.0 : f32
    %2 = arith.constant dense<77.0> : vector<16xf32>
    %3 = arith.constant 77 : index
    %4 = arith.constant dense<0.0> : vector<16xf32>
    %5 = arith.constant 16 : index
    %6 = arith.constant 32 : index
    %7 = arith.constant 48 : index
    %8 = arith.constant 0 : index
    %9 = arith.constant dense<13> : vector<16xi32>
    %10 = kernel.iota : vector<16xi32>
    %11 = arith.constant 64 : index
    %12 = arith.constant 1 : index
    kernel.for %13 = %begin to %end step %12 {
      %14 = kernel.load %arg2_1[%13] : f32
      %15 = kernel.splat %14 : (f32) -> vector<16xf32>
      %16 = kernel.load %arg3_1[%13] : f32
      %17 = kernel.splat %16 : (f32) -> vector<16xf32>
      %18 = arith.muli %13, %3 : index
      %19 = kernel.load %arg0_1[%18] : vector<16xf32>
      %20 = arith.addi %18, %5 : index
      %21 = kernel.load %arg0_1[%20] : vector<16xf32>
      %22 = arith.addi %18, %6 : index
      %23 = kernel.load %arg0_1[%22] : vector<16xf32>
      %24 = arith.addi %18, %7 : index
      %25 = kernel.load %arg0_1[%24] : vector<16xf32>
      %26 = kernel.load %arg4_1[%8] : vector<16xf32>
      %27 = kernel.load %arg4_1[%5] : vector<16xf32>
      %28 = kernel.load %arg4_1[%6] : vector<16xf32>
      %29 = kernel.load %arg4_1[%7] : vector<16xf32>
      %30 = arith.mulf %19, %26 : vector<16xf32>
      %31 = arith.mulf %21, %27 : vector<16xf32>
      %32 = arith.mulf %23, %28 : vector<16xf32>
      %33 = arith.mulf %25, %29 : vector<16xf32>
      %34 = kernel.load %arg1_1[%18] : vector<16xf32>
      %35 = arith.addi %18, %5 : index
      %36 = kernel.load %arg1_1[%35] : vector<16xf32>
      %37 = arith.addi %18, %6 : index
      %38 = kernel.load %arg1_1[%37] : vector<16xf32>
      %39 = arith.addi %18, %7 : index
      %40 = kernel.load %arg1_1[%39] : vector<16xf32>
      %41 = arith.subf %34, %15 : vector<16xf32>
      %42 = arith.subf %36, %15 : vector<16xf32>
      %43 = arith.subf %38, %15 : vector<16xf32>
      %44 = arith.subf %40, %15 : vector<16xf32>
      %45 = arith.mulf %41, %17 : vector<16xf32>
      %46 = arith.mulf %42, %17 : vector<16xf32>
      %47 = arith.mulf %43, %17 : vector<16xf32>
      %48 = arith.mulf %44, %17 : vector<16xf32>
      %49 = arith.mulf %30, %45 : vector<16xf32>
      %50 = arith.mulf %31, %46 : vector<16xf32>
      %51 = arith.mulf %32, %47 : vector<16xf32>
      %52 = arith.mulf %33, %48 : vector<16xf32>
      %53 = arith.addf %4, %30 : vector<16xf32>
      %54 = arith.addf %4, %31 : vector<16xf32>
      %55 = arith.addf %4, %32 : vector<16xf32>
      %56 = arith.addf %4, %33 : vector<16xf32>
      %57 = arith.addf %4, %49 : vector<16xf32>
      %58 = arith.addf %4, %50 : vector<16xf32>
      %59 = arith.addf %4, %51 : vector<16xf32>
      %60 = arith.addf %4, %52 : vector<16xf32>
      %61 = arith.cmpi slt, %10, %9 : vector<16xi32>
      %62 = arith.addi %18, %11 : index
      %63 = kernel.load %arg0_1[%62] (where %61) : vector<16xf32>
      %64 = kernel.load %arg4_1[%11] (where %61) : vector<16xf32>
      %65 = arith.mulf %63, %64 : vector<16xf32>
      %66 = kernel.load %arg1_1[%62] (where %61) : vector<16xf32>
      %67 = arith.subf %66, %15 : vector<16xf32>
      %68 = arith.mulf %67, %17 : vector<16xf32>
      %69 = arith.mulf %65, %68 : vector<16xf32>
      %70 = arith.addf %53, %65 : vector<16xf32>
      %71 = arith.select %61, %70, %53 : vector<16xi1>, vector<16xf32>
      %72 = arith.addf %57, %69 : vector<16xf32>
      %73 = arith.select %61, %72, %57 : vector<16xi1>, vector<16xf32>
      %74 = arith.addf %71, %54 : vector<16xf32>
      %75 = arith.addf %55, %56 : vector<16xf32>
      %76 = arith.addf %74, %75 : vector<16xf32>
      %77 = kernel.reduce %76 {combiner = "sum", dim = 0 : i64} : (vector<16xf32>) -> f32
      %78 = arith.addf %73, %58 : vector<16xf32>
      %79 = arith.addf %59, %60 : vector<16xf32>
      %80 = arith.addf %78, %79 : vector<16xf32>
      %81 = kernel.reduce %80 {combiner = "sum", dim = 0 : i64} : (vector<16xf32>) -> f32
      %82 = kernel.load %arg3_1[%13] : f32
      %83 = kernel.splat %82 : (f32) -> vector<16xf32>
      %84 = arith.divf %82, %1 : f32
      %85 = kernel.splat %84 : (f32) -> vector<16xf32>
      %86 = kernel.splat %77 : (f32) -> vector<16xf32>
      %87 = kernel.load %arg2_1[%13] : f32
      %88 = kernel.splat %87 : (f32) -> vector<16xf32>
      %89 = kernel.splat %81 : (f32) -> vector<16xf32>
      kernel.for %90 = %8 to %11 step %5 {
        %91 = arith.addi %18, %90 : index
        %92 = kernel.load %arg0_1[%91] : vector<16xf32>
        %93 = kernel.load %arg4_1[%90] : vector<16xf32>
        %94 = arith.mulf %92, %93 : vector<16xf32>
        %95 = arith.mulf %94, %2 : vector<16xf32>
        %96 = arith.subf %95, %86 : vector<16xf32>
        %97 = kernel.load %arg1_1[%91] : vector<16xf32>
        %98 = arith.subf %97, %88 : vector<16xf32>
        %99 = arith.mulf %98, %83 : vector<16xf32>
        %100 = arith.mulf %99, %89 : vector<16xf32>
        %101 = arith.subf %96, %100 : vector<16xf32>
        %102 = arith.mulf %85, %101 : vector<16xf32>
        kernel.store %102, %0[%91] : vector<16xf32>
        kernel.yield
      }
      %103 = arith.cmpi slt, %10, %9 : vector<16xi32>
      %104 = arith.addi %18, %11 : index
      %105 = kernel.load %arg0_1[%104] (where %103) : vector<16xf32>
      %106 = kernel.load %arg4_1[%11] (where %103) : vector<16xf32>
      %107 = arith.mulf %105, %106 : vector<16xf32>
      %108 = arith.mulf %107, %2 : vector<16xf32>
      %109 = arith.subf %108, %86 : vector<16xf32>
      %110 = kernel.load %arg1_1[%104] (where %103) : vector<16xf32>
      %111 = arith.subf %110, %88 : vector<16xf32>
      %112 = arith.mulf %111, %83 : vector<16xf32>
      %113 = arith.mulf %112, %89 : vector<16xf32>
      %114 = arith.subf %109, %113 : vector<16xf32>
      %115 = arith.mulf %85, %114 : vector<16xf32>
      kernel.store %115, %0[%104] (where %103) : vector<16xf32>
      kernel.yield
    }
    kernel.return
  }
  kernel.func @k1(%arg0_1: !kernel.ptr<f32>, %arg1_1: !kernel.ptr<f32>, %arg2_1: !kernel.ptr<f32>, %arg3_1: !kernel.ptr<f32>, %0: !kernel.ptr<f32>, %1: !kernel.ptr<f32>, %begin: index, %end: index) attributes {grid = #sym<2>, outputs = array<i64: 4, 5>, symbols = [], target = "cpu", work = #sym<3520>} {
    %2 = arith.constant 64 : index
    %3 = arith.constant 77 : index
    %4 = arith.constant -64 : index
    %5 = arith.constant dense<0.0> : vector<16xf32>
    %6 = arith.constant 16 : index
    %7 = arith.constant 32 : index
    %8 = arith.constant 48 : index
    %9 = arith.constant 0 : index
    %10 = arith.constant 5 : index
    %11 = arith.constant 1 : index
    %12 = kernel.iota : vector<16xi32>
    %13 = arith.cmpi slt, %begin, %end : index
    kernel.if %13 {
      %14 = arith.muli %begin, %2 : index
      %15 = arith.muli %end, %2 : index
      %16 = arith.minsi %15, %3 : index
      %17 = arith.andi %16, %4 : index
      kernel.for %18 = %14 to %17 step %2 {
        %19, %20, %21, %22, %23, %24, %25, %26 = kernel.for %27 = %9 to %10 step %11 iter_args(%28 = %5, %29 = %5, %30 = %5, %31 = %5, %32 = %5, %33 = %5, %34 = %5, %35 = %5) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
          %36 = arith.muli %27, %3 : index
          %37 = arith.addi %18, %36 : index
          %38 = kernel.load %arg0_1[%37] : vector<16xf32>
          %39 = arith.addi %37, %6 : index
          %40 = kernel.load %arg0_1[%39] : vector<16xf32>
          %41 = arith.addi %37, %7 : index
          %42 = kernel.load %arg0_1[%41] : vector<16xf32>
          %43 = arith.addi %37, %8 : index
          %44 = kernel.load %arg0_1[%43] : vector<16xf32>
          %45 = kernel.load %arg1_1[%37] : vector<16xf32>
          %46 = arith.addi %37, %6 : index
          %47 = kernel.load %arg1_1[%46] : vector<16xf32>
          %48 = arith.addi %37, %7 : index
          %49 = kernel.load %arg1_1[%48] : vector<16xf32>
          %50 = arith.addi %37, %8 : index
          %51 = kernel.load %arg1_1[%50] : vector<16xf32>
          %52 = kernel.load %arg2_1[%27] : f32
          %53 = kernel.splat %52 : (f32) -> vector<16xf32>
          %54 = arith.subf %45, %53 : vector<16xf32>
          %55 = arith.subf %47, %53 : vector<16xf32>
          %56 = arith.subf %49, %53 : vector<16xf32>
          %57 = arith.subf %51, %53 : vector<16xf32>
          %58 = kernel.load %arg3_1[%27] : f32
          %59 = kernel.splat %58 : (f32) -> vector<16xf32>
          %60 = arith.mulf %54, %59 : vector<16xf32>
          %61 = arith.mulf %55, %59 : vector<16xf32>
          %62 = arith.mulf %56, %59 : vector<16xf32>
          %63 = arith.mulf %57, %59 : vector<16xf32>
          %64 = arith.mulf %38, %60 : vector<16xf32>
          %65 = arith.mulf %40, %61 : vector<16xf32>
          %66 = arith.mulf %42, %62 : vector<16xf32>
          %67 = arith.mulf %44, %63 : vector<16xf32>
          %68 = arith.addf %28, %64 : vector<16xf32>
          %69 = arith.addf %29, %65 : vector<16xf32>
          %70 = arith.addf %30, %66 : vector<16xf32>
          %71 = arith.addf %31, %67 : vector<16xf32>
          %72 = arith.addf %32, %38 : vector<16xf32>
          %73 = arith.addf %33, %40 : vector<16xf32>
          %74 = arith.addf %34, %42 : vector<16xf32>
          %75 = arith.addf %35, %44 : vector<16xf32>
          kernel.yield %68, %69, %70, %71, %72, %73, %74, %75 : vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>
        }
        kernel.store %19, %0[%18] : vector<16xf32>
        %76 = arith.addi %18, %6 : index
        kernel.store %20, %0[%76] : vector<16xf32>
        %77 = arith.addi %18, %7 : index
        kernel.store %21, %0[%77] : vector<16xf32>
        %78 = arith.addi %18, %8 : index
        kernel.store %22, %0[%78] : vector<16xf32>
        kernel.store %23, %1[%18] : vector<16xf32>
        %79 = arith.addi %18, %6 : index
        kernel.store %24, %1[%79] : vector<16xf32>
        %80 = arith.addi %18, %7 : index
        kernel.store %25, %1[%80] : vector<16xf32>
        %81 = arith.addi %18, %8 : index
        kernel.store %26, %1[%81] : vector<16xf32>
        kernel.yield
      }
      kernel.for %82 = %17 to %16 step %6 {
        %83 = arith.subi %16, %82 : index
        %84 = arith.index_cast %83 : index to i32
        %85 = kernel.splat %84 : (i32) -> vector<16xi32>
        %86 = arith.cmpi slt, %12, %85 : vector<16xi32>
        %87, %88 = kernel.for %89 = %9 to %10 step %11 iter_args(%90 = %5, %91 = %5) -> (vector<16xf32>, vector<16xf32>) {
          %92 = arith.muli %89, %3 : index
          %93 = arith.addi %82, %92 : index
          %94 = kernel.load %arg0_1[%93] (where %86) : vector<16xf32>
          %95 = kernel.load %arg1_1[%93] (where %86) : vector<16xf32>
          %96 = kernel.load %arg2_1[%89] : f32
          %97 = kernel.splat %96 : (f32) -> vector<16xf32>
          %98 = arith.subf %95, %97 : vector<16xf32>
          %99 = kernel.load %arg3_1[%89] : f32
          %100 = kernel.splat %99 : (f32) -> vector<16xf32>
          %101 = arith.mulf %98, %100 : vector<16xf32>
          %102 = arith.mulf %94, %101 : vector<16xf32>
          %103 = arith.addf %90, %102 : vector<16xf32>
          %104 = arith.addf %91, %94 : vector<16xf32>
          kernel.yield %103, %104 : vector<16xf32>, vector<16xf32>
        }
        kernel.store %87, %0[%82] (where %86) : vector<16xf32>
        kernel.store %88, %1[%82] (where %86) : vector<16xf32>
        kernel.yield
      }
      kernel.yield
    } else {
      kernel.yield
    }
    kernel.return
  }
}

