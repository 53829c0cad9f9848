// The pass rows-first: the quotient is made in the order of the sums that it reads, so that both
// have the sums' axis first; the caller gets a view.
// RUN: --rows-first='target=gpu min_results=4' --target=sm_90
// VALUES: rows-first{target=gpu min_results=4}

func.func @main(%x: tensor<[8, 12] x f32, strides [12, 1]>) -> tensor<[8, 12] x f32, strides [12, 1]> attributes {level = "loop"} {
  %s = loop.compute red(i0: 8) par(i1: 12) -> reduce(sum, f32) {
    %a = loop.read %x[i0, i1] : f32
    loop.yield %a
  } : tensor<[12] x f32, strides [1]>
  %y = loop.compute par(i0: 8, i1: 12) -> map {
    %b = loop.read %x[i0, i1] : f32
    %c = loop.read %s[i1] : f32
    %d = arith.subf %b, %c : f32
    loop.yield %d
  } : tensor<[8, 12] x f32, strides [12, 1]>
  return %y : tensor<[8, 12] x f32, strides [12, 1]>
}

// CHECK: builtin.module attributes {irc.target = #irc.target<sm_90>} {
// CHECK-NEXT:   func.func @main(%x: tensor<[8, 12] x f32, strides [12, 1]>) -> tensor<[8, 12] x f32, strides [12, 1]> attributes {level = "loop"} {
// CHECK-NEXT:     %s = loop.compute par(i0: 12) red(i1: 8) -> reduce(sum, f32) {
// CHECK-NEXT:       %0 = loop.read %x[i1, i0] : f32
// CHECK-NEXT:       loop.yield %0
// CHECK-NEXT:     } : tensor<[12] x f32, strides [1]>
// CHECK-NEXT:     %y = loop.compute par(i0: 12, i1: 8) -> map {
// CHECK-NEXT:       %1 = loop.read %x[i1, i0] : f32
// CHECK-NEXT:       %2 = loop.read %s[i0] : f32
// CHECK-NEXT:       %3 = arith.subf %1, %2 : f32
// CHECK-NEXT:       loop.yield %3
// CHECK-NEXT:     } : tensor<[12, 8] x f32, strides [1, 12]>
// CHECK-NEXT:     %4 = layout.view %y {offset = #sym<0>} : (tensor<[12, 8] x f32, strides [1, 12]>) -> tensor<[8, 12] x f32, strides [12, 1]>
// CHECK-NEXT:     return %4 : tensor<[8, 12] x f32, strides [12, 1]>
// CHECK-NEXT:   }
// CHECK-NEXT: }
