func.func @main() {
  %0 = arith.constant 4 : i32
  %1 = arith.constant -128 : i8
  %2 = arith.constant true
  %3 = arith.constant false
  %4 = arith.constant 9223372036854775807 : i64
  %5 = arith.constant 7 : index
  %6 = arith.constant dense<3> : vector<4xi32>
  %7 = arith.constant dense<[1, -2, 3]> : vector<3xi16>
  %8 = arith.constant dense<[true, false]> : vector<2xi1>
  %9 = arith.constant dense<false> : vector<8xi1>
  %10 = arith.constant dense<[[1, 2], [3, 4]]> : vector<2x2xi64>
  return
}
