// The pass attach-checks: the kernel that reads at the indices says for each of them whether it is
// in range, and reads at 0 where it is not.
// RUN: --attach-checks --target=avx2
// VALUES: attach-checks

func.func @main(%x: tensor<[40, 16] x f32, strides [16, 1]>, %k: tensor<[8] x i64, strides [1]>) -> tensor<[8, 16] x f32, strides [16, 1]> attributes {level = "loop"} {
  %ok = loop.compute red(i0: 8) -> reduce(all, i1) {
    %a = loop.read %k[i0] : i64
    %b = arith.constant 40 : i64
    %c = arith.cmpi ult, %a, %b : i64
    loop.yield %c
  } : tensor<[] x i1, strides []>
  %t = graph.item %ok : (tensor<[] x i1, strides []>) -> i1
  sym.assert_value %t {error = "IndexError", message = "index out of bounds"} : (i1)
  %y = loop.compute par(i0: 8, i1: 16) -> map {
    %d = loop.read %k[i0] : i64
    %e = arith.index_cast %d : i64 to index
    %f = loop.read %x[%e, i1] : f32
    loop.yield %f
  } : tensor<[8, 16] x f32, strides [16, 1]>
  return %y : tensor<[8, 16] x f32, strides [16, 1]>
}

// CHECK: builtin.module attributes {irc.target = #irc.target<avx2>} {
// CHECK-NEXT:   func.func @main(%x: tensor<[40, 16] x f32, strides [16, 1]>, %k: tensor<[8] x i64, strides [1]>) -> tensor<[8, 16] x f32, strides [16, 1]> attributes {level = "loop"} {
// CHECK-NEXT:     %ok, %y = loop.group (i0: 8) {
// CHECK-NEXT:       %ok_0 = loop.compute par(i0: 8) -> map {
// CHECK-NEXT:         %0 = loop.read %k[i0] : i64
// CHECK-NEXT:         %1 = arith.constant 40 : i64
// CHECK-NEXT:         %2 = arith.cmpi ult, %0, %1 : i64
// CHECK-NEXT:         loop.yield %2
// CHECK-NEXT:       } : tensor<[8] x i1, strides [1]>
// CHECK-NEXT:       %y_0 = loop.compute par(i0: 8, i1: 16) -> map {
// CHECK-NEXT:         %d = loop.read %k[i0] : i64
// CHECK-NEXT:         %e = arith.index_cast %d : i64 to index
// CHECK-NEXT:         %3 = arith.constant 0 : index
// CHECK-NEXT:         %4 = arith.cmpi sge, %e, %3 : index
// CHECK-NEXT:         %5 = arith.constant 40 : index
// CHECK-NEXT:         %6 = arith.cmpi slt, %e, %5 : index
// CHECK-NEXT:         %7 = arith.andi %4, %6 : i1
// CHECK-NEXT:         %8 = arith.select %7, %e, %3 : index
// CHECK-NEXT:         %f = loop.read %x[%8, i1] : f32
// CHECK-NEXT:         loop.yield %f
// CHECK-NEXT:       } : tensor<[8, 16] x f32, strides [16, 1]>
// CHECK-NEXT:       loop.yield %ok_0, %y_0
// CHECK-NEXT:     } : tensor<[8] x i1, strides [1]>, tensor<[8, 16] x f32, strides [16, 1]>
// CHECK-NEXT:     %t = graph.item %ok {every} : (tensor<[8] x i1, strides [1]>) -> i1
// CHECK-NEXT:     sym.assert_value %t {error = "IndexError", message = "index out of bounds"} : (i1)
// CHECK-NEXT:     return %y : tensor<[8, 16] x f32, strides [16, 1]>
// CHECK-NEXT:   }
// CHECK-NEXT: }
