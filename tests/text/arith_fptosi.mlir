func.func @scalars(%x: f32) -> i64 {
  %0 = arith.fptosi %x : f32 to i64
  %1 = arith.fptosi %x : f32 to i64
  return %1 : i64
}

func.func @lanes(%x: vector<5xf32>) -> vector<5xi64> {
  %0 = arith.fptosi %x {tag = 3 : i64} : vector<5xf32> to vector<5xi64>
  return %0 : vector<5xi64>
}
