builtin.module {
  func.func @main(%arg0_1: tensor<[3, 45] x f32, strides [45, 1]> {irc.kind = "input", irc.name = "arg0", irc.offset = #sym<0>, irc.strides = #sym.dims<[45, 1]>}) -> (tensor<[3, 45] x f32, strides [45, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[45, 1]>}) attributes {level = "loop"} {
    %cumsum = loop.compute par(i0: 3) scan(i1: 45) -> scan(sum, f32) {
      %0 = loop.read %arg0_1[i0, i1] : f32
      loop.yield %0
    } : tensor<[3, 45] x f32, strides [45, 1]>
    return %cumsum : tensor<[3, 45] x f32, strides [45, 1]>
  }
}

