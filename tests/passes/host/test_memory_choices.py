"""Where `bufferize` puts what is computed, decision by decision.

A case is a program in short (`short_programs`), sometimes with its arguments and with what its
results are to the caller; then what becomes of it; then what is said about it.
"""

from __future__ import annotations

import pytest

from tests.passes.host.short_programs import bufferized, program

# In the memory of an input: of our own, as the result is, read here last and as one input.
LAUNCHES = """
b = fill; c = map b; return c
    b = alloc; fill > b; map b > b; return b
b = far x; return b
    b = alloc; far x > b; return b
b = map x; return b
    b = alloc; map x > b; return b
    - result 0 is not computed in the memory of %x: it is not the program's own
b = fill; c = far b; return c
    b = alloc; fill > b; c = alloc; far b > c; return c
b = fill; c d = two b; return c d
    b = alloc; fill > b; d = alloc; two b > b d; return b d
    - result 1 is not computed in the memory of %b: another result is
b = fill; c d = two b; return d
    b = alloc; fill > b; d = alloc; two b > b d; return d
    - result 1 is not computed in the memory of %b: another result is
b = fill; c = fill; d e = pair b c; return d e
    b = alloc; fill > b; c = alloc; fill > c; pair b c > b c; return b c
b = fill; c:turned = map b; return c
    b = alloc; fill > b; c = alloc; map b > c; return c
    - result 0 is not computed in the memory of %b: it has another type
b = fill; c = map b; d = add b c; return d
    b = alloc; fill > b; c = alloc; map b > c; add b c > b; return b
    - result 0 is not computed in the memory of %b: it is used later
b = fill; c = map b; return c b
    b = alloc; fill > b; c = alloc; map b > c; return c b
    - result 0 is not computed in the memory of %b: it is used later
b = fill; c = map b; update b 0; return c
    fill > x; c = alloc; map x > c; return c
    - result 0 is not computed in the memory of %x: it is not the program's own
b = fill; v = view b; c = map b; return c v
    b = alloc; fill > b; v = view b; c = alloc; map b > c; return c v
    - result 0 is not computed in the memory of %b: it is used later
b = fill; v = view b; c = first b v; return c
    b = alloc; fill > b; v = view b; c = alloc; first b v > c; return c
    - result 0 is not computed in the memory of %b: the kernel reads it as another input too
b = fill; c = first b b; return c
    b = alloc; fill > b; c = alloc; first b b > c; return c
    - result 0 is not computed in the memory of %b: the kernel reads it as another input too
b = fill; c = first b x; return c
    b = alloc; fill > b; first b x > b; return b
b = fill; c = first x b; return c
    b = alloc; fill > b; c = alloc; first x b > c; return c
    - result 0 is not computed in the memory of %x: it is not the program's own
b = fill; c = add x b; return c
    b = alloc; fill > b; add x b > b; return b
b = fill; c = fill; d = add b c; return d
    b = alloc; fill > b; c = alloc; fill > c; add b c > b; return b
b = fill; c = fill; d = add b c; e = map c; return d e
    b = alloc; fill > b; c = alloc; fill > c; add b c > b; map c > c; return b c
b = relu x; c = map b; return c
    b = relu x; c = alloc; map b > c; return c
    - result 0 is not computed in the memory of %b: it is not the program's own
b = t x; c = map b; return c
    b = t x; c = alloc; map b > c; return c
    - result 0 is not computed in the memory of %b: it is not the program's own
b = mm x y; c = map b; return c
    b = alloc; mm.out x y b; map b > b; return b
b = fill; c = put b x; return c
    b = alloc; fill > b; put b x > b; return b
b = fill; c = put b b; return c
    b = alloc; fill > b; c = alloc; copy b > c; put b b > c; return c
    - result 0 is not computed in the memory of %b: the kernel reads it as another input too
b = fill; c = put x b; return c
    b = alloc; fill > b; c = alloc; copy x > c; put x b > c; return c
    - result 0 is not computed in the memory of %x: it is not the program's own
b = fill; c = put b x; d = map b; return c d
    b = alloc; fill > b; c = alloc; copy b > c; put b x > c; map b > b; return c b
    - result 0 is not computed in the memory of %b: it is used later
"""

