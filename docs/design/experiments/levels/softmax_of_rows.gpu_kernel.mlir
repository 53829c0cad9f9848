builtin.module {
  func.func @main(%arg0_1: tensor<[5, 77] x f32, strides [77, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>, irc.strides = #sym.dims<[77, 1]>}, %arg1_1: tensor<[3] x i64, strides [1]> {irc.kind = "input", irc.name = "arg1", irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}, %arg2_1: tensor<[77] x f32, strides [1]> {irc.kind = "input", irc.name = "arg2", irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}) -> (tensor<[3, 77] x f32, strides [77, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[77, 1]>}) attributes {level = "loop"} {
    %0 = host.launch %arg1_1 {callee = @k0} : (tensor<[3] x i64, strides [1]>) -> tensor<[] x i1, strides []>
    %1 = graph.item %0 : (tensor<[] x i1, strides []>) -> i1
    sym.assert_value %1 {error = "IndexError", message = "index out of bounds for dimension 0 with size 5"} : (i1)
    %_softmax = host.launch %arg1_1, %arg0_1, %arg2_1 {callee = @k1} : (tensor<[3] x i64, strides [1]>, tensor<[5, 77] x f32, strides [77, 1]>, tensor<[77] x f32, strides [1]>) -> tensor<[3, 77] x f32, strides [77, 1]>
    return %_softmax : tensor<[3, 77] x f32, strides [77, 1]>
  }
  kernel.func @k0(%0: !kernel.ptr<i64>, %1: !kernel.ptr<i1>) attributes {grid = #sym<1>, index_bits = 32 : i64, num_stages = 1 : i64, num_warps = 1 : i64, outputs = array<i64: 1>, symbols = [], target = "gpu"} {
    %2 = kernel.program_id : index
    %3 = kernel.iota : vector<4xindex>
    %4 = arith.constant 3 : index
    %5 = kernel.splat %4 : (index) -> vector<4xindex>
    %6 = arith.cmpi slt, %3, %5 : vector<4xindex>
    %7 = arith.constant 5 : index
    %8 = kernel.gather %0[%3] (where %6) : vector<4xi64>
    %9 = arith.constant 5 : i64
    %10 = kernel.splat %9 : (i64) -> vector<4xi64>
    %11 = arith.addi %8, %10 : vector<4xi64>
    %12 = arith.constant 0 : i64
    %13 = kernel.splat %12 : (i64) -> vector<4xi64>
    %14 = arith.cmpi slt, %8, %13 : vector<4xi64>
    %15 = arith.select %14, %11, %8 : vector<4xi1>, vector<4xi64>
    %16 = arith.index_cast %15 : vector<4xi64> to vector<4xindex>
    %17 = kernel.splat %7 : (index) -> vector<4xindex>
    %18 = arith.cmpi slt, %16, %17 : vector<4xindex>
    %19 = arith.constant 0 : index
    %20 = kernel.splat %19 : (index) -> vector<4xindex>
    %21 = arith.cmpi sge, %16, %20 : vector<4xindex>
    %22 = arith.andi %21, %18 : vector<4xi1>
    %23 = arith.constant 1 : i1
    %24 = kernel.splat %23 : (i1) -> vector<4xi1>
    %25 = arith.select %6, %22, %24 : vector<4xi1>, vector<4xi1>
    %26 = kernel.reduce %25 {combiner = "all", dim = 0 : i64} : (vector<4xi1>) -> i1
    kernel.store %26, %1[%19] : i1
    kernel.return
  }
  kernel.func @k1(%0: !kernel.ptr<i64>, %1: !kernel.ptr<f32>, %2: !kernel.ptr<f32>, %3: !kernel.ptr<f32>) attributes {grid = #sym<3>, index_bits = 32 : i64, num_stages = 1 : i64, num_warps = 1 : i64, outputs = array<i64: 3>, symbols = [], target = "gpu"} {
    %4 = kernel.program_id : index
    %5 = kernel.iota : vector<128xindex>
    %6 = arith.constant 77 : index
    %7 = kernel.splat %6 : (index) -> vector<128xindex>
    %8 = arith.cmpi slt, %5, %7 : vector<128xindex>
    %9 = kernel.gather %2[%5] (where %8) : vector<128xf32>
    %10 = kernel.load %0[%4] : i64
    %11 = arith.constant 5 : i64
    %12 = arith.addi %10, %11 : i64
    %13 = arith.constant 0 : i64
    %14 = arith.cmpi slt, %10, %13 : i64
    %15 = arith.select %14, %12, %10 : i64
    %16 = arith.index_cast %15 : i64 to index
    %17 = arith.muli %16, %6 : index
    %18 = kernel.splat %17 : (index) -> vector<128xindex>
    %19 = arith.addi %18, %5 : vector<128xindex>
    %20 = kernel.gather %1[%19] (where %8) : vector<128xf32>
    %21 = arith.addf %20, %9 : vector<128xf32>
    %22 = arith.constant 0xFF800000 : f32
    %23 = kernel.splat %22 : (f32) -> vector<128xf32>
    %24 = arith.select %8, %21, %23 : vector<128xi1>, vector<128xf32>
    %25 = kernel.reduce %24 {combiner = "max", dim = 0 : i64} : (vector<128xf32>) -> f32
    %26 = kernel.splat %25 : (f32) -> vector<128xf32>
    %27 = arith.subf %21, %26 : vector<128xf32>
    %28 = math.exp %27 : vector<128xf32>
    %29 = arith.constant 0.0 : f32
    %30 = kernel.splat %29 : (f32) -> vector<128xf32>
    %31 = arith.select %8, %28, %30 : vector<128xi1>, vector<128xf32>
    %32 = kernel.reduce %31 {combiner = "sum", dim = 0 : i64} : (vector<128xf32>) -> f32
    %33 = kernel.splat %32 : (f32) -> vector<128xf32>
    %34 = arith.divf %28, %33 : vector<128xf32>
    %35 = arith.muli %4, %6 : index
    %36 = kernel.splat %35 : (index) -> vector<128xindex>
    %37 = arith.addi %36, %5 : vector<128xindex>
    kernel.scatter %34, %3[%37] (where %8) {combiner = "set"} : vector<128xf32>
    kernel.return
  }
}

