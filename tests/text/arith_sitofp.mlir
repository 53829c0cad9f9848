func.func @scalars(%x: i32) -> f32 {
  %0 = arith.sitofp %x : i32 to f32
  %1 = arith.sitofp %x : i32 to f32
  return %1 : f32
}

func.func @lanes(%x: vector<5xi32>) -> vector<5xf32> {
  %0 = arith.sitofp %x {tag = 3 : i64} : vector<5xi32> to vector<5xf32>
  return %0 : vector<5xf32>
}
