// The pass reinplace: an argument that changes in a slice is written there only; one whose old
// content is read elsewhere is written whole. Slices written one after the other are a put each.
// RUN: --reinplace --dce --target=avx2
// VALUES: reinplace,dce

func.func @main(%cache: tensor<2x8x4xf32>, %k: tensor<2x1x4xf32>, %seen: tensor<8xf32>, %n: tensor<2xf32>) -> tensor<8xf32> {
  %a = graph.slice %cache {dim = 1 : i64, start = #sym<0>, step = 1 : i64} : (tensor<2x8x4xf32>) -> tensor<2x3x4xf32>
  %b = graph.slice %cache {dim = 1 : i64, start = #sym<4>, step = 1 : i64} : (tensor<2x8x4xf32>) -> tensor<2x4x4xf32>
  %y = graph.concat %a, %k, %b {dim = 1 : i64} : (tensor<2x3x4xf32>, tensor<2x1x4xf32>, tensor<2x4x4xf32>) -> tensor<2x8x4xf32>
  %c = graph.slice %seen {dim = 0 : i64, start = #sym<0>, step = 1 : i64} : (tensor<8xf32>) -> tensor<6xf32>
  %z = graph.concat %c, %n {dim = 0 : i64} : (tensor<6xf32>, tensor<2xf32>) -> tensor<8xf32>
  %old = graph.neg %seen : (tensor<8xf32>) -> tensor<8xf32>
  graph.update_input %y {argument = 0 : i64} : (tensor<2x8x4xf32>)
  graph.update_input %z {argument = 2 : i64} : (tensor<8xf32>)
  return %old : tensor<8xf32>
}

func.func @two(%cache: tensor<2x512x4xf32>, %k: tensor<2x1x4xf32>) {
  %a = graph.slice %cache {dim = 1 : i64, start = #sym<0>, step = 1 : i64} : (tensor<2x512x4xf32>) -> tensor<2x3x4xf32>
  %b = graph.slice %cache {dim = 1 : i64, start = #sym<4>, step = 1 : i64} : (tensor<2x512x4xf32>) -> tensor<2x508x4xf32>
  %y = graph.concat %a, %k, %b {dim = 1 : i64} : (tensor<2x3x4xf32>, tensor<2x1x4xf32>, tensor<2x508x4xf32>) -> tensor<2x512x4xf32>
  %old = graph.slice %b {dim = 1 : i64, start = #sym<96>, step = 1 : i64} : (tensor<2x508x4xf32>) -> tensor<2x1x4xf32>
  %sum = graph.add %old, %k : (tensor<2x1x4xf32>, tensor<2x1x4xf32>) -> tensor<2x1x4xf32>
  %c = graph.slice %y {dim = 1 : i64, start = #sym<0>, step = 1 : i64} : (tensor<2x512x4xf32>) -> tensor<2x100x4xf32>
  %d = graph.slice %b {dim = 1 : i64, start = #sym<97>, step = 1 : i64} : (tensor<2x508x4xf32>) -> tensor<2x411x4xf32>
  %z = graph.concat %c, %sum, %d {dim = 1 : i64} : (tensor<2x100x4xf32>, tensor<2x1x4xf32>, tensor<2x411x4xf32>) -> tensor<2x512x4xf32>
  graph.update_input %z {argument = 0 : i64} : (tensor<2x512x4xf32>)
  return
}

// CHECK: builtin.module attributes {irc.target = #irc.target<avx2>} {
// CHECK-NEXT:   func.func @main(%cache: tensor<2x8x4xf32>, %k: tensor<2x1x4xf32>, %seen: tensor<8xf32>, %n: tensor<2xf32>) -> tensor<8xf32> {
// CHECK-NEXT:     %0 = graph.iota {dim = 0 : i64} : tensor<1xi64>
// CHECK-NEXT:     %1 = graph.full {value = 3 : i64} : tensor<1xi64>
// CHECK-NEXT:     %2 = graph.add %0, %1 : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
// CHECK-NEXT:     %y = graph.put %cache, %k, %2 {combiner = "set", dims = array<i64: 1>, position = 1 : i64} : (tensor<2x8x4xf32>, tensor<2x1x4xf32>, tensor<1xi64>) -> tensor<2x8x4xf32>
// CHECK-NEXT:     %c = graph.slice %seen {dim = 0 : i64, start = #sym<0>, step = 1 : i64} : (tensor<8xf32>) -> tensor<6xf32>
// CHECK-NEXT:     %z = graph.concat %c, %n {dim = 0 : i64} : (tensor<6xf32>, tensor<2xf32>) -> tensor<8xf32>
// CHECK-NEXT:     %old = graph.neg %seen : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT:     graph.update_input %y {argument = 0 : i64} : (tensor<2x8x4xf32>)
// CHECK-NEXT:     graph.update_input %z {argument = 2 : i64} : (tensor<8xf32>)
// CHECK-NEXT:     return %old : tensor<8xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @two(%cache: tensor<2x512x4xf32>, %k: tensor<2x1x4xf32>) {
// CHECK-NEXT:     %0 = graph.iota {dim = 0 : i64} : tensor<1xi64>
// CHECK-NEXT:     %1 = graph.full {value = 3 : i64} : tensor<1xi64>
// CHECK-NEXT:     %2 = graph.add %0, %1 : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
// CHECK-NEXT:     %3 = graph.put %cache, %k, %2 {combiner = "set", dims = array<i64: 1>, position = 1 : i64} : (tensor<2x512x4xf32>, tensor<2x1x4xf32>, tensor<1xi64>) -> tensor<2x512x4xf32>
// CHECK-NEXT:     %4 = graph.slice %3 {dim = 1 : i64, start = #sym<100>, step = 1 : i64} : (tensor<2x512x4xf32>) -> tensor<2x1x4xf32>
// CHECK-NEXT:     %sum = graph.add %4, %k : (tensor<2x1x4xf32>, tensor<2x1x4xf32>) -> tensor<2x1x4xf32>
// CHECK-NEXT:     %5 = graph.iota {dim = 0 : i64} : tensor<1xi64>
// CHECK-NEXT:     %6 = graph.full {value = 100 : i64} : tensor<1xi64>
// CHECK-NEXT:     %7 = graph.add %5, %6 : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
// CHECK-NEXT:     %z = graph.put %3, %sum, %7 {combiner = "set", dims = array<i64: 1>, position = 1 : i64} : (tensor<2x512x4xf32>, tensor<2x1x4xf32>, tensor<1xi64>) -> tensor<2x512x4xf32>
// CHECK-NEXT:     graph.update_input %z {argument = 0 : i64} : (tensor<2x512x4xf32>)
// CHECK-NEXT:     return
// CHECK-NEXT:   }
// CHECK-NEXT: }
