func.func @main(%a: i32, %v: vector<2xi64>) -> (i32, vector<2xi64>) {
  %0 = math.absi %a : i32
  %1 = math.absi %v : vector<2xi64>
  return %0, %1 : i32, vector<2xi64>
}
