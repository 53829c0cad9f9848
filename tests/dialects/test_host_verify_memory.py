"""The memory of host programs: what just fits and what just does not, by tables of texts."""

from __future__ import annotations

import pytest

import irc
from irc.ir.diagnostics import InvalidIR
from irc.ir.verifier import verify
from tests.dialects.test_host_verify import KERNELS, WIDE, T, alloc, launch, program
from tests.dialects.verifying import check

SCALAR = "tensor<[] x i64, strides []>"
SIZED = "tensor<[s0] x f32, strides [1]>"


def bound(body: str, kind: str = SIZED, symbol: str = "s0") -> str:
    """A program whose argument %z binds a symbol."""
    bind = f'%sz = sym.bind_size %z {{dim = 0 : i64, symbol = "{symbol}"}} : ({kind}) -> index\n'
    return program(bind + body).replace(f"%x: {T}", f"%x: {T}, %z: {kind}")


# -- operations


def test_a_return_outside_of_a_host_program_promises_nothing():
    module = irc.parse(f'host.func @main(%x: {T}) {{ host.return }}\n"t.any"() ({{\n'
                       'host.return\n}) : () -> ()', allow_unregistered=True)  # fmt: skip
    verify(module)
    last = module.lookup("main").block.last
    last.detach()
    verify(last)


def test_a_host_program_has_one_block():
    text = ('"host.func"() ({ ^a: host.return ^b: host.return }) {sym_name = "m", '
            "function_type = () -> ()} : () -> ()")  # fmt: skip
    check(text, "a host program's body is one block, not 2")


PAIRED = """
kernel.func @pairs(%x: !kernel.ptr<f32>, %y: !kernel.ptr<f32>, %z: !kernel.ptr<f32>,
    %w: !kernel.ptr<f32>) attributes {target = "gpu", outputs = array<i64: 2, 3>,
    KIND = array<i64: 0, 2, 1, 3>} { kernel.return }
"""
SHORT = "tensor<[8] x f32, strides [1]>"
FLAT = "tensor<[1, 16] x f32, strides [16, 1]>"


@pytest.mark.parametrize(
    ("kinds", "error"),
    [
        ((T, T, T, T), None),
        ((T, SHORT, T, SHORT), None),
        ((T, T, T, SHORT), "input 1 and output 1 are one array to @pairs"),
        ((T, T, SHORT, T), "input 0 and output 0 are one array to @pairs"),
        ((T, FLAT, T, T), "input 1 and output 1 are one array to @pairs"),
        ((T, SIZED, T, T), None),  # it may be of the size
        ((T, T, T, SIZED), None),
    ],
)
def test_pairs_of_a_kernel_are_of_one_size(kinds, error):
    names = [f"%m{k}" for k in range(4)]
    body = "".join(alloc(n, "", kind) for n, kind in zip(names, kinds, strict=True))
    for name, kind in zip(names, kinds, strict=True):
        body += launch("copy", "%x", name, f"{T}, {kind}")
    body += launch("pairs", ", ".join(names[:2]), ", ".join(names[2:]), ", ".join(kinds))
    check(bound(body) + PAIRED.replace("KIND", "inplace"), error)
    if error is None:
        text = bound(body) + PAIRED.replace("KIND", "initialized")
        check(text, "output 0, which holds no copy of %m0 here")


