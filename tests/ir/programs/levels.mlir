// A loop-level function, a kernel and a host program.
builtin.module {
  func.func @ln(%x: tensor<[s0, 768] x bf16, strides [768, 1]>) -> tensor<[s0, 768] x bf16, strides [768, 1]> {
    %s0 = sym.bind_size %x {dim = 0 : i64, symbol = "s0"} : (tensor<[s0, 768] x bf16, strides [768, 1]>) -> index
    %y = loop.group (i: s0) schedule #loop.schedule<cpu, lanes = 16 : i64, tail = "peel"> {
      %mu, %m2 = loop.compute par(i: s0) red(j: 768) -> reduce(moments, f32) {
        %a = loop.read %x[i, j] : bf16
        %f = arith.extf %a : bf16 to f32
        loop.yield %f
      } : tensor<[s0] x f32, strides [1]>, tensor<[s0] x f32, strides [1]>
      %o = loop.compute par(i: s0, j: 768) -> map {
        %a_0 = loop.read %x[i, j] : bf16
        %k = loop.index {expression = #sym<i*4 + j>} : index
        %c = arith.cmpi slt, %k, %k : index
        %b = loop.read %x[i, %k - j*2 + 1] (where %c else %a_0) : bf16
        %m = loop.read %mu[i] : f32
        loop.yield %a_0
      } : tensor<[s0, 768] x bf16, strides [768, 1]>
      loop.yield %o
    } : tensor<[s0, 768] x bf16, strides [768, 1]>
    return %y : tensor<[s0, 768] x bf16, strides [768, 1]>
  }
  kernel.func @k(%x: !kernel.ptr<f32>, %n: index, %begin: index, %end: index) attributes {grid = #sym<s0>, symbols = ["s0"], target = "cpu"} {
    %c16 = arith.constant 16 : index
    %zero = arith.constant dense<0.0> : vector<16xf32>
    %s = kernel.for %j = %begin to %end step %c16 iter_args(%a = %zero) -> (vector<16xf32>) attributes {unroll = 4 : i64} {
      %v = kernel.load %x[%j] : vector<16xf32>
      %t = arith.addf %a, %v : vector<16xf32>
      kernel.yield %t : vector<16xf32>
    }
    %c = arith.cmpi eq, %n, %begin : index
    %r = kernel.if %c -> (f32) {
      %q = kernel.reduce %s {combiner = "sum", dim = 0 : i64} : (vector<16xf32>) -> f32
      kernel.yield %q : f32
    } else {
      %q_0 = arith.constant 1.0 : f32
      kernel.yield %q_0 : f32
    }
    kernel.store %s, %x[%n] : vector<16xf32>
    kernel.if %c {
      kernel.store %r, %x[%n] : f32
      kernel.yield
    } else {
      kernel.yield
    }
    kernel.return
  }
  host.func @main(%x: tensor<[4] x f32, strides [1]> {irc.name = "x"}) -> (tensor<[4] x f32, strides [1]> {irc.alias_of = 0 : i64}) {
    %y = host.launch %x {callee = @k} : (tensor<[4] x f32, strides [1]>) -> tensor<[4] x f32, strides [1]>
    host.return %x : tensor<[4] x f32, strides [1]>
  }
}
