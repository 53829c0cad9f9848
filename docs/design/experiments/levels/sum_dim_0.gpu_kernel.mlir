builtin.module {
  func.func @main(%arg0_1: tensor<[37, 21] x f32, strides [21, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>, irc.strides = #sym.dims<[21, 1]>}) -> (tensor<[21] x f32, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}) attributes {level = "loop"} {
    %sum_1 = host.launch %arg0_1 {callee = @k0} : (tensor<[37, 21] x f32, strides [21, 1]>) -> tensor<[21] x f32, strides [1]>
    return %sum_1 : tensor<[21] x f32, strides [1]>
  }
  kernel.func @k0(%0: !kernel.ptr<f32>, %1: !kernel.ptr<f32>) attributes {grid = #sym<1>, index_bits = 32 : i64, num_stages = 1 : i64, num_warps = 8 : i64, outputs = array<i64: 1>, symbols = [], target = "gpu"} {
    %2 = kernel.program_id : index
    %3 = arith.constant 32 : index
    %4 = arith.muli %2, %3 : index
    %5 = kernel.iota : vector<32xindex>
    %6 = kernel.splat %4 : (index) -> vector<32xindex>
    %7 = arith.addi %6, %5 : vector<32xindex>
    %8 = arith.constant 21 : index
    %9 = kernel.splat %8 : (index) -> vector<32xindex>
    %10 = arith.cmpi slt, %7, %9 : vector<32xindex>
    %11 = kernel.iota : vector<64xindex>
    %12 = arith.constant 37 : index
    %13 = kernel.splat %12 : (index) -> vector<64xindex>
    %14 = arith.cmpi slt, %11, %13 : vector<64xindex>
    %15 = kernel.splat %8 : (index) -> vector<64xindex>
    %16 = arith.muli %11, %15 : vector<64xindex>
    %17 = kernel.expand %16 {dims = array<i64: 1>} : (vector<64xindex>) -> vector<32x64xindex>
    %18 = kernel.expand %7 {dims = array<i64: 0>} : (vector<32xindex>) -> vector<32x64xindex>
    %19 = arith.addi %17, %18 : vector<32x64xindex>
    %20 = kernel.expand %10 {dims = array<i64: 0>} : (vector<32xi1>) -> vector<32x64xi1>
    %21 = kernel.expand %14 {dims = array<i64: 1>} : (vector<64xi1>) -> vector<32x64xi1>
    %22 = arith.andi %20, %21 : vector<32x64xi1>
    %23 = kernel.gather %0[%19] (where %22) : vector<32x64xf32>
    %24 = arith.constant 0.0 : f32
    %25 = kernel.splat %24 : (f32) -> vector<32x64xf32>
    %26 = arith.select %21, %23, %25 : vector<32x64xi1>, vector<32x64xf32>
    %27 = kernel.reduce %26 {combiner = "sum", dim = 1 : i64} : (vector<32x64xf32>) -> vector<32xf32>
    kernel.scatter %27, %1[%7] (where %10) {combiner = "set"} : vector<32xf32>
    kernel.return
  }
}