# In the memory of the argument that gets it.
UPDATES = """
b = fill; update b 0; return
    fill > x; return
b = map x; update b 0; return
    map x > x; return
b = far x; update b 0; return
    b = alloc; far x > b; copy b > x; return
    - argument 0 is copied to: its kernel reads old elements at other points than it writes new ones
b = far y; update b 0; return
    far y > x; return
b:turned = fill; update b 0; return
    b = alloc; fill > b; copy b > x; return
    - argument 0 is copied to: it gets a tensor<[4, 4] x f32, strides [1, 4]>
b = fill; update b 0; return b
    b = alloc; fill > b; copy b > x; return b
    - argument 0 is copied to: what it gets is returned, or given to another argument too
v = fill; b = map v; w = view b; update b 0; return w
    v = alloc; fill > v; map v > v; w = view v; copy v > x; return w
    - argument 0 is copied to: what it gets is returned, or given to another argument too
b = fill; update b 0; update b 1; return
    fill > x; copy x > y; return
    - argument 1 is copied to: what it gets is returned, or given to another argument too
b = constant; update b 0; return
    b = constant; copy b > x; return
    - argument 0 is copied to: no kernel computes what it gets
b = relu y; update b 0; return
    b = relu y; copy b > x; return
    - argument 0 is copied to: no kernel computes what it gets
b = relu x; update b 0; return
    b = relu x; copy b > x; return
    - argument 0 is copied to: no kernel computes what it gets
b = first x y; update b 0; return
    first x y > x; return
b = first y x; update b 0; return
    b = alloc; first y x > b; copy b > x; return
    - argument 0 is copied to: its kernel reads old elements at other points than it writes new ones
    - result 0 is not computed in the memory of %y: it is not the program's own
b = first x x; update b 0; return
    b = alloc; first x x > b; copy b > x; return
    - argument 0 is copied to: its kernel reads old elements at other points than it writes new ones
    - result 0 is not computed in the memory of %x: it is not the program's own
b = add x x; update b 0; return
    b = alloc; add x x > b; copy b > x; return
    - argument 0 is copied to: its kernel reads old elements at other points than it writes new ones
    - result 0 is not computed in the memory of %x: it is not the program's own
b = add y x; update b 0; return
    add y x > x; return
v = view x; b = map v; update b 0; return
    v = view x; b = alloc; map v > b; copy b > x; return
    - argument 0 is copied to: its kernel reads old elements at other points than it writes new ones
    - result 0 is not computed in the memory of %v: it is not the program's own
v = view x; b = first x v; update b 0; return
    v = view x; b = alloc; first x v > b; copy b > x; return
    - argument 0 is copied to: its kernel reads old elements at other points than it writes new ones
    - result 0 is not computed in the memory of %x: it is not the program's own
b c = two x; update b 0; update c 1; return
    two x > x y; return
b c = two x; update c 0; return b
    b = alloc; two x > b x; return b
    - result 0 is not computed in the memory of %x: it is not the program's own
b c = pair x y; update b 0; update c 1; return
    pair x y > x y; return
b c = pair x y; update b 1; update c 0; return
    b = alloc; c = alloc; pair x y > b c; copy b > y; copy c > x; return
    - argument 1 is copied to: its kernel reads old elements at other points than it writes new ones
    - argument 0 is copied to: its kernel reads old elements at other points than it writes new ones
    - result 0 is not computed in the memory of %x: it is not the program's own
    - result 1 is not computed in the memory of %y: it is not the program's own
b = fill; c = far x; update b 0; return c
    b = alloc; fill > b; c = alloc; far x > c; copy b > x; return c
    - argument 0 is copied to: host.launch uses its old elements afterwards
b = map x; c = far x; update b 0; return c
    b = alloc; map x > b; c = alloc; far x > c; copy b > x; return c
    - argument 0 is copied to: host.launch uses its old elements afterwards
    - result 0 is not computed in the memory of %x: it is not the program's own
v = view x; b = map x; c = far v; update b 0; return c
    v = view x; b = alloc; map x > b; c = alloc; far v > c; copy b > x; return c
    - argument 0 is copied to: host.launch uses its old elements afterwards
    - result 0 is not computed in the memory of %x: it is not the program's own
b = fill; update b 0; return x | x y | alias0
    b = alloc; fill > b; copy b > x; return x
    - argument 0 is copied to: func.return uses its old elements afterwards
b t:truth = safe x; f:flag = item t; check f; update b 0; return
    b = alloc; t = alloc; safe x > b t; f = item t; assert_value f; copy b > x; return
    - argument 0 is copied to: an assertion about what it gets comes later
    - result 0 is not computed in the memory of %x: it is not the program's own
b t:truth = safe x; f:flag = item t; update b 0; return f
    t = alloc; safe x > x t; f = item t; return f
b t:truth = safe x; c = map y; f:flag = item t; check f; update c 1; return
    b = alloc; t = alloc; safe x > b t; map y > y; f = item t; assert_value f; return
    - result 0 is not computed in the memory of %x: it is not the program's own
b = fill; watch b; update b 0; return
    b = alloc; fill > b; watch b; copy b > x; return
    - argument 0 is copied to: a call may keep what it gets
b = fill; c = fill; watch b; update c 0; return
    b = alloc; fill > b; fill > x; watch b; return
b = bump x; update b 0; return
    bump x; return
b = bump y; update b 0; return
    b = alloc; copy y > b; bump b; copy b > x; return
    - argument 0 is copied to: no kernel computes what it gets
    - operand 0 of prims.bump.default is written in a copy: its memory is not the program's own
b = hold x; update b 0; return
    hold x; return
b = times x n; update b 0; return | x n:index
    times x n; return
b c = swap x y; update b 0; update c 1; return
    swap x y; return
b c = swap x y; update b 1; update c 0; return
    b = alloc; copy x > b; c = alloc; copy y > c; swap b c; copy b > y; copy c > x; return
    - argument 1 is copied to: no kernel computes what it gets
    - argument 0 is copied to: no kernel computes what it gets
    - operand 0 of prims.swap.default is written in a copy: its memory is not the program's own
    - operand 1 of prims.swap.default is written in a copy: its memory is not the program's own
b c = swap x x; update b 0; return
    b = alloc; copy x > b; c = alloc; copy x > c; swap b c; copy b > x; return
    - argument 0 is copied to: its kernel reads old elements at other points than it writes new ones
    - operand 0 of prims.swap.default is written in a copy: its memory is not the program's own
    - operand 1 of prims.swap.default is written in a copy: its memory is not the program's own
e b = mix x y; update b 0; return e
    e = mix x y; return e
e b = mix x x; update b 0; return e
    b = alloc; copy x > b; e = mix b x; copy b > x; return e
    - argument 0 is copied to: its kernel reads old elements at other points than it writes new ones
    - operand 0 of prims.mix.default is written in a copy: its memory is not the program's own
e b = mix y x; update b 1; return e
    e = mix y x; return e
v:turned = view x; e b = mix x v; update b 0; return e
    v = view x; b = alloc; copy x > b; e = mix b v; copy b > x; return e
    - argument 0 is copied to: its kernel reads old elements at other points than it writes new ones
    - operand 0 of prims.mix.default is written in a copy: its memory is not the program's own
b = fill; update b 0; update b 1; return | x y | - | 0 1
    b = alloc; fill > b; copy b > x; copy b > y; return
    - argument 0 is copied to: another argument may share its memory
    - argument 1 is copied to: another argument may share its memory
b = fill; c = fill; update b 0; update c 2; return | x y z | - | 0 1
    b = alloc; fill > b; fill > z; copy b > x; return
    - argument 0 is copied to: another argument may share its memory
"""

