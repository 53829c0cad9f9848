// The pass explain-graphs: tells what no CUDA graph holds (here as if for the CPU); the program stays.
// RUN: --explain-graphs='device=cpu'
// VALUES: explain-graphs{device=cpu}

host.func @main(%x: tensor<[4] x f32, strides [1]>, %n: tensor<[] x i64, strides []>) -> tensor<[4] x f32, strides [1]> {
  %a = host.alloc {escapes} : tensor<[4] x f32, strides [1]>
  host.copy %x, %a : (tensor<[4] x f32, strides [1]>, tensor<[4] x f32, strides [1]>)
  %i = host.item %n : (tensor<[] x i64, strides []>) -> index
  %u = sym.bind %i {symbol = "u0"} : (index) -> index
  host.return %a : tensor<[4] x f32, strides [1]>
}

// CHECK: builtin.module {
// CHECK-NEXT: host.func @main
// CHECK-NEXT: %a = host.alloc {escapes} : tensor<[4] x f32, strides [1]>
// CHECK-NEXT: host.copy %x, %a
// CHECK-NEXT: %i = host.item %n
// CHECK-NEXT: %u = sym.bind %i {symbol = "u0"}
// CHECK-NEXT: host.return %a
