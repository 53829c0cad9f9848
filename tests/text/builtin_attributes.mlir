func.func @numbers() attributes {q.a = 1 : i64, q.b = -1 : i8, q.c = 255 : ui8, q.d = 5 : index, q.e = 1.500000e+00 : f64, q.f = -0.000000e+00 : bf16, q.g = true, q.h = 0x7FC0 : bf16, q.i = 1.000000e+10 : f32, q.j = 170141183460469231731687303715884105727 : i128} {
  return
}

func.func @words() attributes {q.a, q.b = "a \22b\22 \5C \0A", q.c = @f, q.d = @outer::@"in side", q.e = i32, q.f = (i32, vector<2x3xf32>) -> (), q.g = tensor<4x0xi1>, q.h = complex<f64>} {
  return
}

func.func @lists() attributes {q.a = [], q.b = [1 : i64, [true, "x"], {a, b.c = f32}], q.c = {}, q.d = {"a b" = 1 : i32}, q.e = array<i64>, q.f = array<i64: 1, -2>, q.g = array<i32: 3>, q.h = array<i1: true, false>, q.i = array<i8: -128>, q.j = array<f32: 1.500000e+00, 0x7F800000>, q.k = array<f64>} {
  return
}

func.func @elements() attributes {q.a = dense<1> : vector<4xi32>, q.b = dense<[[1.000000e+00, -2.500000e-01], [0.000000e+00, 4.000000e+00]]> : tensor<2x2xf32>, q.c = dense<[true, false]> : tensor<2xi1>, q.d = dense<(1.000000e+00, 2.000000e+00)> : tensor<2xcomplex<f32>>, q.e = dense<> : tensor<0x3xf64>, q.f = dense<[0, 255]> : tensor<2xui8>, q.g = sparse<0, 1> : tensor<4xi32>} {
  return
}

func.func @kept() attributes {q.a = affine_map<(d0, d1)[s0] -> (d1, d0 + s0 * 2)>, q.b = affine_set<(d0) : (d0 - 1 >= 0, d0 - 4 == 0)>, q.c = strided<[1, ?], offset: 3>, q.d = #arith.fastmath<nnan,nsz>, q.e = #arith.overflow<nsw, nuw>} {
  return
}