# What a scatter changes a part of is computed where the scatter's result will be.
CHAINS = """
b = fill; c = put b y; d = put c y; update d 0; return
    fill > x; put x y > x; put x y > x; return
c = put x y; d = put c y; update d 0; return
    put x y > x; put x y > x; return
c = put x x; update c 0; return
    c = alloc; copy x > c; put x x > c; copy c > x; return
    - argument 0 is copied to: its kernel reads old elements at other points than it writes new ones
    - result 0 is not computed in the memory of %x: it is not the program's own
c = put y x; d = put c y; update d 0; return
    c = alloc; copy y > c; put y x > c; copy c > x; put c y > x; return
    - result 0 is not computed in the memory of %y: it is not the program's own
b = relu y; c = put b y; update c 0; return
    b = relu y; copy b > x; put b y > x; return
b = bump y; c = put b y; update c 0; return
    b = alloc; copy y > b; bump b; copy b > x; put b y > x; return
    - operand 0 of prims.bump.default is written in a copy: its memory is not the program's own
b = fill; c = put b b; update c 0; return
    b = alloc; fill > b; copy b > x; put b b > x; return
b = fill; v = view b; c = put b v; update c 0; return
    b = alloc; fill > b; v = view b; copy b > x; put b v > x; return
b = fill; c = put b y; update c 0; return b
    b = alloc; fill > b; copy b > x; put b y > x; return b
b = fill; c = put b y; d = map b; update c 0; return d
    b = alloc; fill > b; copy b > x; put b y > x; map b > b; return b
b = fill; d = map x; c = put b y; update c 0; return d
    b = alloc; fill > b; d = alloc; map x > d; copy b > x; put b y > x; return d
    - result 0 is not computed in the memory of %x: it is not the program's own
b:turned = fill; c = put b y; update c 0; return
    b = alloc; fill > b; copy b > x; put b y > x; return
b = fill; c = put b y; d = put b y; update c 0; update d 1; return
    b = alloc; fill > b; copy b > x; put b y > x; put b y > b; copy b > y; return
    - argument 1 is copied to: its kernel reads old elements at other points than it writes new ones
b = fill; c = map b; update c 0; return
    b = alloc; fill > b; map b > x; return
b = fill; c = put_far b y; update c 0; return
    b = alloc; fill > b; copy b > x; put_far b y > x; return
b = fill; c = put_far y b; update c 0; return
    b = alloc; fill > b; copy y > x; put_far y b > x; return
b = fill; c = put_two b b; update c 0; return
    b = alloc; fill > b; copy b > x; put_two b b > x; return
"""

