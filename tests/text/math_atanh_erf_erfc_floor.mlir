func.func @scalars(%x: f32) -> f32 {
  %0 = math.atanh %x : f32
  %1 = math.erf %0 : f32
  %2 = math.erfc %1 : f32
  %3 = math.floor %2 : f32
  return %3 : f32
}

func.func @lanes(%x: vector<4xf64>) -> vector<4xf64> {
  %0 = math.atanh %x fastmath<reassoc,afn> : vector<4xf64>
  %1 = math.erf %0 fastmath<reassoc,afn> : vector<4xf64>
  %2 = math.erfc %1 fastmath<reassoc,afn> : vector<4xf64>
  %3 = math.floor %2 fastmath<reassoc,afn> : vector<4xf64>
  return %3 : vector<4xf64>
}
