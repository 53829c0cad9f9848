builtin.module {
  func.func @main(%arg0_1: tensor<[37, 21] x f32, strides [21, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>, irc.strides = #sym.dims<[21, 1]>}) -> (tensor<[21] x f32, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}) attributes {level = "loop"} {
    %sum_1 = host.launch %arg0_1 {callee = @k0} : (tensor<[37, 21] x f32, strides [21, 1]>) -> tensor<[21] x f32, strides [1]>
    return %sum_1 : tensor<[21] x f32, strides [1]>
  }
  kernel.func @k0(%arg0_1: !kernel.ptr<f32>, %0: !kernel.ptr<f32>, %begin: index, %end: index) attributes {grid = #sym<2>, outputs = array<i64: 1>, symbols = [], target = "cpu", work = #sym<2368>} {
    %1 = arith.constant 16 : index
    %2 = arith.constant 21 : index
    %3 = arith.constant -16 : index
    %4 = arith.constant dense<0.0> : vector<16xf32>
    %5 = arith.constant 0 : index
    %6 = arith.constant 37 : index
    %7 = arith.constant 1 : index
    %8 = kernel.iota : vector<16xi32>
    %9 = arith.cmpi slt, %begin, %end : index
    kernel.if %9 {
      %10 = arith.muli %begin, %1 : index
      %11 = arith.muli %end, %1 : index
      %12 = arith.minsi %11, %2 : index
      %13 = arith.andi %12, %3 : index
      kernel.for %14 = %10 to %13 step %1 {
        %15 = kernel.for %16 = %5 to %6 step %7 iter_args(%17 = %4) -> (vector<16xf32>) {
          %18 = arith.muli %16, %2 : index
          %19 = arith.addi %14, %18 : index
          %20 = kernel.load %arg0_1[%19] : vector<16xf32>
          %21 = arith.addf %17, %20 : vector<16xf32>
          kernel.yield %21 : vector<16xf32>
        }
        kernel.store %15, %0[%14] : vector<16xf32>
        kernel.yield
      }
      kernel.for %22 = %13 to %12 step %1 {
        %23 = arith.subi %12, %22 : index
        %24 = arith.index_cast %23 : index to i32
        %25 = kernel.splat %24 : (i32) -> vector<16xi32>
        %26 = arith.cmpi slt, %8, %25 : vector<16xi32>
        %27 = kernel.for %28 = %5 to %6 step %7 iter_args(%29 = %4) -> (vector<16xf32>) {
          %30 = arith.muli %28, %2 : index
          %31 = arith.addi %22, %30 : index
          %32 = kernel.load %arg0_1[%31] (where %26) : vector<16xf32>
          %33 = arith.addf %29, %32 : vector<16xf32>
          kernel.yield %33 : vector<16xf32>
        }
        kernel.store %27, %0[%22] (where %26) : vector<16xf32>
        kernel.yield
      }
      kernel.yield
    } else {
      kernel.yield
    }
    kernel.return
  }
}

