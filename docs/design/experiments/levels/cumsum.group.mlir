builtin.module {
  func.func @main(%arg0_1: tensor<[3, 45] x f32, strides [45, 1]> {kind = "input", name = "arg0", offset = #sym<0>, strides = #sym.dims<[45, 1]>}) -> (tensor<[3, 45] x f32, strides [45, 1]> {offset = #sym<0>, strides = #sym.dims<[45, 1]>}) attributes {level = "loop"} {
    %cumsum = loop.compute par(i0: 3) scan(i1: 45) -> scan(sum, f32) {
      %0 = loop.read %arg0_1[i0, i1] : f32
      loop.yield %0
    } : tensor<[3, 45] x f32, strides [45, 1]>
    return %cumsum : tensor<[3, 45] x f32, strides [45, 1]>
  }
}

