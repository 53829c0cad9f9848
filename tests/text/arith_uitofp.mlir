func.func @scalars(%x: i8) -> bf16 {
  %0 = arith.uitofp %x : i8 to bf16
  %1 = arith.uitofp %x : i8 to bf16
  return %1 : bf16
}

func.func @lanes(%x: vector<5xi8>) -> vector<5xbf16> {
  %0 = arith.uitofp %x {tag = 3 : i64} : vector<5xi8> to vector<5xbf16>
  return %0 : vector<5xbf16>
}