@pytest.mark.parametrize(
    ("source", "target", "error"),
    [(T, T, None), (T, SHORT, "another size"), (T, WIDE, "another element"),
     (T, FLAT, "another size"), (T, SIZED, None), (SIZED, T, None),
     (T, "tensor<[16, 1] x f32, strides [1, 1]>", "another size"),
     ("tensor<[2, 8] x f32, strides [8, 1]>", "tensor<[2, 9] x f32, strides [9, 1]>", "another s"),
     ("tensor<[2, 8] x f32, strides [8, 1]>", "tensor<[3, 8] x f32, strides [8, 1]>", "another s"),
     ("tensor<[2, 8] x f32, strides [8, 1]>", "tensor<[2, 8] x f32, strides [1, 2]>", None)],
)  # fmt: skip
def test_copies_are_of_one_size(source, target, error):
    name = {T: "%x", SIZED: "%z"}.get(source, "%b")
    copy = f"host.copy {name}, %a : ({source}, {target})"
    known = alloc("%b", "", source) + launch("copy", "%x", "%b", f"{T}, {source}")
    check(bound((known if name == "%b" else "") + alloc("%a", "", target) + copy), error)


@pytest.mark.parametrize(
    ("kind", "every", "made", "error"),
    [
        (SCALAR, False, "index", None),
        (SCALAR, False, "f64", "gives f64, not index"),
        ("tensor<[1, 1] x f32, strides [1, 1]>", False, "f64", None),
        ("tensor<[1, 2] x f32, strides [2, 1]>", False, "f64", "has not exactly one element"),
        ("tensor<[0] x f32, strides [1]>", False, "f64", "has not exactly one element"),
        (SIZED, False, "f64", None),  # it may be one
        ("tensor<[4] x i1, strides [1]>", True, "i1", None),
        ("tensor<[4] x i1, strides [1]>", True, "index", "gives index, not i1"),
        ("tensor<[4] x i1, strides [1]>", False, "i1", "has not exactly one element"),
        (T, True, "f64", "'every' wants elements of i1, not f32"),
    ],
)
def test_numbers_read_from_memory(kind, every, made, error):
    body = f"%n = host.item %q {{{'every' if every else ''}}} : ({kind}) -> {made}"
    text = program(f'%s = sym.bind_size %q {{dim = 0 : i64, symbol = "s0"}} : ({kind}) -> index\n'
                   + body if "s0" in kind else body)  # fmt: skip
    check(text.replace(f"%x: {T}", f"%x: {T}, %q: {kind}"), error)


@pytest.mark.parametrize(
    ("value", "kind", "error"),
    [
        ("1.0 : f32", T, None),
        ("true", T, None),
        ("1 : i64", T, None),
        ("dense<1.0> : tensor<16xf32>", T, None),
        ("dense<1.0> : tensor<8xf32>", T, "its elements are tensor<8xf32>, not those of"),
        ("dense<1.0> : tensor<16xf64>", T, "its elements are tensor<16xf64>, not those of"),
        ("dense<1.0> : vector<16xf32>", T, None),
        ('"text"', T, "is no constant"),
        ("[1 : i64]", T, "is no constant"),
    ],
)
def test_constants(value, kind, error):
    check(program(f"%k = host.constant {{value = {value}}} : {kind}"), error)


@pytest.mark.parametrize(
    ("offset", "error"),
    [
        ("0", None), ("64", None), ("32", "offset 32 is no multiple of 64 bytes"),
        ("-64", "offset -64 is no multiple"), ("s0*64", None), ("s0*32", "no multiple"),
        ("s0*64 + 32", "no multiple"),
    ],
)  # fmt: skip
def test_places_in_the_arena(offset, error):
    check(bound(alloc("%a", f"offset = #sym<{offset}>")), error)


CALL = "{}host.call_aten {} {{callee = \"{}\", arguments = {{{}}}}} : {}"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ("tensors = [#aten.operand<0>, #aten.operand<1>]", None),
        ("tensors = [#aten.operand<0>, #aten.operand<2>]", "its arguments name operand 2 of 2"),
        ("tensors = [#aten.operand<0>, #aten.operand<0>]", "operand 1 stands for no argument of"),
        ("tensors = [#aten.operand<1>, #aten.operand<1>]", "operand 0 stands for no argument of"),
        ("tensors = [#aten.operand<0>], dim = #aten.operand<1>", None),
    ],
)
def test_calls_name_each_operand(arguments, error):
    pytest.importorskip("torch")
    made = "tensor<[32] x f32, strides [1]>"
    kinds = f"({T}, {T}) -> {made}"
    call = CALL.format("%r = ", "%x, %x", "aten.extern.some.cat.default", arguments, kinds)
    check(program(call), error)
    check(program(call.replace("%x, %x", "%x, %a").replace("%r =", f"{alloc('%a')}%r =")),
          error or "writes|reads %a|may keep")  # fmt: skip


