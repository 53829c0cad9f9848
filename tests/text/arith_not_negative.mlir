func.func @main(%a: i8, %v: vector<4xi16>) {
  %0 = arith.extui %a nneg : i8 to i32
  %1 = arith.uitofp %0 nneg : i32 to f32
  %2 = arith.index_castui %0 nneg {mine.tag} : i32 to index
  %3 = arith.uitofp %v nneg : vector<4xi16> to vector<4xbf16>
  return
}
