func.func @main(%x: f32, %v: vector<4xf64>) -> (i1, vector<4xi1>) {
  %0 = math.isnan %x : f32
  %1 = math.isinf %v : vector<4xf64>
  return %0, %1 : i1, vector<4xi1>
}
