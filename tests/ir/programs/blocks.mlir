// Blocks with successors, operations and attributes of unknown dialects.
builtin.module {
  func.func @cfg(%c: i1) {
    "test.branch"()[^bb2] : () -> ()
  ^bb1:
    %b = arith.addf %a, %a : f32
    "test.branch"(%c)[^bb1, ^bb3] {note = #test.x<[1 -> 2]>} : (i1) -> ()
  ^bb2:
    %a = arith.constant 1.0 : f32
    "test.branch"()[^bb1] : () -> ()
  ^bb3:
    %r, %r_0 = "test.two"(%b) ({
    }, {
    ^bb0(%q: !test.type<a, "b">):
      "test.end"() : () -> ()
    }) : (f32) -> (f32, i1)
    "test.use"(%r_0, %r) : (i1, f32) -> ()
    return
  }
}
