func.func @floats(%x: f32, %y: f32, %b: bf16) -> f32 {
  %0 = arith.mulf %x, %y fastmath<reassoc,nnan,ninf,nsz,arcp,contract> : f32
  %1 = arith.maximumf %0, %y fastmath<nnan,nsz> : f32
  %2 = arith.negf %1 fastmath<afn> : f32
  %3 = arith.extf %b fastmath<nnan> : bf16 to f32
  %4 = math.powf %2, %3 fastmath<afn> : f32
  %5 = math.isnan %4 fastmath<ninf> : f32
  return %4 : f32
}

func.func @integers(%a: i64, %n: index) -> i32 {
  %0 = arith.muli %a, %a overflow<nsw, nuw> : i64
  %1 = arith.subi %n, %n overflow<nuw> : index
  %2 = arith.shli %0, %a overflow<nsw> {mine.tag} : i64
  %3 = arith.trunci %2 overflow<nuw> : i64 to i32
  return %3 : i32
}