# A call writes its operand where that dies; what it may keep stays as it is.
CALLS = """
b = fill; c = bump b; return c
    b = alloc; fill > b; bump b; return b
c = bump x; return c
    c = alloc; copy x > c; bump c; return c
    - operand 0 of prims.bump.default is written in a copy: its memory is not the program's own
b = relu x; c = bump b; return c
    b = relu x; c = alloc; copy b > c; bump c; return c
    - operand 0 of prims.bump.default is written in a copy: its memory is not the program's own
b = fill; c = bump b; return b c
    b = alloc; fill > b; c = alloc; copy b > c; bump c; return b c
    - operand 0 of prims.bump.default is written in a copy: it is used later
b = fill; c:turned = bump b; return c
    b = alloc; fill > b; c = alloc; copy b > c; bump c; return c
    - operand 0 of prims.bump.default is written in a copy: the result has another type
b = fill; c = times b n; return c | n:index
    b = alloc; fill > b; times b n; return b
b = fill; e c = mix b x; return e c
    b = alloc; fill > b; e = mix b x; return e b
b = fill; e c = mix b b; return e c
    b = alloc; fill > b; c = alloc; copy b > c; e = mix c b; return e c
    - operand 0 of prims.mix.default is written in a copy: it is used later
b = fill; v = view b; e c = mix b v; return e c
    b = alloc; fill > b; v = view b; c = alloc; copy b > c; e = mix c v; return e c
    - operand 0 of prims.mix.default is written in a copy: it is used later
b = fill; c = fill; d e = swap b c; return d e
    b = alloc; fill > b; c = alloc; fill > c; swap b c; return b c
b = fill; d e = swap b b; return d e
    b = alloc; fill > b; d = alloc; copy b > d; e = alloc; copy b > e; swap d e; return d e
    - operand 0 of prims.swap.default is written in a copy: it is used later
    - operand 1 of prims.swap.default is written in a copy: it is used later
b = fill; c = fill; d e = swap b c; return b e
    b = alloc; fill > b; c = alloc; fill > c; d = alloc; copy b > d; swap d c; return b c
    - operand 0 of prims.swap.default is written in a copy: it is used later
b = fill; c = hold b; d = map c; return d
    b = alloc; fill > b; hold b; d = alloc; map b > d; return d
    - result 0 is not computed in the memory of %b: it is used later
b = fill; watch b; c = map b; return c
    b = alloc; fill > b; watch b; c = alloc; map b > c; return c
    - result 0 is not computed in the memory of %b: it is used later
b = fill; watch b; c = bump b; return c
    b = alloc; fill > b; watch b; c = alloc; copy b > c; bump c; return c
    - operand 0 of prims.bump.default is written in a copy: it is used later
b = fill; i:bits = bits b; c = map b; return c i
    b = alloc; fill > b; i = view.dtype b; c = alloc; map b > c; return c i
    - result 0 is not computed in the memory of %b: it is used later
"""

