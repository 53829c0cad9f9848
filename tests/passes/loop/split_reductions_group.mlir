// The parts of a sum in a group move out of it, and with them the array that they store as well.
// RUN: --split-reductions='min_points=512 parts=4'
// VALUES: split-reductions{min_points=512 parts=4}

func.func @main(%x: tensor<[64, 16] x f32, strides [16, 1]>) -> (tensor<[64, 16] x f32, strides [16, 1]>, tensor<[] x f32, strides []>) attributes {level = "loop"} {
  %y, %r = loop.group () {
    %n, %s = loop.compute red(i0: 64, i1: 16) -> map, reduce(sum, f32) {
      %a = loop.read %x[i0, i1] : f32
      %b = arith.negf %a : f32
      loop.yield %b, %b
    } : tensor<[64, 16] x f32, strides [16, 1]>, tensor<[] x f32, strides []>
    %q = loop.compute -> map {
      %c = loop.read %s[] : f32
      %d = math.exp %c : f32
      loop.yield %d
    } : tensor<[] x f32, strides []>
    loop.yield %n, %q
  } : tensor<[64, 16] x f32, strides [16, 1]>, tensor<[] x f32, strides []>
  func.return %y, %r : tensor<[64, 16] x f32, strides [16, 1]>, tensor<[] x f32, strides []>
}

// CHECK: builtin.module {
// CHECK-NEXT:   func.func @main(%x: tensor<[64, 16] x f32, strides [16, 1]>) -> (tensor<[64, 16] x f32, strides [16, 1]>, tensor<[] x f32, strides []>) attributes {level = "loop"} {
// CHECK-NEXT:     %y, %r = loop.group () {
// CHECK-NEXT:       %n, %s = loop.compute red(i0: 64, i1: 16) -> map, reduce(sum, f32) {
// CHECK-NEXT:         %a = loop.read %x[i0, i1] : f32
// CHECK-NEXT:         %b = arith.negf %a : f32
// CHECK-NEXT:         loop.yield %b, %b
// CHECK-NEXT:       } : tensor<[64, 16] x f32, strides [16, 1]>, tensor<[] x f32, strides []>
// CHECK-NEXT:       %q = loop.compute -> map {
// CHECK-NEXT:         %c = loop.read %s[] : f32
// CHECK-NEXT:         %d = math.exp %c : f32
// CHECK-NEXT:         loop.yield %d
// CHECK-NEXT:       } : tensor<[] x f32, strides []>
// CHECK-NEXT:       loop.yield %n, %q
// CHECK-NEXT:     } : tensor<[64, 16] x f32, strides [16, 1]>, tensor<[] x f32, strides []>
// CHECK-NEXT:     func.return %y, %r : tensor<[64, 16] x f32, strides [16, 1]>, tensor<[] x f32, strides []>
// CHECK-NEXT:   }
// CHECK-NEXT: }
