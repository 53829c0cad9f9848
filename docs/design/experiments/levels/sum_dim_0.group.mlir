builtin.module {
  func.func @main(%arg0_1: tensor<[37, 21] x f32, strides [21, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>, irc.strides = #sym.dims<[21, 1]>}) -> (tensor<[21] x f32, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}) attributes {level = "loop"} {
    %sum_1 = loop.compute red(i0: 37) par(i1: 21) -> reduce(sum, f32) {
      %0 = loop.read %arg0_1[i0, i1] : f32
      loop.yield %0
    } : tensor<[21] x f32, strides [1]>
    return %sum_1 : tensor<[21] x f32, strides [1]>
  }
}

