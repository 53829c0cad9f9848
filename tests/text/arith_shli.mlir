func.func @scalars(%a: i32, %b: i32) -> i32 {
  %0 = arith.shli %a, %b : i32
  %1 = arith.shli %0, %b overflow<nsw, nuw> : i32
  return %1 : i32
}

func.func @indices(%a: index, %b: index) -> index {
  %0 = arith.shli %a, %b : index
  return %0 : index
}

func.func @lanes(%a: vector<4xi8>, %b: vector<4xi8>) -> vector<4xi8> {
  %0 = arith.shli %a, %b : vector<4xi8>
  return %0 : vector<4xi8>
}