@pytest.mark.parametrize(
    ("path", "error"),
    [("shim", None), ("dispatcher", None), ("boxed", None), ("none", "the path is 'none', not")],
)
def test_paths_of_calls(path, error):
    pytest.importorskip("torch")
    kinds = f"({T}) -> {T}"
    call = CALL.format("%r = ", "%x", "aten.exp.default", "self = #aten.operand<0>", kinds)
    check(program(call.replace("callee", f'path = "{path}", callee')), error)


# -- what is written before it is read


VIEW = "{} = host.view {} {{offset = #sym<{}>}} : (" + T + ") -> {}\n"


def views(first: int, second: int, one: str = SHORT, other: str = SHORT) -> str:
    return VIEW.format("%v", "%x", first, one) + VIEW.format("%w", "%x", second, other)


EMPTY = "tensor<[0] x f32, strides [1]>"


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (views(0, 8) + launch("copy", "%v", "%w", f"{SHORT}, {SHORT}"), None),
        (views(0, 7) + launch("copy", "%v", "%w", f"{SHORT}, {SHORT}"), "in memory that it writes"),
        (views(8, 0) + launch("copy", "%v", "%w", f"{SHORT}, {SHORT}"), None),
        (views(7, 0) + launch("copy", "%v", "%w", f"{SHORT}, {SHORT}"), "in memory that it writes"),
        (views(0, 8) + launch("two", "%z", "%v, %w", f"{SIZED}, {SHORT}, {SHORT}"), None),
        (views(0, 7) + launch("two", "%z", "%v, %w", f"{SIZED}, {SHORT}, {SHORT}"), "share memory"),
        (views(8, 0) + launch("two", "%z", "%v, %w", f"{SIZED}, {SHORT}, {SHORT}"), None),
        (views(0, 4, one=EMPTY) + launch("copy", "%v", "%w", f"{EMPTY}, {SHORT}"), None),
        (views(0, "s0") + launch("copy", "%v", "%w", f"{SHORT}, {SHORT}"), "that it writes"),
        (views("s0", 8) + launch("copy", "%v", "%w", f"{SHORT}, {SHORT}"), "that it writes"),
        (views(0, 8, one=SIZED) + launch("copy", "%v", "%w", f"{SIZED}, {SHORT}"), "that it wri"),
        (views(8, 0, other=SIZED) + launch("copy", "%v", "%w", f"{SHORT}, {SIZED}"), "that it wr"),
        # Views of different arguments.
        (VIEW.format("%v", "%x", 0, SHORT) + VIEW.format("%w", "%a", 0, SHORT)
         + launch("copy", "%v", "%w", f"{SHORT}, {SHORT}"), None),
    ],
)  # fmt: skip
def test_views_that_are_apart(body, error):
    check(bound(alloc("%a") + launch("copy", "%x", "%a") + body), error)


