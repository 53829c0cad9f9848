// The pass narrow-integers: on a GPU integers of 64 bits have 32 where these hold them.
// RUN: --narrow-integers --target=sm_90
// VALUES: narrow-integers

// What is made of positions is as large as their extents; what is stored is wide.
func.func @positions(%x: tensor<[4] x f32, strides [1], "cuda:0">) -> (tensor<[4, 7] x f32, strides [7, 1], "cuda:0">, tensor<[4, 7] x i64, strides [7, 1], "cuda:0">) attributes {level = "loop"} {
  %y, %z = loop.compute par(i0: 4, i1: 7) -> map, map {
    %a = loop.read %x[i0] : f32
    %i = loop.index {expression = #sym<i0>} : index
    %j = loop.index {expression = #sym<i1>} : index
    %ci = arith.index_cast %i : index to i64
    %cj = arith.index_cast %j : index to i64
    %d = arith.subi %cj, %ci : i64
    %p = math.absi %d : i64
    %f = arith.sitofp %p : i64 to f32
    %zero = arith.constant 0 : i64
    %c = arith.cmpi sgt, %d, %zero : i64
    %g = arith.mulf %f, %a : f32
    %s = arith.select %c, %g, %a : f32
    loop.yield %s, %d
  } : tensor<[4, 7] x f32, strides [7, 1], "cuda:0">, tensor<[4, 7] x i64, strides [7, 1], "cuda:0">
  return %y, %z : tensor<[4, 7] x f32, strides [7, 1], "cuda:0">, tensor<[4, 7] x i64, strides [7, 1], "cuda:0">
}

// An integer that is only clamped is made of a clamped float.
func.func @clamped(%x: tensor<[9] x f32, strides [1], "cuda:0">, %t: tensor<[32] x f32, strides [1], "cuda:0">) -> tensor<[9] x f32, strides [1], "cuda:0"> attributes {level = "loop"} {
  %y = loop.compute par(i0: 9) -> map {
    %a = loop.read %x[i0] : f32
    %n = arith.fptosi %a : f32 to i64
    %eight = arith.constant 8 : i64
    %b = arith.addi %n, %eight : i64
    %zero = arith.constant 0 : i64
    %less = arith.cmpi slt, %b, %zero : i64
    %most = arith.constant 31 : i64
    %size = arith.constant 32 : i64
    %w = arith.addi %b, %size : i64
    %s = arith.select %less, %w, %b : i64
    %l = arith.maxsi %s, %zero : i64
    %h = arith.minsi %l, %most : i64
    %p = arith.index_cast %h : i64 to index
    %v = loop.read %t[%p] : f32
    loop.yield %v
  } : tensor<[9] x f32, strides [1], "cuda:0">
  return %y : tensor<[9] x f32, strides [1], "cuda:0">
}

// What is read may be anything, and a product of large numbers isn't held.
func.func @wide(%k: tensor<[5] x i64, strides [1], "cuda:0">) -> tensor<[5] x i64, strides [1], "cuda:0"> attributes {level = "loop"} {
  %y = loop.compute par(i0: 5) -> map {
    %a = loop.read %k[i0] : i64
    %i = loop.index {expression = #sym<i0>} : index
    %ci = arith.index_cast %i : index to i64
    %n = arith.constant 1000000000 : i64
    %b = arith.muli %ci, %n : i64
    %c = arith.addi %a, %b : i64
    loop.yield %c
  } : tensor<[5] x i64, strides [1], "cuda:0">
  return %y : tensor<[5] x i64, strides [1], "cuda:0">
}

// The place of an interpolation is as large as its axis says, and its float isn't clamped.
func.func @interpolated(%t: tensor<[24] x f32, strides [1], "cuda:0">) -> tensor<[48] x f32, strides [1], "cuda:0"> attributes {level = "loop"} {
  %y = loop.compute par(i0: 48) -> map {
    %i = loop.index {expression = #sym<i0>} : index
    %c = arith.index_cast %i : index to i64
    %f = arith.sitofp %c : i64 to f32
    %half = arith.constant 0.5 : f32
    %a = arith.addf %f, %half : f32
    %m = arith.mulf %a, %half : f32
    %d = arith.subf %m, %half : f32
    %zero = arith.constant 0.0 : f32
    %e = arith.maximumf %d, %zero : f32
    %n = arith.fptosi %e : f32 to i64
    %last = arith.constant 23 : i64
    %s = arith.minsi %n, %last : i64
    %p = arith.index_cast %s : i64 to index
    %v = loop.read %t[%p] : f32
    loop.yield %v
  } : tensor<[48] x f32, strides [1], "cuda:0">
  return %y : tensor<[48] x f32, strides [1], "cuda:0">
}

// A float of data is an integer of 32 bits where it is chosen only where these hold it.
func.func @sampled(%x: tensor<[9] x f32, strides [1], "cuda:0">, %t: tensor<[48] x f32, strides [1], "cuda:0">) -> tensor<[9] x f32, strides [1], "cuda:0"> attributes {level = "loop"} {
  %y = loop.compute par(i0: 9) -> map {
    %f = loop.read %x[i0] : f32
    %zero = arith.constant 0.0 : f32
    %size = arith.constant 48.0 : f32
    %g = arith.cmpf oge, %f, %zero : f32
    %h = arith.cmpf olt, %f, %size : f32
    %b = arith.andi %g, %h : i1
    %n = arith.fptosi %f : f32 to i64
    %c0 = arith.constant 0 : i64
    %s = arith.select %b, %n, %c0 : i64
    %p = arith.index_cast %s : i64 to index
    %v = loop.read %t[%p] : f32
    loop.yield %v
  } : tensor<[9] x f32, strides [1], "cuda:0">
  return %y : tensor<[9] x f32, strides [1], "cuda:0">
}

// CHECK: builtin.module attributes {irc.target = #irc.target<sm_90>} {
// CHECK-NEXT:   func.func @positions(%x: tensor<[4] x f32, strides [1], "cuda:0">) -> (tensor<[4, 7] x f32, strides [7, 1], "cuda:0">, tensor<[4, 7] x i64, strides [7, 1], "cuda:0">) attributes {level = "loop"} {
// CHECK-NEXT:     %y, %z = loop.compute par(i0: 4, i1: 7) -> map, map {
// CHECK-NEXT:       %a = loop.read %x[i0] : f32
// CHECK-NEXT:       %i = loop.index {expression = #sym<i0>} : index
// CHECK-NEXT:       %j = loop.index {expression = #sym<i1>} : index
// CHECK-NEXT:       %0 = arith.index_cast %i : index to i32
// CHECK-NEXT:       %1 = arith.index_cast %j : index to i32
// CHECK-NEXT:       %2 = arith.subi %1, %0 : i32
// CHECK-NEXT:       %3 = math.absi %2 : i32
// CHECK-NEXT:       %f = arith.sitofp %3 : i32 to f32
// CHECK-NEXT:       %4 = arith.constant 0 : i32
// CHECK-NEXT:       %c = arith.cmpi sgt, %2, %4 : i32
// CHECK-NEXT:       %g = arith.mulf %f, %a : f32
// CHECK-NEXT:       %s = arith.select %c, %g, %a : f32
// CHECK-NEXT:       %5 = arith.extsi %2 : i32 to i64
// CHECK-NEXT:       loop.yield %s, %5
// CHECK-NEXT:     } : tensor<[4, 7] x f32, strides [7, 1], "cuda:0">, tensor<[4, 7] x i64, strides [7, 1], "cuda:0">
// CHECK-NEXT:     return %y, %z : tensor<[4, 7] x f32, strides [7, 1], "cuda:0">, tensor<[4, 7] x i64, strides [7, 1], "cuda:0">
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @clamped(%x: tensor<[9] x f32, strides [1], "cuda:0">, %t: tensor<[32] x f32, strides [1], "cuda:0">) -> tensor<[9] x f32, strides [1], "cuda:0"> attributes {level = "loop"} {
// CHECK-NEXT:     %y = loop.compute par(i0: 9) -> map {
// CHECK-NEXT:       %a = loop.read %x[i0] : f32
// CHECK-NEXT:       %0 = arith.constant -40.0 : f32
// CHECK-NEXT:       %1 = arith.maxnumf %a, %0 : f32
// CHECK-NEXT:       %2 = arith.constant 23.0 : f32
// CHECK-NEXT:       %3 = arith.minnumf %1, %2 : f32
// CHECK-NEXT:       %4 = arith.fptosi %3 : f32 to i32
// CHECK-NEXT:       %5 = arith.constant 8 : i32
// CHECK-NEXT:       %6 = arith.addi %4, %5 : i32
// CHECK-NEXT:       %7 = arith.constant 0 : i32
// CHECK-NEXT:       %less = arith.cmpi slt, %6, %7 : i32
// CHECK-NEXT:       %8 = arith.constant 31 : i32
// CHECK-NEXT:       %9 = arith.constant 32 : i32
// CHECK-NEXT:       %10 = arith.addi %6, %9 : i32
// CHECK-NEXT:       %11 = arith.select %less, %10, %6 : i32
// CHECK-NEXT:       %12 = arith.maxsi %11, %7 : i32
// CHECK-NEXT:       %13 = arith.minsi %12, %8 : i32
// CHECK-NEXT:       %p = arith.index_cast %13 : i32 to index
// CHECK-NEXT:       %v = loop.read %t[%p] : f32
// CHECK-NEXT:       loop.yield %v
// CHECK-NEXT:     } : tensor<[9] x f32, strides [1], "cuda:0">
// CHECK-NEXT:     return %y : tensor<[9] x f32, strides [1], "cuda:0">
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @wide(%k: tensor<[5] x i64, strides [1], "cuda:0">) -> tensor<[5] x i64, strides [1], "cuda:0"> attributes {level = "loop"} {
// CHECK-NEXT:     %y = loop.compute par(i0: 5) -> map {
// CHECK-NEXT:       %a = loop.read %k[i0] : i64
// CHECK-NEXT:       %i = loop.index {expression = #sym<i0>} : index
// CHECK-NEXT:       %ci = arith.index_cast %i : index to i64
// CHECK-NEXT:       %n = arith.constant 1000000000 : i64
// CHECK-NEXT:       %b = arith.muli %ci, %n : i64
// CHECK-NEXT:       %c = arith.addi %a, %b : i64
// CHECK-NEXT:       loop.yield %c
// CHECK-NEXT:     } : tensor<[5] x i64, strides [1], "cuda:0">
// CHECK-NEXT:     return %y : tensor<[5] x i64, strides [1], "cuda:0">
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @interpolated(%t: tensor<[24] x f32, strides [1], "cuda:0">) -> tensor<[48] x f32, strides [1], "cuda:0"> attributes {level = "loop"} {
// CHECK-NEXT:     %y = loop.compute par(i0: 48) -> map {
// CHECK-NEXT:       %i = loop.index {expression = #sym<i0>} : index
// CHECK-NEXT:       %0 = arith.index_cast %i : index to i32
// CHECK-NEXT:       %f = arith.sitofp %0 : i32 to f32
// CHECK-NEXT:       %half = arith.constant 0.5 : f32
// CHECK-NEXT:       %a = arith.addf %f, %half : f32
// CHECK-NEXT:       %m = arith.mulf %a, %half : f32
// CHECK-NEXT:       %d = arith.subf %m, %half : f32
// CHECK-NEXT:       %zero = arith.constant 0.0 : f32
// CHECK-NEXT:       %e = arith.maximumf %d, %zero : f32
// CHECK-NEXT:       %1 = arith.fptosi %e : f32 to i32
// CHECK-NEXT:       %2 = arith.constant 23 : i32
// CHECK-NEXT:       %3 = arith.minsi %1, %2 : i32
// CHECK-NEXT:       %p = arith.index_cast %3 : i32 to index
// CHECK-NEXT:       %v = loop.read %t[%p] : f32
// CHECK-NEXT:       loop.yield %v
// CHECK-NEXT:     } : tensor<[48] x f32, strides [1], "cuda:0">
// CHECK-NEXT:     return %y : tensor<[48] x f32, strides [1], "cuda:0">
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @sampled(%x: tensor<[9] x f32, strides [1], "cuda:0">, %t: tensor<[48] x f32, strides [1], "cuda:0">) -> tensor<[9] x f32, strides [1], "cuda:0"> attributes {level = "loop"} {
// CHECK-NEXT:     %y = loop.compute par(i0: 9) -> map {
// CHECK-NEXT:       %f = loop.read %x[i0] : f32
// CHECK-NEXT:       %zero = arith.constant 0.0 : f32
// CHECK-NEXT:       %size = arith.constant 48.0 : f32
// CHECK-NEXT:       %g = arith.cmpf oge, %f, %zero : f32
// CHECK-NEXT:       %h = arith.cmpf olt, %f, %size : f32
// CHECK-NEXT:       %b = arith.andi %g, %h : i1
// CHECK-NEXT:       %0 = arith.constant 0 : i32
// CHECK-NEXT:       %1 = arith.fptosi %f : f32 to i32
// CHECK-NEXT:       %2 = arith.select %b, %1, %0 : i32
// CHECK-NEXT:       %p = arith.index_cast %2 : i32 to index
// CHECK-NEXT:       %v = loop.read %t[%p] : f32
// CHECK-NEXT:       loop.yield %v
// CHECK-NEXT:     } : tensor<[9] x f32, strides [1], "cuda:0">
// CHECK-NEXT:     return %y : tensor<[9] x f32, strides [1], "cuda:0">
// CHECK-NEXT:   }
// CHECK-NEXT: }
