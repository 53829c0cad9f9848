func.func @scalars(%x: f32) -> i32 {
  %0 = arith.bitcast %x : f32 to i32
  %1 = arith.bitcast %x : f32 to i32
  return %1 : i32
}

func.func @lanes(%x: vector<5xf32>) -> vector<5xi32> {
  %0 = arith.bitcast %x {tag = 3 : i64} : vector<5xf32> to vector<5xi32>
  return %0 : vector<5xi32>
}
