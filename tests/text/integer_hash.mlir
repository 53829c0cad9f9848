func.func @hash(%x: i64) -> i64 {
  %k = arith.constant -7046029254386353131 : i64
  %s = arith.constant 31 : i64
  %0 = arith.shrui %x, %s : i64
  %1 = arith.xori %x, %0 : i64
  %2 = arith.muli %1, %k : i64
  %3 = arith.trunci %2 : i64 to i32
  %4 = arith.extui %3 : i32 to i64
  return %4 : i64
}
