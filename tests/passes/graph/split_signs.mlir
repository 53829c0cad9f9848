// The pass split-signs: an index that may be negative is the difference of two symbols that are not.
// RUN: --split-signs
// VALUES: split-signs

func.func @main(%n: index, %i: index, %j: index) -> (index, index) attributes {level = "aten"} {
  %s0 = sym.bind %n {minimum = 0 : i64, symbol = "s0"} : (index) -> index
  %s1 = sym.bind %i {hint = -2 : i64, maximum = -1 : i64, symbol = "s1"} : (index) -> index
  %s2 = sym.bind %j {hint = 3 : i64, maximum = 7 : i64, minimum = -4 : i64, symbol = "s2"} : (index) -> index
  %a = sym.value {dim = #sym<s0 + s1>} : index
  %b = sym.value {dim = #sym<s0 + s2*2>} : index
  return %a, %b : index, index
}

// CHECK: builtin.module {
// CHECK-NEXT:   func.func @main(%n: index, %i: index, %j: index) -> (index, index) attributes {level = "aten"} {
// CHECK-NEXT:     %s0 = sym.bind %n {minimum = 0 : i64, symbol = "s0"} : (index) -> index
// CHECK-NEXT:     %s1 = sym.bind %i {hint = -2 : i64, maximum = -1 : i64, symbol = "s1"} : (index) -> index
// CHECK-NEXT:     %0 = sym.value {dim = #sym<-s1>} : index
// CHECK-NEXT:     %1 = sym.bind %0 {hint = 2 : i64, minimum = 1 : i64, symbol = "s1_below"} : (index) -> index
// CHECK-NEXT:     %s2 = sym.bind %j {hint = 3 : i64, maximum = 7 : i64, minimum = -4 : i64, symbol = "s2"} : (index) -> index
// CHECK-NEXT:     %2 = sym.value {dim = #sym<max(s2, 0)>} : index
// CHECK-NEXT:     %3 = sym.bind %2 {hint = 3 : i64, maximum = 7 : i64, minimum = 0 : i64, symbol = "s2_above"} : (index) -> index
// CHECK-NEXT:     %4 = sym.value {dim = #sym<max(-s2, 0)>} : index
// CHECK-NEXT:     %5 = sym.bind %4 {hint = 0 : i64, maximum = 4 : i64, minimum = 0 : i64, symbol = "s2_below"} : (index) -> index
// CHECK-NEXT:     %a = sym.value {dim = #sym<s0 - s1_below>} : index
// CHECK-NEXT:     %b = sym.value {dim = #sym<s0 + s2_above*2 - s2_below*2>} : index
// CHECK-NEXT:     return %a, %b : index, index
// CHECK-NEXT:   }
// CHECK-NEXT: }
