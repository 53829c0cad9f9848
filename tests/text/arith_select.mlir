func.func @main(%c: i1, %a: i64, %b: i64, %m: vector<2xi1>, %x: vector<2xf32>, %y: vector<2xf32>) -> (i64, vector<2xf32>, vector<2xf32>) {
  %0 = arith.select %c, %a, %b : i64
  %1 = arith.select %c, %x, %y : vector<2xf32>
  %2 = arith.select %m, %x, %y : vector<2xi1>, vector<2xf32>
  return %0, %1, %2 : i64, vector<2xf32>, vector<2xf32>
}