# Each starts with `w:weight = constant; p:packed = pack w`; x is an image.
CONVOLUTIONS = """
b:image = conv x p; return b
    b = _convolution_pointwise x p; return b
b:image = conv x p; c:image = map b; return c
    b = _convolution_pointwise x p; map b > b; return b
b:image = conv x p x; return b
    b = _convolution_pointwise.binary x p x; return b
m:image = fill; b:image = conv x p m; return b
    m = alloc; fill > m; _convolution_pointwise_.binary x p m; return m
m:image = fill; b:image = conv x p m; return b m
    m = alloc; fill > m; b = _convolution_pointwise.binary x p m; return b m
m:image = fill; b:image = conv m p m; return b
    m = alloc; fill > m; b = _convolution_pointwise.binary m p m; return b
m:image = fill; v:image = view m; b:image = conv v p m; return b
    m = alloc; fill > m; v = view m; b = _convolution_pointwise.binary v p m; return b
m:image = fill; v:image = view m; b:image = conv x p m; return b v
    m = alloc; fill > m; v = view m; b = _convolution_pointwise.binary x p m; return b v
m:dense = fill; b:image = conv x p m; return b
    m = alloc; fill > m; b = _convolution_pointwise.binary x p m; return b
m:image = fill; v:dense = view m; b:image = conv x p v; return b
    m = alloc; fill > m; v = view m; b = _convolution_pointwise.binary x p v; return b
m:image = fill; b:image = conv x p m; c:image = conv b p m; return c
    m = alloc; fill > m; b = _convolution_pointwise.binary x p m; _convolution_pointwise_.binary
    b p m; return m
m:image = relu x; b:image = conv x p m; return b
    m = relu x; b = _convolution_pointwise.binary x p m; return b
m:image = conv x p; b:image = conv x p m; return b
    m = _convolution_pointwise x p; _convolution_pointwise_.binary x p m; return m
"""

# Copies at the end, before something overwrites what is still wanted.
ENDS = """
update x 0; return
    return
    - argument 0 is copied to: no kernel computes what it gets
update y 0; return
    copy y > x; return
    - argument 0 is copied to: no kernel computes what it gets
update y 0; update x 1; return
    _ = alloc; copy y > _; _ = alloc; copy x > _; copy _ > x; copy _ > y; return
    - argument 0 is copied to: no kernel computes what it gets
    - argument 1 is copied to: no kernel computes what it gets
    - is copied first: another update may overwrite it
    - is copied first: another update may overwrite it
v = view y; update v 0; update x 1; return
    v = view y; _ = alloc; copy v > _; _ = alloc; copy x > _; copy _ > x; copy _ > y; return
    - argument 0 is copied to: no kernel computes what it gets
    - argument 1 is copied to: no kernel computes what it gets
    - is copied first: another update may overwrite it
    - is copied first: another update may overwrite it
v = view x; update v 0; return
    v = view x; _ = alloc; copy v > _; copy _ > x; return
    - argument 0 is copied to: no kernel computes what it gets
    - is copied first: another update may overwrite it
v:turned = view x; update v 0; return
    v = view x; _ = alloc; copy v > _; copy _ > x; return
    - argument 0 is copied to: no kernel computes what it gets
    - is copied first: another update may overwrite it
v:turned = view y; update v 0; return
    v = view y; copy v > x; return
    - argument 0 is copied to: no kernel computes what it gets
b = t y; update b 0; update x 1; return
    b = t y; _ = alloc; copy b > _; _ = alloc; copy x > _; copy _ > x; copy _ > y; return
    - argument 0 is copied to: no kernel computes what it gets
    - argument 1 is copied to: no kernel computes what it gets
    - is copied first: another update may overwrite it
    - is copied first: another update may overwrite it
b = far y; update b 1; update y 0; return
    b = alloc; far y > b; _ = alloc; copy y > _; copy b > y; copy _ > x; return
    - argument 1 is copied to: graph.update_input uses its old elements afterwards
    - argument 0 is copied to: no kernel computes what it gets
    - is copied first: another update may overwrite it
update y 0; return x
    _ = alloc; copy x > _; copy y > x; return _
    - argument 0 is copied to: no kernel computes what it gets
    - result 0 is copied: an argument with its memory is updated
update y 0; return x | x y | own
    _ = alloc; copy x > _; copy y > x; return _
    - argument 0 is copied to: no kernel computes what it gets
    - result 0 is copied: an argument with its memory is updated
update y 0; return x | x y | alias0
    copy y > x; return x
    - argument 0 is copied to: no kernel computes what it gets
update y 0; return y
    copy y > x; return y
    - argument 0 is copied to: no kernel computes what it gets
v:turned = view x; update y 0; return v
    v = view x; _ = alloc; copy v > _; copy y > x; return _
    - argument 0 is copied to: no kernel computes what it gets
    - result 0 is copied: an argument with its memory is updated
v = view x; update y 0; return v
    v = view x; _ = alloc; copy v > _; copy y > x; return _
    - argument 0 is copied to: no kernel computes what it gets
    - result 0 is copied: an argument with its memory is updated
v:same = view x; update y 0; return v
    v = view x; _ = alloc; copy v > _; copy y > x; return _
    - argument 0 is copied to: no kernel computes what it gets
    - result 0 is copied: an argument with its memory is updated
v:row = view x 4; w:row = view y; update y 0; return v w
    v = view x; w = view y; _ = alloc; copy v > _; copy y > x; return _ w
    - argument 0 is copied to: no kernel computes what it gets
    - result 0 is copied: an argument with its memory is updated
"""

