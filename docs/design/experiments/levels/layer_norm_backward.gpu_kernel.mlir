builtin.module {
  func.func @main(%arg0_1: tensor<[5, 77] x f32, strides [77, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>, irc.strides = #sym.dims<[77, 1]>}, %arg1_1: tensor<[5, 77] x f32, strides [77, 1]> {irc.kind = "input", irc.name = "arg1", irc.offset = #sym<0>, irc.strides = #sym.dims<[77, 1]>}, %arg2_1: tensor<[5, 1] x f32, strides [1, 1]> {irc.kind = "input", irc.name = "arg2", irc.offset = #sym<0>, irc.strides = #sym.dims<[1, 1]>}, %arg3_1: tensor<[5, 1] x f32, strides [1, 1]> {irc.kind = "input", irc.name = "arg3", irc.offset = #sym<0>, irc.strides = #sym.dims<[1, 1]>}, %arg4_1: tensor<[77] x f32, strides [1]> {irc.kind = "input", irc.name = "arg4", irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}) -> (tensor<[5, 77] x f32, strides [77, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[77, 1]>}, tensor<[77] x f32, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}, tensor<[77] x f32, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}) attributes {level = "loop"} {
    %mul_5 = host.launch %arg0_1, %arg4_1, %arg1_1, %arg2_1, %arg3_1 {callee = @k0} : (tensor<[5, 77] x f32, strides [77, 1]>, tensor<[77] x f32, strides [1]>, tensor<[5, 77] x f32, strides [77, 1]>, tensor<[5, 1] x f32, strides [1, 1]>, tensor<[5, 1] x f32, strides [1, 1]>) -> tensor<[5, 77] x f32, strides [77, 1]>
    %sum_3, %sum_4 = host.launch %arg0_1, %arg1_1, %arg2_1, %arg3_1 {callee = @k1} : (tensor<[5, 77] x f32, strides [77, 1]>, tensor<[5, 77] x f32, strides [77, 1]>, tensor<[5, 1] x f32, strides [1, 1]>, tensor<[5, 1] x f32, strides [1, 1]>) -> (tensor<[77] x f32, strides [1]>, tensor<[77] x f32, strides [1]>)
    return %mul_5, %sum_3, %sum_4 : tensor<[5, 77] x f32, strides [77, 1]>, tensor<[77] x f32, strides [1]>, tensor<[77] x f32, strides [1]>
  }
  kernel.func @k0(%0: !kernel.ptr<f32>, %1: !kernel.ptr<f32>, %2: !kernel.ptr<f32>, %3: !kernel.ptr<f32>, %4: !kernel.ptr<f32>, %5: !kernel.ptr<f32>) attributes {grid = #sym<5>, index_bits = 32 : i64, num_stages = 1 : i64, num_warps = 1 : i64, outputs = array<i64: 5>, symbols = [], target = "gpu"} {
    %6 = kernel.program_id : index
    %7 = kernel.iota : vector<128xindex>
    %8 = arith.constant 77 : index
    %9 = kernel.splat %8 : (index) -> vector<128xindex>
    %10 = arith.cmpi slt, %7, %9 : vector<128xindex>
    %11 = kernel.gather %1[%7] (where %10) : vector<128xf32>
    %12 = arith.muli %6, %8 : index
    %13 = kernel.splat %12 : (index) -> vector<128xindex>
    %14 = arith.addi %13, %7 : vector<128xindex>
    %15 = kernel.gather %0[%14] (where %10) : vector<128xf32>
    %16 = arith.mulf %15, %11 : vector<128xf32>
    %17 = arith.constant 0.0 : f32
    %18 = kernel.splat %17 : (f32) -> vector<128xf32>
    %19 = arith.select %10, %16, %18 : vector<128xi1>, vector<128xf32>
    %20 = kernel.reduce %19 {combiner = "sum", dim = 0 : i64} : (vector<128xf32>) -> f32
    %21 = kernel.load %4[%6] : f32
    %22 = kernel.load %3[%6] : f32
    %23 = kernel.gather %2[%14] (where %10) : vector<128xf32>
    %24 = kernel.splat %22 : (f32) -> vector<128xf32>
    %25 = arith.subf %23, %24 : vector<128xf32>
    %26 = kernel.splat %21 : (f32) -> vector<128xf32>
    %27 = arith.mulf %25, %26 : vector<128xf32>
    %28 = arith.mulf %16, %27 : vector<128xf32>
    %29 = arith.select %10, %28, %18 : vector<128xi1>, vector<128xf32>
    %30 = kernel.reduce %29 {combiner = "sum", dim = 0 : i64} : (vector<128xf32>) -> f32
    %31 = kernel.splat %30 : (f32) -> vector<128xf32>
    %32 = arith.mulf %27, %31 : vector<128xf32>
    %33 = arith.constant 77.0 : f32
    %34 = kernel.splat %33 : (f32) -> vector<128xf32>
    %35 = arith.mulf %16, %34 : vector<128xf32>
    %36 = kernel.splat %20 : (f32) -> vector<128xf32>
    %37 = arith.subf %35, %36 : vector<128xf32>
    %38 = arith.subf %37, %32 : vector<128xf32>
    %39 = arith.divf %21, %33 : f32
    %40 = kernel.splat %39 : (f32) -> vector<128xf32>
    %41 = arith.mulf %40, %38 : vector<128xf32>
    kernel.scatter %41, %5[%14] (where %10) {combiner = "set"} : vector<128xf32>
    kernel.return
  }
  kernel.func @k1(%0: !kernel.ptr<f32>, %1: !kernel.ptr<f32>, %2: !kernel.ptr<f32>, %3: !kernel.ptr<f32>, %4: !kernel.ptr<f32>, %5: !kernel.ptr<f32>) attributes {grid = #sym<77>, index_bits = 32 : i64, num_stages = 1 : i64, num_warps = 1 : i64, outputs = array<i64: 4, 5>, symbols = [], target = "gpu"} {
    %6 = kernel.program_id : index
    %7 = kernel.iota : vector<8xindex>
    %8 = arith.constant 5 : index
    %9 = kernel.splat %8 : (index) -> vector<8xindex>
    %10 = arith.cmpi slt, %7, %9 : vector<8xindex>
    %11 = kernel.gather %3[%7] (where %10) : vector<8xf32>
    %12 = kernel.gather %2[%7] (where %10) : vector<8xf32>
    %13 = arith.constant 77 : index
    %14 = kernel.splat %13 : (index) -> vector<8xindex>
    %15 = arith.muli %7, %14 : vector<8xindex>
    %16 = kernel.splat %6 : (index) -> vector<8xindex>
    %17 = arith.addi %16, %15 : vector<8xindex>
    %18 = kernel.gather %1[%17] (where %10) : vector<8xf32>
    %19 = arith.subf %18, %12 : vector<8xf32>
    %20 = arith.mulf %19, %11 : vector<8xf32>
    %21 = kernel.gather %0[%17] (where %10) : vector<8xf32>
    %22 = arith.mulf %21, %20 : vector<8xf32>
    %23 = arith.constant 0.0 : f32
    %24 = kernel.splat %23 : (f32) -> vector<8xf32>
    %25 = arith.select %10, %22, %24 : vector<8xi1>, vector<8xf32>
    %26 = kernel.reduce %25 {combiner = "sum", dim = 0 : i64} : (vector<8xf32>) -> f32
    kernel.store %26, %4[%6] : f32
    %27 = arith.select %10, %21, %24 : vector<8xi1>, vector<8xf32>
    %28 = kernel.reduce %27 {combiner = "sum", dim = 0 : i64} : (vector<8xf32>) -> f32
    kernel.store %28, %5[%6] : f32
    kernel.return
  }
}

