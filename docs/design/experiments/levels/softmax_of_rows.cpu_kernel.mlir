builtin.module {
  func.func @main(%arg0_1: tensor<[5, 77] x f32, strides [77, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>, irc.strides = #sym.dims<[77, 1]>}, %arg1_1: tensor<[3] x i64, strides [1]> {irc.kind = "input", irc.name = "arg1", irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}, %arg2_1: tensor<[77] x f32, strides [1]> {irc.kind = "input", irc.name = "arg2", irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}) -> (tensor<[3, 77] x f32, strides [77, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[77, 1]>}) attributes {level = "loop"} {
    %0 = host.launch %arg1_1 {callee = @k0} : (tensor<[3] x i64, strides [1]>) -> tensor<[] x i1, strides []>
    %1 = graph.item %0 : (tensor<[] x i1, strides []>) -> i1
    sym.assert_value %1 {error = "IndexError", message = "index out of bounds for dimension 0 with size 5"} : (i1)
    %_softmax = host.launch %arg1_1, %arg0_1, %arg2_1 {callee = @k1} : (tensor<[3] x i64, strides [1]>, tensor<[5, 77] x f32, strides [77, 1]>, tensor<[77] x f32, strides [1]>) -> tensor<[3, 77] x f32, strides [77, 1]>
    return %_softmax : tensor<[3, 77] x f32, strides [77, 1]>
  }
  kernel.func @k0(%arg1_1: !kernel.ptr<i64>, %0: !kernel.ptr<i1>, %begin: index, %end: index) attributes {grid = #sym<1>, outputs = array<i64: 1>, symbols = [], target = "cpu", work = #sym<15>} {
    %1 = arith.constant 0 : i64
    %2 = arith.constant 5 : i64
    %3 = arith.constant 0 : index
    %4 = arith.constant 5 : index
    %5 = arith.constant true
    %6 = arith.constant 3 : index
    %7 = arith.constant 1 : index
    kernel.for %8 = %begin to %end step %7 {
      %9 = kernel.for %10 = %3 to %6 step %7 iter_args(%11 = %5) -> (i1) {
        %12 = kernel.load %arg1_1[%10] : i64
        %13 = arith.cmpi slt, %12, %1 : i64
        %14 = arith.addi %12, %2 : i64
        %15 = arith.select %13, %14, %12 : i64
        %16 = arith.index_cast %15 : i64 to index
        %17 = arith.cmpi sge, %16, %3 : index
        %18 = arith.cmpi slt, %16, %4 : index
        %19 = arith.andi %17, %18 : i1
        %20 = arith.andi %11, %19 : i1
        kernel.yield %20 : i1
      }
      kernel.store %9, %0[%3] : i1
      kernel.yield
    }
    kernel.return
  }
  kernel.func @k1(%arg1_1: !kernel.ptr<i64>, %arg0_1: !kernel.ptr<f32>, %arg2_1: !kernel.ptr<f32>, %0: !kernel.ptr<f32>, %begin: index, %end: index) attributes {grid = #sym<3>, outputs = array<i64: 3>, symbols = [], target = "cpu", work = #sym<2849>} {
    %1 = arith.constant 0 : i64
    %2 = arith.constant 5 : i64
    %3 = arith.constant 77 : index
    %4 = arith.constant dense<0xFF800000> : vector<16xf32>
    %5 = arith.constant 16 : index
    %6 = arith.constant 32 : index
    %7 = arith.constant 48 : index
    %8 = arith.constant 0 : index
    %9 = arith.constant dense<13> : vector<16xi32>
    %10 = kernel.iota : vector<16xi32>
    %11 = arith.constant 64 : index
    %12 = arith.constant dense<0.0> : vector<16xf32>
    %13 = arith.constant 1 : index
    %14 = kernel.scratch {count = 77 : i64} : !kernel.ptr<f32>
    %15 = kernel.scratch {count = 77 : i64} : !kernel.ptr<f32>
    kernel.for %16 = %begin to %end step %13 {
      %17 = kernel.load %arg1_1[%16] : i64
      %18 = arith.cmpi slt, %17, %1 : i64
      %19 = arith.addi %17, %2 : i64
      %20 = arith.select %18, %19, %17 : i64
      %21 = arith.index_cast %20 : i64 to index
      %22 = kernel.splat %21 : (index) -> vector<16xindex>
      %23 = arith.muli %21, %3 : index
      %24 = kernel.load %arg0_1[%23] : vector<16xf32>
      %25 = arith.addi %23, %5 : index
      %26 = kernel.load %arg0_1[%25] : vector<16xf32>
      %27 = arith.addi %23, %6 : index
      %28 = kernel.load %arg0_1[%27] : vector<16xf32>
      %29 = arith.addi %23, %7 : index
      %30 = kernel.load %arg0_1[%29] : vector<16xf32>
      %31 = kernel.load %arg2_1[%8] : vector<16xf32>
      %32 = kernel.load %arg2_1[%5] : vector<16xf32>
      %33 = kernel.load %arg2_1[%6] : vector<16xf32>
      %34 = kernel.load %arg2_1[%7] : vector<16xf32>
      %35 = arith.addf %24, %31 : vector<16xf32>
      %36 = arith.addf %26, %32 : vector<16xf32>
      %37 = arith.addf %28, %33 : vector<16xf32>
      %38 = arith.addf %30, %34 : vector<16xf32>
      kernel.store %35, %14[%8] : vector<16xf32>
      kernel.store %36, %14[%5] : vector<16xf32>
      kernel.store %37, %14[%6] : vector<16xf32>
      kernel.store %38, %14[%7] : vector<16xf32>
      %39 = arith.maximumf %4, %35 : vector<16xf32>
      %40 = arith.maximumf %4, %36 : vector<16xf32>
      %41 = arith.maximumf %4, %37 : vector<16xf32>
      %42 = arith.maximumf %4, %38 : vector<16xf32>
      %43 = arith.cmpi slt, %10, %9 : vector<16xi32>
      %44 = arith.addi %23, %11 : index
      %45 = kernel.load %arg0_1[%44] (where %43) : vector<16xf32>
      %46 = kernel.load %arg2_1[%11] (where %43) : vector<16xf32>
      %47 = arith.addf %45, %46 : vector<16xf32>
      kernel.store %47, %14[%11] (where %43) : vector<16xf32>
      %48 = arith.maximumf %39, %47 : vector<16xf32>
      %49 = arith.select %43, %48, %39 : vector<16xi1>, vector<16xf32>
      %50 = arith.maximumf %49, %40 : vector<16xf32>
      %51 = arith.maximumf %41, %42 : vector<16xf32>
      %52 = arith.maximumf %50, %51 : vector<16xf32>
      %53 = kernel.reduce %52 {combiner = "max", dim = 0 : i64} : (vector<16xf32>) -> f32
      %54 = kernel.splat %53 : (f32) -> vector<16xf32>
      %55 = kernel.load %14[%8] : vector<16xf32>
      %56 = kernel.load %14[%5] : vector<16xf32>
      %57 = kernel.load %14[%6] : vector<16xf32>
      %58 = kernel.load %14[%7] : vector<16xf32>
      %59 = arith.subf %55, %54 : vector<16xf32>
      %60 = arith.subf %56, %54 : vector<16xf32>
      %61 = arith.subf %57, %54 : vector<16xf32>
      %62 = arith.subf %58, %54 : vector<16xf32>
      %63 = math.exp %59 : vector<16xf32>
      %64 = math.exp %60 : vector<16xf32>
      %65 = math.exp %61 : vector<16xf32>
      %66 = math.exp %62 : vector<16xf32>
      kernel.store %63, %15[%8] : vector<16xf32>
      kernel.store %64, %15[%5] : vector<16xf32>
      kernel.store %65, %15[%6] : vector<16xf32>
      kernel.store %66, %15[%7] : vector<16xf32>
      %67 = arith.addf %12, %63 : vector<16xf32>
      %68 = arith.addf %12, %64 : vector<16xf32>
      %69 = arith.addf %12, %65 : vector<16xf32>
      %70 = arith.addf %12, %66 : vector<16xf32>
      %71 = arith.cmpi slt, %10, %9 : vector<16xi32>
      %72 = kernel.load %14[%11] (where %71) : vector<16xf32>
      %73 = arith.subf %72, %54 : vector<16xf32>
      %74 = math.exp %73 : vector<16xf32>
      kernel.store %74, %15[%11] (where %71) : vector<16xf32>
      %75 = arith.addf %67, %74 : vector<16xf32>
      %76 = arith.select %71, %75, %67 : vector<16xi1>, vector<16xf32>
      %77 = arith.addf %76, %68 : vector<16xf32>
      %78 = arith.addf %69, %70 : vector<16xf32>
      %79 = arith.addf %77, %78 : vector<16xf32>
      %80 = kernel.reduce %79 {combiner = "sum", dim = 0 : i64} : (vector<16xf32>) -> f32
      %81 = kernel.splat %80 : (f32) -> vector<16xf32>
      %82 = arith.muli %16, %3 : index
      kernel.for %83 = %8 to %11 step %5 {
        %84 = kernel.load %15[%83] : vector<16xf32>
        %85 = arith.divf %84, %81 : vector<16xf32>
        %86 = arith.addi %82, %83 : index
        kernel.store %85, %0[%86] : vector<16xf32>
        kernel.yield
      }
      %87 = arith.cmpi slt, %10, %9 : vector<16xi32>
      %88 = kernel.load %15[%11] (where %87) : vector<16xf32>
      %89 = arith.divf %88, %81 : vector<16xf32>
      %90 = arith.addi %82, %11 : index
      kernel.store %89, %0[%90] (where %87) : vector<16xf32>
      kernel.yield
    }
    kernel.return
  }
}

