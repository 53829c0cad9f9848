builtin.module {
  func.func @main(%arg0_1: tensor<[5, 77] x f32, strides [77, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>, irc.strides = #sym.dims<[77, 1]>}, %arg1_1: tensor<[3] x i64, strides [1]> {irc.kind = "input", irc.name = "arg1", irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}, %arg2_1: tensor<[77] x f32, strides [1]> {irc.kind = "input", irc.name = "arg2", irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}) -> (tensor<[3, 77] x f32, strides [77, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[77, 1]>}) attributes {level = "loop"} {
    %0 = loop.compute par(i0: 3) -> map {
      %1 = arith.constant 0 : i64
      loop.yield %1
    } : tensor<[3] x i64, strides [1]>
    %2 = loop.compute par(i0: 3) -> map {
      %3 = loop.read %arg1_1[i0] : i64
      %4 = loop.read %0[i0] : i64
      %5 = arith.cmpi slt, %3, %4 : i64
      loop.yield %5
    } : tensor<[3] x i1, strides [1]>
    %6 = loop.compute par(i0: 3) -> map {
      %7 = arith.constant 5 : i64
      loop.yield %7
    } : tensor<[3] x i64, strides [1]>
    %8 = loop.compute par(i0: 3) -> map {
      %9 = loop.read %arg1_1[i0] : i64
      %10 = loop.read %6[i0] : i64
      %11 = arith.addi %9, %10 : i64
      loop.yield %11
    } : tensor<[3] x i64, strides [1]>
    %12 = loop.compute par(i0: 3) -> map {
      %13 = loop.read %2[i0] : i1
      %14 = loop.read %8[i0] : i64
      %15 = loop.read %arg1_1[i0] : i64
      %16 = arith.select %13, %14, %15 : i64
      loop.yield %16
    } : tensor<[3] x i64, strides [1]>
    %17 = loop.compute red(i0: 3) -> reduce(all, i1) {
      %18 = loop.read %12[i0] : i64
      %19 = arith.index_cast %18 : i64 to index
      %20 = arith.constant 0 : index
      %21 = arith.cmpi sge, %19, %20 : index
      %22 = arith.constant 5 : index
      %23 = arith.cmpi slt, %19, %22 : index
      %24 = arith.andi %21, %23 : i1
      loop.yield %24
    } : tensor<[] x i1, strides []>
    %25 = graph.item %17 : (tensor<[] x i1, strides []>) -> i1
    sym.assert_value %25 {error = "IndexError", message = "index out of bounds for dimension 0 with size 5"} : (i1)
    %index = loop.compute par(i0: 3, i1: 77) -> map {
      %26 = loop.read %12[i0] : i64
      %27 = arith.index_cast %26 : i64 to index
      %28 = loop.read %arg0_1[%27, i1] : f32
      loop.yield %28
    } : tensor<[3, 77] x f32, strides [77, 1]>
    %29 = loop.compute par(i0: 3, i1: 77) -> map {
      %30 = loop.read %arg2_1[i1] : f32
      loop.yield %30
    } : tensor<[3, 77] x f32, strides [77, 1]>
    %add = loop.compute par(i0: 3, i1: 77) -> map {
      %31 = loop.read %index[i0, i1] : f32
      %32 = loop.read %29[i0, i1] : f32
      %33 = arith.addf %31, %32 : f32
      loop.yield %33
    } : tensor<[3, 77] x f32, strides [77, 1]>
    %34 = loop.compute par(i0: 3) red(i1: 77) -> reduce(max, f32) {
      %35 = loop.read %add[i0, i1] : f32
      loop.yield %35
    } : tensor<[3] x f32, strides [1]>
    %36 = loop.compute par(i0: 3, i1: 1) -> map {
      %37 = loop.read %34[i0] : f32
      loop.yield %37
    } : tensor<[3, 1] x f32, strides [1, 1]>
    %38 = loop.compute par(i0: 3, i1: 77) -> map {
      %39 = loop.read %36[i0, 0] : f32
      loop.yield %39
    } : tensor<[3, 77] x f32, strides [77, 1]>
    %40 = loop.compute par(i0: 3, i1: 77) -> map {
      %41 = loop.read %add[i0, i1] : f32
      %42 = loop.read %38[i0, i1] : f32
      %43 = arith.subf %41, %42 : f32
      loop.yield %43
    } : tensor<[3, 77] x f32, strides [77, 1]>
    %44 = loop.compute par(i0: 3, i1: 77) -> map {
      %45 = loop.read %40[i0, i1] : f32
      %46 = math.exp %45 : f32
      loop.yield %46
    } : tensor<[3, 77] x f32, strides [77, 1]>
    %47 = loop.compute par(i0: 3) red(i1: 77) -> reduce(sum, f32) {
      %48 = loop.read %44[i0, i1] : f32
      loop.yield %48
    } : tensor<[3] x f32, strides [1]>
    %49 = loop.compute par(i0: 3, i1: 1) -> map {
      %50 = loop.read %47[i0] : f32
      loop.yield %50
    } : tensor<[3, 1] x f32, strides [1, 1]>
    %51 = loop.compute par(i0: 3, i1: 77) -> map {
      %52 = loop.read %49[i0, 0] : f32
      loop.yield %52
    } : tensor<[3, 77] x f32, strides [77, 1]>
    %_softmax = loop.compute par(i0: 3, i1: 77) -> map {
      %53 = loop.read %44[i0, i1] : f32
      %54 = loop.read %51[i0, i1] : f32
      %55 = arith.divf %53, %54 : f32
      loop.yield %55
    } : tensor<[3, 77] x f32, strides [77, 1]>
    return %_softmax : tensor<[3, 77] x f32, strides [77, 1]>
  }
}