INTO, OVER = launch("into", "%x", "%a"), launch("over", "%a", "%a")


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("COPY" + INTO, None),
        ("COPY" + INTO + INTO, "output 0, which holds no copy of %x here"),
        ("COPY" + OVER + INTO, "holds no copy of %x"),
        ("COPY" + launch("copy", "%a", "%b") + INTO, None),
        ("COPY" + launch("copy", "%a", "%x") + INTO, "holds no copy of %x"),
        ("COPY" + f"host.copy %b, %a : ({T}, {T})\n" + INTO, "holds no copy of %x"),
        (VIEW.format("%v", "%a", 0, T) + "COPY" + launch("copy", "%b", "%v") + INTO,
         "holds no copy of %x"),
        (VIEW.format("%v", "%x", 0, T) + "COPY" + launch("copy", "%b", "%v") + INTO,
         "holds no copy of %x"),
        ("COPY" + f"host.copy %x, %b : ({T}, {T})\n" + INTO, None),
        ("COPY" + launch("into", "%b", "%a"), "holds no copy of %b"),
    ],
)  # fmt: skip
def test_copies_that_are_still_ones(body, error):
    body = body.replace("COPY", f"host.copy %x, %a : ({T}, {T})\n")
    check(program(alloc("%a") + alloc("%b") + launch("copy", "%x", "%b") + body), error)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("%n = host.item %e : (tensor<[1] x f32, strides [1]>) -> f64", "reads %e, which nothing"),
        (f"%q = host.call_aten %a {{callee = \"aten.exp.default\", arguments = {{self = "
         f"#aten.operand<0>}}}} : ({T}) -> {T}", "reads %a, which nothing"),
        (f"%c = arith.constant true\n%q = flow.cond %c, %a {{then = @inner, otherwise = @inner}} : "
         f"(i1, {T}) -> {T}", "reads %a, which nothing has written"),
        (f"%c = arith.constant true\n%q = flow.cond %c, %x {{then = @inner, otherwise = @inner}} : "
         f"(i1, {T}) -> {T}", None),
        (launch("copy", "%none", "%a", f"{EMPTY}, {T}"), None),  # there is nothing to write
        (launch("copy", "%none", "%none", f"{EMPTY}, {EMPTY}"), None),
        (VIEW.format("%v", "%a", 0, SHORT) + launch("copy", "%v", "%b", f"{SHORT}, {T}"),
         "reads %v, which nothing"),
        (VIEW.format("%v", "%a", 0, SHORT) + launch("copy", "%x", "%v", f"{T}, {SHORT}")
         + launch("copy", "%a", "%b"), None),
    ],
)  # fmt: skip
def test_each_reader_reads_what_was_written(body, error):
    pytest.importorskip("torch")
    inner = f"host.func @inner(%z: {T}) -> {T} {{\n  host.return %z : {T}\n}}\n"
    head = alloc("%a") + alloc("%b") + alloc("%e", "", "tensor<[1] x f32, strides [1]>")
    check(inner + program(head + alloc("%none", "", EMPTY) + body), error)


@pytest.mark.parametrize(
    ("operator", "error"),
    [("aten.exp.out", None), ("aten.extern.some.thing.default", "writes %k, which is a constant")],
)
def test_what_an_operator_writes(operator, error):
    """One without a schema may write each of its operands."""
    pytest.importorskip("torch")
    constant = f"%k = host.constant {{value = 1.0 : f32}} : {T}\n"
    body = alloc("%a", "escapes") + constant + (
        f'host.call_aten %k, %a {{callee = "{operator}", arguments = {{self = #aten.operand<0>, '
        f"out = #aten.operand<1>}}}} : ({T}, {T})\n"
    )  # fmt: skip
    check(program(body), error)
    swapped = body.replace("%k, %a {callee", "%a, %k {callee")
    check(program(swapped), "reads %a, which nothing" if error is None else "is a constant")


# -- the arena


def row(*offsets: str, order: str = "abcd", alive: str = "abcd") -> str:
    """Allocations of the sizes below at these offsets, made in an order, in use at one time."""
    kinds = {"a": T, "b": GROWS, "c": GROWS, "d": T}
    places = dict(zip("abcd", offsets, strict=False))
    body = "".join(alloc(f"%{n}", f"offset = #sym<{places[n]}>", kinds[n])
                   + launch("copy", "%x", f"%{n}", f"{T}, {kinds[n]}")
                   for n in order if n in places)  # fmt: skip
    used = "".join(launch("copy", f"%{n}", "%x", f"{kinds[n]}, {T}")
                   for n in alive if n in places)  # fmt: skip
    binds = "".join(f'%s{d} = sym.bind_size %z {{dim = {d} : i64, symbol = "s{d}"}} : ({TWO}) -> '
                    "index\n" for d in (0, 1))  # fmt: skip
    return program(binds + body + used).replace(f"%x: {T}", f"%x: {T}, %z: {TWO}")


