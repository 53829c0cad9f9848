builtin.module {
  func.func @main(%arg0_1: tensor<[3, 45] x f32, strides [45, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>, irc.strides = #sym.dims<[45, 1]>}) -> (tensor<[3, 45] x f32, strides [45, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[45, 1]>}) attributes {level = "loop"} {
    %cumsum = host.launch %arg0_1 {callee = @k0} : (tensor<[3, 45] x f32, strides [45, 1]>) -> tensor<[3, 45] x f32, strides [45, 1]>
    return %cumsum : tensor<[3, 45] x f32, strides [45, 1]>
  }
  kernel.func @k0(%0: !kernel.ptr<f32>, %1: !kernel.ptr<f32>) attributes {grid = #sym<3>, index_bits = 32 : i64, num_stages = 1 : i64, num_warps = 1 : i64, outputs = array<i64: 1>, symbols = [], target = "gpu"} {
    %2 = kernel.program_id : index
    %3 = kernel.iota : vector<64xindex>
    %4 = arith.constant 45 : index
    %5 = kernel.splat %4 : (index) -> vector<64xindex>
    %6 = arith.cmpi slt, %3, %5 : vector<64xindex>
    %7 = arith.muli %2, %4 : index
    %8 = kernel.splat %7 : (index) -> vector<64xindex>
    %9 = arith.addi %8, %3 : vector<64xindex>
    %10 = kernel.gather %0[%9] (where %6) : vector<64xf32>
    %11 = arith.constant 0.0 : f32
    %12 = kernel.splat %11 : (f32) -> vector<64xf32>
    %13 = arith.select %6, %10, %12 : vector<64xi1>, vector<64xf32>
    %14 = kernel.scan %13 {combiner = "sum", dim = 0 : i64} : (vector<64xf32>) -> vector<64xf32>
    kernel.scatter %14, %1[%9] (where %6) {combiner = "set"} : vector<64xf32>
    kernel.return
  }
}

