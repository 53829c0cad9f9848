// The pass elide-rounding: a value that is narrowed and widened again keeps its wide value.
// RUN: --elide-rounding --target=avx2
// VALUES: elide-rounding

func.func @main(%x: tensor<[4] x bf16, strides [1]>) -> tensor<[4] x bf16, strides [1]> attributes {level = "loop"} {
  %y = loop.compute par(i0: 4) -> map {
    %a = loop.read %x[i0] : bf16
    %w = arith.extf %a : bf16 to f32
    %e = math.exp %w : f32
    %n = arith.truncf %e : f32 to bf16
    %v = arith.extf %n : bf16 to f32
    %z = arith.mulf %v, %v : f32
    %r = arith.truncf %z : f32 to bf16
    loop.yield %r
  } : tensor<[4] x bf16, strides [1]>
  return %y : tensor<[4] x bf16, strides [1]>
}

// A rounded value that is chosen or not is widened before the choice.
func.func @choice(%x: tensor<[4] x bf16, strides [1]>) -> tensor<[4] x bf16, strides [1]> attributes {level = "loop"} {
  %y = loop.compute par(i0: 4) -> map {
    %a = loop.read %x[i0] : bf16
    %w = arith.extf %a : bf16 to f32
    %e = math.exp %w : f32
    %n = arith.truncf %e : f32 to bf16
    %zero = arith.constant 0.0 : f32
    %c = arith.cmpf olt, %w, %zero : f32
    %s = arith.select %c, %a, %n : bf16
    %v = arith.extf %s : bf16 to f32
    %z = arith.mulf %v, %v : f32
    %r = arith.truncf %z : f32 to bf16
    loop.yield %r
  } : tensor<[4] x bf16, strides [1]>
  return %y : tensor<[4] x bf16, strides [1]>
}

// A copy of a rounding whose result is stored stays, and all that is computed from it is rounded.
func.func @stored(%x: tensor<[4] x f32, strides [1]>) -> (tensor<[4] x bf16, strides [1]>, tensor<[4] x f32, strides [1]>, tensor<[4] x f32, strides [1]>) attributes {level = "loop"} {
  %y, %u, %v = loop.group (i0: 4) {
    %y_0, %u_0 = loop.compute par(i0: 4) -> map, map {
      %a = loop.read %x[i0] : f32
      %e = math.exp %a : f32
      %n = arith.truncf %e {rounding = 0 : i64} : f32 to bf16
      %w = arith.extf %n : bf16 to f32
      loop.yield %n, %w
    } : tensor<[4] x bf16, strides [1]>, tensor<[4] x f32, strides [1]>
    %v_0 = loop.compute par(i0: 4) -> map {
      %a = loop.read %x[i0] : f32
      %e = math.exp %a : f32
      %n = arith.truncf %e {rounding = 0 : i64} : f32 to bf16
      %w = arith.extf %n : bf16 to f32
      %s = math.sqrt %a : f32
      %m = arith.truncf %s {rounding = 1 : i64} : f32 to bf16
      %t = arith.extf %m : bf16 to f32
      %z = arith.addf %w, %t : f32
      loop.yield %z
    } : tensor<[4] x f32, strides [1]>
    loop.yield %y_0, %u_0, %v_0
  } : tensor<[4] x bf16, strides [1]>, tensor<[4] x f32, strides [1]>, tensor<[4] x f32, strides [1]>
  return %y, %u, %v : tensor<[4] x bf16, strides [1]>, tensor<[4] x f32, strides [1]>, tensor<[4] x f32, strides [1]>
}

// What only members of the group read, all widening it, is stored nowhere.
func.func @local(%x: tensor<[4] x f32, strides [1]>) -> tensor<[4] x f32, strides [1]> attributes {level = "loop"} {
  %v = loop.group (i0: 4) {
    %y_0 = loop.compute par(i0: 4) -> map {
      %a = loop.read %x[i0] : f32
      %e = math.exp %a : f32
      %n = arith.truncf %e {rounding = 0 : i64} : f32 to bf16
      loop.yield %n
    } : tensor<[4] x bf16, strides [1]>
    %v_0 = loop.compute par(i0: 4) -> map {
      %n = loop.read %y_0[i0] : bf16
      %w = arith.extf %n : bf16 to f32
      loop.yield %w
    } : tensor<[4] x f32, strides [1]>
    loop.yield %v_0
  } : tensor<[4] x f32, strides [1]>
  return %v : tensor<[4] x f32, strides [1]>
}