TWO = "tensor<[s0, s1] x f32, strides [s1, 1]>"
#: 64 bytes for each of s0 - s1, which is not known not to be negative.
GROWS = "tensor<[(s0 - s1)*16] x f32, strides [1]>"
STEP = "(s0 - s1)*64"


@pytest.mark.parametrize("order", ["abcd", "dcba", "bdac", "cadb"])
@pytest.mark.parametrize(
    ("offsets", "fits"),
    [
        (("0", "64"), True),
        (("0", "64", f"64 + {STEP}"), True),
        (("0", "64", f"64 + {STEP}", f"64 + {STEP}*2"), True),
        # Where the last two lie depends on sizes of which nothing is known.
        (("0", "64", f"{STEP}"), False),
        (("0", "64", f"64 + {STEP}*2"), False),
        (("0", "64", f"64 + {STEP}", f"64 + {STEP}"), False),
        (("0", "0"), False),
        (("64", "0", f"128 + {STEP}"), False),
    ],
)
def test_rows_of_places(offsets, fits, order):
    check(row(*offsets, order=order), None if fits else "is not known to be apart from")


@pytest.mark.parametrize(
    ("alive", "fits"), [("abcd", False), ("a", True), ("b", False), ("d", True)]
)
def test_places_are_shared_over_time(alive, fits):
    """%d lies where %b does, of which the one is in use after the other."""
    offsets = ("0", "64", f"64 + {STEP}", "64")
    check(row(*offsets, alive=alive), None if fits else "is not known to be apart from")


def test_static_places_that_touch():
    kinds = {64: T, 128: "tensor<[32] x f32, strides [1]>"}
    for first, second, fits in ((0, 128, True), (0, 64, False), (64, 0, False), (128, 0, True),
                                (128, 64, False), (256, 0, True)):  # fmt: skip
        body = alloc("%a", f"offset = #sym<{first}>", kinds[128])
        body += launch("copy", "%x", "%a", f"{T}, {kinds[128]}")
        body += alloc("%b", f"offset = #sym<{second}>", kinds[128])
        body += launch("copy", "%a", "%b", f"{kinds[128]}, {kinds[128]}")
        check(program(body), None if fits else "is not known to be apart from")


def test_what_escapes_has_no_place():
    body = alloc("%a", "offset = #sym<0>") + launch("copy", "%x", "%a") + alloc("%b", "escapes")
    check(program(body + launch("copy", "%a", "%b")), None)
    with pytest.raises(InvalidIR, match="has a place in the arena and escapes"):
        verify(irc.parse(program(alloc("%b", "escapes, offset = #sym<0>"))))
    assert KERNELS in program("")


