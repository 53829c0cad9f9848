// Graph level: symbols, constants, calls; scalars that MLIR knows and that it doesn't.
builtin.module {
  func.func @main(%x: tensor<[s0, 5] x f32>, %n: index) -> (tensor<[5, s0] x f32> {irc.alias_of = 0 : i64, irc.strides = #sym.dims<[1, 5]>}) attributes {level = "graph"} {
    %s0 = sym.bind_size %x {dim = 0 : i64, hint = 8 : i64, symbol = "s0"} : (tensor<[s0, 5] x f32>) -> index
    %u0 = sym.bind %n {symbol = "u0"} : (index) -> index
    sym.assert {lhs = #sym<u0>, message = "u0 <= 2*s0 + 1", relation = "le", rhs = #sym<s0*2 + 1>}
    %w = graph.constant {value = dense<[1.0, -0.5, 0x7FC00000, 0.1, 1.0e-20]> : tensor<5xf32>} : tensor<5xf32>
    %b = graph.broadcast %w {dims = array<i64: 1>} : (tensor<5xf32>) -> tensor<[s0, 5] x f32>
    %y = graph.add %x, %b : (tensor<[s0, 5] x f32>, tensor<[s0, 5] x f32>) -> tensor<[s0, 5] x f32>
    %c = graph.lt %y, %b : (tensor<[s0, 5] x f32>, tensor<[s0, 5] x f32>) -> tensor<[s0, 5] x i1>
    %z = graph.cast %c : (tensor<[s0, 5] x i1>) -> tensor<[s0, 5] x ui8>
    %m, %d = graph.moments %y {dims = array<i64: 1>} : (tensor<[s0, 5] x f32>) -> (tensor<[s0] x f32>, tensor<[s0] x f32>)
    %t = graph.permute %x {permutation = array<i64: 1, 0>} : (tensor<[s0, 5] x f32>) -> tensor<[5, s0] x f32>
    %i, %k = call @other(%n) : (index) -> (i32, tensor<4xi8>)
    return %t : tensor<[5, s0] x f32>
  }
  func.func @other(%a: index) -> (i32, tensor<4xi8>) {
    %i = arith.index_cast %a : index to i32
    %c = arith.constant true
    %v = arith.constant dense<[1, 2]> : vector<2xi32>
    %s = arith.constant dense<3> : vector<4xi32>
    %p = arith.cmpi uge, %i, %i : i32
    %f = arith.sitofp %i : i32 to f32
    %g = math.sigmoid %f : f32
    %h = math.exp %g : f32
    %o = arith.select %p, %g, %h : f32
    %q = arith.cmpf une, %o, %h : f32
    %t = graph.undefined : tensor<4xi8>
    return %i, %t : i32, tensor<4xi8>
  }
}