// CHECK: builtin.module attributes {irc.target = #irc.target<avx2>} {
// CHECK-NEXT:   func.func @main(%x: tensor<[4] x bf16, strides [1]>) -> tensor<[4] x bf16, strides [1]> attributes {level = "loop"} {
// CHECK-NEXT:     %y = loop.compute par(i0: 4) -> map {
// CHECK-NEXT:       %a = loop.read %x[i0] : bf16
// CHECK-NEXT:       %w = arith.extf %a : bf16 to f32
// CHECK-NEXT:       %e = math.exp %w : f32
// CHECK-NEXT:       %z = arith.mulf %e, %e : f32
// CHECK-NEXT:       %r = arith.truncf %z : f32 to bf16
// CHECK-NEXT:       loop.yield %r
// CHECK-NEXT:     } : tensor<[4] x bf16, strides [1]>
// CHECK-NEXT:     return %y : tensor<[4] x bf16, strides [1]>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @choice(%x: tensor<[4] x bf16, strides [1]>) -> tensor<[4] x bf16, strides [1]> attributes {level = "loop"} {
// CHECK-NEXT:     %y = loop.compute par(i0: 4) -> map {
// CHECK-NEXT:       %a = loop.read %x[i0] : bf16
// CHECK-NEXT:       %w = arith.extf %a : bf16 to f32
// CHECK-NEXT:       %e = math.exp %w : f32
// CHECK-NEXT:       %zero = arith.constant 0.0 : f32
// CHECK-NEXT:       %c = arith.cmpf olt, %w, %zero : f32
// CHECK-NEXT:       %v = arith.select %c, %w, %e : f32
// CHECK-NEXT:       %z = arith.mulf %v, %v : f32
// CHECK-NEXT:       %r = arith.truncf %z : f32 to bf16
// CHECK-NEXT:       loop.yield %r
// CHECK-NEXT:     } : tensor<[4] x bf16, strides [1]>
// CHECK-NEXT:     return %y : tensor<[4] x bf16, strides [1]>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @stored(%x: tensor<[4] x f32, strides [1]>) -> (tensor<[4] x bf16, strides [1]>, tensor<[4] x f32, strides [1]>, tensor<[4] x f32, strides [1]>) attributes {level = "loop"} {
// CHECK-NEXT:     %y, %u, %v = loop.group (i0: 4) {
// CHECK-NEXT:       %y_0, %u_0 = loop.compute par(i0: 4) -> map, map {
// CHECK-NEXT:         %a = loop.read %x[i0] : f32
// CHECK-NEXT:         %e = math.exp %a : f32
// CHECK-NEXT:         %n = arith.truncf %e : f32 to bf16
// CHECK-NEXT:         %w = arith.extf %n : bf16 to f32
// CHECK-NEXT:         loop.yield %n, %w
// CHECK-NEXT:       } : tensor<[4] x bf16, strides [1]>, tensor<[4] x f32, strides [1]>
// CHECK-NEXT:       %v_0 = loop.compute par(i0: 4) -> map {
// CHECK-NEXT:         %a_0 = loop.read %x[i0] : f32
// CHECK-NEXT:         %e_0 = math.exp %a_0 : f32
// CHECK-NEXT:         %n_0 = arith.truncf %e_0 : f32 to bf16
// CHECK-NEXT:         %w_0 = arith.extf %n_0 : bf16 to f32
// CHECK-NEXT:         %s = math.sqrt %a_0 : f32
// CHECK-NEXT:         %z = arith.addf %w_0, %s : f32
// CHECK-NEXT:         loop.yield %z
// CHECK-NEXT:       } : tensor<[4] x f32, strides [1]>
// CHECK-NEXT:       loop.yield %y_0, %u_0, %v_0
// CHECK-NEXT:     } : tensor<[4] x bf16, strides [1]>, tensor<[4] x f32, strides [1]>, tensor<[4] x f32, strides [1]>
// CHECK-NEXT:     return %y, %u, %v : tensor<[4] x bf16, strides [1]>, tensor<[4] x f32, strides [1]>, tensor<[4] x f32, strides [1]>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @local(%x: tensor<[4] x f32, strides [1]>) -> tensor<[4] x f32, strides [1]> attributes {level = "loop"} {
// CHECK-NEXT:     %v = loop.group (i0: 4) {
// CHECK-NEXT:       %y_0 = loop.compute par(i0: 4) -> map {
// CHECK-NEXT:         %a = loop.read %x[i0] : f32
// CHECK-NEXT:         %e = math.exp %a : f32
// CHECK-NEXT:         loop.yield %e
// CHECK-NEXT:       } : tensor<[4] x f32, strides [1]>
// CHECK-NEXT:       %v_0 = loop.compute par(i0: 4) -> map {
// CHECK-NEXT:         %n = loop.read %y_0[i0] : f32
// CHECK-NEXT:         loop.yield %n
// CHECK-NEXT:       } : tensor<[4] x f32, strides [1]>
// CHECK-NEXT:       loop.yield %v_0
// CHECK-NEXT:     } : tensor<[4] x f32, strides [1]>
// CHECK-NEXT:     return %v : tensor<[4] x f32, strides [1]>
// CHECK-NEXT:   }
// CHECK-NEXT: }