@pytest.mark.parametrize(
    ("binder", "offset", "fits"),
    [
        ("sym.bind_size %z {dim = 0 : i64, ", "64 + k*64", True),  # a size is never negative
        ("sym.bind_size %z {dim = 0 : i64, ", "k*64", False),
        ("sym.bind_size %z {dim = 0 : i64, minimum = 1 : i64, ", "k*64", True),
        ("sym.bind_size %z {dim = 0 : i64, maximum = 3 : i64, ", "256 - k*64", True),
        ("sym.bind_size %z {dim = 0 : i64, maximum = 4 : i64, ", "256 - k*64", False),
        ("sym.bind %n {", "64 + k*64", False),
        ("sym.bind %n {minimum = 0 : i64, ", "64 + k*64", True),
        ("sym.bind %n {minimum = -1 : i64, ", "64 + k*64", False),
        ("sym.bind %n {maximum = 3 : i64, ", "256 - k*64", True),
    ],
)
def test_what_binders_say_of_places(binder, offset, fits):
    kind = "tensor<[k] x f32, strides [1]>" if "bind_size" in binder else T
    source = kind if "bind_size" in binder else "index"
    head = (f"%i = host.constant {{value = 1 : i64}} : {SCALAR}\n"
            f"%n = host.item %i : ({SCALAR}) -> index\n"
            f'%k = {binder}symbol = "k"}} : ({source}) -> index\n')  # fmt: skip
    body = alloc("%a", "offset = #sym<0>") + launch("copy", "%x", "%a")
    body += alloc("%b", f"offset = #sym<{offset}>") + launch("copy", "%a", "%b")
    text = program(head + body).replace(f"%x: {T}", f"%x: {T}, %z: {kind}")
    check(text, None if fits else "is not known to be apart from")


def test_outside_of_a_module_nothing_is_known_of_kernels():
    function = irc.parse(program(alloc("%a") + launch("missing", "%x", "%a"))).lookup("main")
    function.detach()
    verify(function)


@pytest.mark.parametrize(("outs", "error"), [("%a", None), ("%a, %b", "but @any takes 2 arrays")])
def test_a_kernel_that_names_no_outputs(outs, error):
    kernel = """kernel.func @any(%x: !kernel.ptr<f32>, %y: !kernel.ptr<f32>)
      attributes {target = "gpu"} { kernel.return }"""
    check(program(alloc("%a") + alloc("%b") + launch("any", "%x", outs)) + kernel, error)


@pytest.mark.parametrize(
    ("maker", "error"),
    [
        ("%a = host.alloc : T", "reaches from element 9 to 16 of memory whose last element is 15"),
        ('%a = host.call_aten %x {callee = "aten.exp.default", arguments = '
         "{self = #aten.operand<0>}} : (T) -> T", None),  # its storage may be larger
        ("%a = host.view %x {offset = #sym<0>} : (T) -> T", None),
    ],
)  # fmt: skip
def test_views_of_what_is_allocated_stay_inside(maker, error):
    pytest.importorskip("torch")
    body = maker.replace("(T)", f"({T})").replace("-> T", f"-> {T}").replace(": T", f": {T}")
    check(program(f"{body}\n{VIEW.format('%v', '%a', 9, SHORT)}"), error)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ("self = #aten.operand<0>, dim = [0 : i64]", None),
        ("self = #aten.operand<0>, dim = \"first\"", "dim"),
        ("self = #aten.operand<0>, wrong = 1 : i64", "wrong"),
        ("dim = #aten.operand<0>", "self"),
    ],
)
def test_calls_are_as_their_operator_says(arguments, error):
    pytest.importorskip("torch")
    made = "tensor<[] x f32, strides []>"
    check(program(CALL.format("%r = ", "%x", "aten.sum.dim_IntList", arguments,
                              f"({T}) -> {made}")), error)  # fmt: skip


@pytest.mark.parametrize(
    ("inside", "error"), [(False, None), (True, "@sized needs the symbol 's0'")]
)
def test_a_binder_inside_of_a_region_binds_nothing_for_launches(inside, error):
    bind = '%s = sym.bind %n {symbol = "s0"} : (index) -> index\n'
    if inside:
        bind = f'"t.region"() ({{\n{bind}"t.end"() : () -> ()\n}}) : () -> ()\n'
    text = program(alloc("%a") + launch("sized", "%x", "%a") + bind)
    module = irc.parse(text.replace(f"%x: {T}", f"%x: {T}, %n: index"), allow_unregistered=True)
    if error is None:
        verify(module)
        return
    with pytest.raises(InvalidIR, match=error):
        verify(module)
