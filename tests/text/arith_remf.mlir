func.func @scalars(%x: f32, %y: f32) -> f32 {
  %0 = arith.remf %x, %y : f32
  %1 = arith.remf %0, %y fastmath<nnan,ninf> : f32
  %2 = arith.remf %1, %1 fastmath<fast> : f32
  return %2 : f32
}

func.func @lanes(%x: vector<8xbf16>, %y: vector<8xbf16>) -> vector<8xbf16> {
  %0 = arith.remf %x, %y : vector<8xbf16>
  return %0 : vector<8xbf16>
}
