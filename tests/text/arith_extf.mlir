func.func @scalars(%x: bf16) -> f32 {
  %0 = arith.extf %x : bf16 to f32
  %1 = arith.extf %x : bf16 to f32
  return %1 : f32
}

func.func @lanes(%x: vector<5xbf16>) -> vector<5xf32> {
  %0 = arith.extf %x {tag = 3 : i64} : vector<5xbf16> to vector<5xf32>
  return %0 : vector<5xf32>
}
