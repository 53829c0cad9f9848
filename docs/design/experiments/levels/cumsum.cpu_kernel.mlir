builtin.module {
  func.func @main(%arg0_1: tensor<[3, 45] x f32, strides [45, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>, irc.strides = #sym.dims<[45, 1]>}) -> (tensor<[3, 45] x f32, strides [45, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[45, 1]>}) attributes {level = "loop"} {
    %cumsum = host.launch %arg0_1 {callee = @k0} : (tensor<[3, 45] x f32, strides [45, 1]>) -> tensor<[3, 45] x f32, strides [45, 1]>
    return %cumsum : tensor<[3, 45] x f32, strides [45, 1]>
  }
  kernel.func @k0(%arg0_1: !kernel.ptr<f32>, %0: !kernel.ptr<f32>, %begin: index, %end: index) attributes {grid = #sym<3>, inplace = array<i64: 0, 1>, outputs = array<i64: 1>, symbols = [], target = "cpu", work = #sym<180>} {
    %1 = arith.constant 45 : index
    %2 = arith.constant 0.0 : f32
    %3 = arith.constant 0 : index
    %4 = arith.constant 1 : index
    kernel.for %5 = %begin to %end step %4 {
      %6 = arith.muli %5, %1 : index
      %7 = kernel.for %8 = %3 to %1 step %4 iter_args(%9 = %2) -> (f32) {
        %10 = arith.addi %6, %8 : index
        %11 = kernel.load %arg0_1[%10] : f32
        %12 = arith.addf %9, %11 : f32
        kernel.store %12, %0[%10] : f32
        kernel.yield %12 : f32
      }
      kernel.yield
    }
    kernel.return
  }
}

