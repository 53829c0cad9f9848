builtin.module {
  func.func @main(%arg0_1: tensor<[5, 77] x f32, strides [77, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>, irc.strides = #sym.dims<[77, 1]>}, %arg1_1: tensor<[3] x i64, strides [1]> {irc.kind = "input", irc.name = "arg1", irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}, %arg2_1: tensor<[77] x f32, strides [1]> {irc.kind = "input", irc.name = "arg2", irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}) -> (tensor<[3, 77] x f32, strides [77, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[77, 1]>}) attributes {level = "loop"} {
    %0 = loop.compute red(i0: 3) -> reduce(all, i1) {
      %1 = loop.read %arg1_1[i0] : i64
      %2 = arith.constant 0 : i64
      %3 = arith.cmpi slt, %1, %2 : i64
      %4 = arith.constant 5 : i64
      %5 = arith.addi %1, %4 : i64
      %6 = arith.select %3, %5, %1 : i64
      %7 = arith.index_cast %6 : i64 to index
      %8 = arith.constant 0 : index
      %9 = arith.cmpi sge, %7, %8 : index
      %10 = arith.constant 5 : index
      %11 = arith.cmpi slt, %7, %10 : index
      %12 = arith.andi %9, %11 : i1
      loop.yield %12
    } : tensor<[] x i1, strides []>
    %13 = graph.item %0 : (tensor<[] x i1, strides []>) -> i1
    sym.assert_value %13 {error = "IndexError", message = "index out of bounds for dimension 0 with size 5"} : (i1)
    %_softmax = loop.group (i0: 3) {
      %add, %14 = loop.compute par(i0: 3) red(i1: 77) -> map, reduce(max, f32) {
        %15 = loop.read %arg1_1[i0] : i64
        %16 = arith.constant 0 : i64
        %17 = arith.cmpi slt, %15, %16 : i64
        %18 = arith.constant 5 : i64
        %19 = arith.addi %15, %18 : i64
        %20 = arith.select %17, %19, %15 : i64
        %21 = arith.index_cast %20 : i64 to index
        %22 = loop.read %arg0_1[%21, i1] : f32
        %23 = loop.read %arg2_1[i1] : f32
        %24 = arith.addf %22, %23 : f32
        loop.yield %24, %24
      } : tensor<[3, 77] x f32, strides [77, 1]>, tensor<[3] x f32, strides [1]>
      %25, %26 = loop.compute par(i0: 3) red(i1: 77) -> map, reduce(sum, f32) {
        %27 = loop.read %add[i0, i1] : f32
        %28 = loop.read %14[i0] : f32
        %29 = arith.subf %27, %28 : f32
        %30 = math.exp %29 : f32
        loop.yield %30, %30
      } : tensor<[3, 77] x f32, strides [77, 1]>, tensor<[3] x f32, strides [1]>
      %_softmax_0 = loop.compute par(i0: 3, i1: 77) -> map {
        %31 = loop.read %25[i0, i1] : f32
        %32 = loop.read %26[i0] : f32
        %33 = arith.divf %31, %32 : f32
        loop.yield %33
      } : tensor<[3, 77] x f32, strides [77, 1]>
      loop.yield %_softmax_0
    } : tensor<[3, 77] x f32, strides [77, 1]>
    return %_softmax : tensor<[3, 77] x f32, strides [77, 1]>
  }
}

