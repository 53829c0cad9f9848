func.func private @takes((i32) -> f32, vector<2x3xi1>) -> ((f32, i64) -> ())

func.func private @gives(tensor<4x0xf32>, tensor<f64>, complex<f32>) -> ((i32) -> (f32, i1))

func.func @main(%f: (i32) -> f32, %x: i32) -> ((i32) -> f32, i32) {
  return %f, %x : (i32) -> f32, i32
}

func.func @"a name"(%x: tensor<4x0xf32>, %y: tensor<f64>, %z: complex<f32>) -> ((i32) -> (f32, i1)) {
  %0 = call @gives(%x, %y, %z) : (tensor<4x0xf32>, tensor<f64>, complex<f32>) -> ((i32) -> (f32, i1))
  return %0 : (i32) -> (f32, i1)
}
