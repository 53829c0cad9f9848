func.func @main(%a: i32, %b: i32, %v: vector<4xindex>) -> i32 {
  %0 = arith.divsi %a, %b exact : i32
  %1 = arith.divui %0, %b exact {mine.tag} : i32
  %2 = arith.shrsi %1, %b exact : i32
  %3 = arith.shrui %2, %b exact : i32
  %4 = arith.divui %v, %v exact : vector<4xindex>
  return %3 : i32
}