# Results that eager mode has in arrays of their own, and those that share one.
RESULTS = """
b = fill; return b b
    b = alloc; fill > b; return b b
b = fill; return b b | x | own own
    b = alloc; fill > b; _ = alloc; copy b > _; return b _
b = fill; return b b | x | own shares0
    b = alloc; fill > b; return b b
b = fill; return b b b | x | own own shares1
    b = alloc; fill > b; _ = alloc; copy b > _; return b _ _
b = fill; v:turned = view b; return b v | x | own own
    b = alloc; fill > b; v = view b; _ = alloc; copy b > _; _ = view _; return b _
b = fill; v:turned = view b; return b v | x | own shares0
    b = alloc; fill > b; v = view b; return b v
b = fill; v:turned = view b; return v b | x | own own
    b = alloc; fill > b; v = view b; _ = alloc; copy b > _; return v _
b = fill; v:row = view b; w:row = view v; return b w | x | own own
    b = alloc; fill > b; v = view b; w = view v; _ = alloc; copy b > _; _ = view _; _ = view _;
    return b _
b = fill; v:row = view b; w:row = view b 4; return v w v | x | own shares0 own
    b = alloc; fill > b; v = view b; w = view b; _ = alloc; copy b > _; _ = view _; return v w _
b = fill; i:bits = bits b; return b i | x | own own
    b = alloc; fill > b; i = view.dtype b; _ = alloc; copy b > _; _ = view.dtype _; return b _
b = fill; i:bits = bits b; return b i | x | own shares0
    b = alloc; fill > b; i = view.dtype b; return b i
b = relu x; c = relu b; return b c | x | own own
    b = relu x; c = relu b; return b c
b = fill; c = far b; return b c | x | own own
    b = alloc; fill > b; c = alloc; far b > c; return b c
return x x | x | alias0 alias0
    return x x
return x x | x | alias0 own
    _ = alloc; copy x > _; return x _
"""


def cases(*texts: str) -> list[tuple[str, str, list[str]]]:
    """The cases: program, what becomes of it, remarks."""
    found: list[tuple[str, str, list[str]]] = []
    for line in "".join(texts).splitlines():
        if line.startswith("    - "):
            found[-1][2].append(line[6:])
        elif line.startswith("    "):
            found[-1] = found[-1][0], " ".join((found[-1][1], line.strip())).strip(), []
        elif line:
            found.append((line, "", []))
    return found


def check(text: str, expected: str, remarks: list[str], before: str = "") -> None:
    steps, *more = text.split(" | ")
    made, said = bufferized(program(before + steps, *more))
    assert (made, said) == (expected, remarks)


@pytest.mark.parametrize(
    ("text", "expected", "remarks"),
    cases(LAUNCHES, UPDATES, CHAINS, CALLS, ENDS, RESULTS),
)
def test_memory_is_chosen(text: str, expected: str, remarks: list[str]) -> None:
    check(text, expected, remarks)


@pytest.mark.parametrize(("text", "expected", "remarks"), cases(CONVOLUTIONS))
def test_a_convolution_is_added_to_what_dies(
    text: str, expected: str, remarks: list[str]
) -> None:
    weight = "w:weight = constant; p:packed = pack w; "
    check(f"{text} | x:image", f"w = constant; p = pack w; {expected}", remarks, weight)
