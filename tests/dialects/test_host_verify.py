"""Each rule of the host dialect's verifier, by a program that breaks it."""

from __future__ import annotations

import pytest

import irc
from irc.ir.diagnostics import InvalidIR
from irc.ir.verifier import verify
from tests.dialects.verifying import check

T = "tensor<[16] x f32, strides [1]>"
HALF = "tensor<[8] x f32, strides [1]>"
WIDE = "tensor<[16] x f64, strides [1]>"
KERNELS = """
kernel.func @copy(%x: !kernel.ptr<f32>, %y: !kernel.ptr<f32>, %b: index, %e: index)
    attributes {target = "cpu", outputs = array<i64: 1>} { kernel.return }
kernel.func @over(%x: !kernel.ptr<f32>, %y: !kernel.ptr<f32>, %b: index, %e: index)
    attributes {target = "cpu", outputs = array<i64: 1>, inplace = array<i64: 0, 1>}
    { kernel.return }
kernel.func @two(%x: !kernel.ptr<f32>, %y: !kernel.ptr<f32>, %z: !kernel.ptr<f32>,
                 %b: index, %e: index)
    attributes {target = "cpu", outputs = array<i64: 1, 2>} { kernel.return }
kernel.func @into(%x: !kernel.ptr<f32>, %y: !kernel.ptr<f32>)
    attributes {target = "gpu", outputs = array<i64: 1>, initialized = array<i64: 0, 1>,
                inplace = array<i64: 0, 1>} { kernel.return }
kernel.func @apart(%x: !kernel.ptr<f32>, %y: !kernel.ptr<f32>)
    attributes {target = "gpu", outputs = array<i64: 1>, initialized = array<i64: 0, 1>}
    { kernel.return }
kernel.func @sized(%x: !kernel.ptr<f32>, %y: !kernel.ptr<f32>, %s0: index, %b: index, %e: index)
    attributes {target = "cpu", outputs = array<i64: 1>, symbols = ["s0"]} { kernel.return }
"""


def launch(callee: str, inputs: str, outs: str, types: str | None = None) -> str:
    counts = [len(v.split(",")) if v else 0 for v in (inputs, outs)]
    operands = ", ".join(v for v in (inputs, outs) if v)
    types = types or ", ".join([T] * sum(counts))
    segments = f"operandSegmentSizes = array<i64: {counts[0]}, {counts[1]}>"
    return f"host.launch {operands} {{callee = @{callee}, {segments}}} : ({types})\n"


def alloc(name: str, attributes: str = "", type_: str = T) -> str:
    return f"{name} = host.alloc {f'{{{attributes}}}' if attributes else ''} : {type_}\n"


def program(body: str, results: str = "", info: str = "") -> str:
    """A program with argument %x and the kernels above, returning `results` (of type T)."""
    declared = f" -> ({', '.join([T + info] * len(results.split(',')))})" if results else ""
    types = " : " + ", ".join([T] * len(results.split(","))) if results else ""
    head = f"host.func @main(%x: {T}){declared} {{\n{body}\nhost.return {results}{types}\n}}"
    return head + KERNELS


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (f"host.func @main(%x: {T}) {{ host.return }}", None),
        (f'"host.func"() ({{ ^a(%x: {T}): host.return }}) {{sym_name = "m", '
         "function_type = () -> ()} : () -> ()", "arguments differ from the function's type"),
        (f"host.func @main(%x: {T}) -> {HALF} {{ host.return %x : {T} }}",
         "operand types differ from the function's results"),
        (f"host.func @main(%x: {T}) attributes {{result_info = [{{}}]}} {{ host.return }}",
         "result_info has 1 entries, not 0"),
        (program("", "%x", " {irc.strides = #sym.dims<[1]>}"), None),
        (program("", "%x", " {irc.strides = #sym.dims<[2]>}"),
         r"result 0 has strides \[1\], its caller must see \[2\]"),
    ],
)  # fmt: skip
def test_functions(text, error):
    check(text, error)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (launch("copy", "%x", "%a"), None),
        (launch("missing", "%x", "%a"), "there is no kernel @missing in the module, but nothing"),
        (launch("main", "%x", "%a"), "there is no kernel @main in the module, but a host.func"),
        (launch("copy", "%x", "%a, %b"), "1 inputs and 2 outputs, but @copy takes 2 arrays"),
        (launch("two", "%x, %x", "%a"), "gives 1 outputs, @two writes 2"),
        (launch("copy", "%x", "%w", f"{T}, {WIDE}"), "output 0 is .*f64.* takes a !kernel.ptr<f32"),
        (launch("copy", "%w", "%a", f"{WIDE}, {T}"), "input 0 is .*f64.* takes a !kernel.ptr<f32>"),
        (launch("over", "%h", "%a", f"{HALF}, {T}"), "are one array to @over"),
        (f"%r = host.launch %x, %a {{callee = @copy, operandSegmentSizes = array<i64: 1, 1>}} "
         f": ({T}, {T}) -> {T}", "has outs and results"),
        (f"%r = host.launch %x {{callee = @copy, operandSegmentSizes = array<i64: 1, 0>}} "
         f": ({T}) -> {T}", "in a host program a launch writes the memory of its outs"),
        (launch("sized", "%x", "%a"), "@sized needs the symbol 's0', which is not bound here"),
        ("%n = host.item %i : (tensor<[] x i64, strides []>) -> index\n"
         '%s = sym.bind %n {symbol = "s0"} : (index) -> index\n' + launch("sized", "%x", "%a"),
         None),
    ],
)  # fmt: skip
def test_launches(body, error):
    head = alloc("%a") + alloc("%b") + alloc("%w", "", WIDE) + alloc("%h", "", HALF)
    head += launch("copy", "%x", "%h", f"{T}, {HALF}")
    head += """%i = host.constant {value = 4 : i64} : tensor<[] x i64, strides []>
      %c = host.constant {value = 1.0 : f64} : """ + WIDE
    head += f"\nhost.copy %c, %w : ({WIDE}, {WIDE})\n"
    check(program(head + body), error)


def test_symbols_of_arguments_are_bound_before_any_step():
    type_ = "tensor<[s0] x f32, strides [1]>"
    body = f"""%a = host.alloc : {type_}
      {launch("sized", "%x", "%a", f"{type_}, {type_}")}
      %0 = sym.bind_size %x {{dim = 0 : i64, symbol = "s0"}} : ({type_}) -> index"""
    text = f"host.func @main(%x: {type_}) {{ {body} host.return }}" + KERNELS
    # The type of %a comes before the binder too, which the level does not allow.
    check(text, "symbol 's0' in the type")
    check(text.replace("%a = host.alloc", "%q = sym.value {dim = #sym<4>} : index %a = host.alloc")
          .replace(body.splitlines()[-1], "")
          .replace("%q =", body.splitlines()[-1] + "\n%q ="), None)  # fmt: skip


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (launch("copy", "%a", "%b"), "reads %a, which nothing has written before"),
        (f"host.copy %a, %b : ({T}, {T})", "reads %a, which nothing has written"),
        (f"host.copy %x, %a : ({T}, {T}) " + launch("copy", "%a", "%b"), None),
        (launch("copy", "%x", "%x"), "reads %x in memory that it writes, which @copy does not"),
        (launch("over", "%x", "%x"), None),
        (launch("two", "%x", "%a, %a"), "writes %a and %a, which share memory"),
        (launch("two", "%x", "%a, %b"), None),
        (f"%v = host.view %x {{offset = #sym<0>}} : ({T}) -> {T} " + launch("over", "%v", "%x"),
         "reads %v in memory that it writes"),
        (f"%v = host.view %x {{offset = #sym<8>}} : ({T}) -> {HALF} "
         f"%w = host.view %x {{offset = #sym<0>}} : ({T}) -> {HALF} "
         + launch("copy", "%v", "%w", f"{HALF}, {HALF}"), None),
        (f"%v = host.view %x {{offset = #sym<7>}} : ({T}) -> {HALF} "
         f"%w = host.view %x {{offset = #sym<0>}} : ({T}) -> {HALF} "
         + launch("copy", "%v", "%w", f"{HALF}, {HALF}"), "reads %v in memory that it writes"),
        (f"%v = host.view %x {{offset = #sym<8>}} : ({T}) -> {HALF} "
         f"%w = host.view %x {{offset = #sym<0>}} : ({T}) -> {HALF} "
         + launch("copy", "%w", "%v", f"{HALF}, {HALF}"), None),
        (launch("into", "%x", "%a"), "output 0, which holds no copy of %x here"),
        (f"host.copy %x, %a : ({T}, {T}) " + launch("into", "%x", "%a"), None),
        (f"host.copy %x, %a : ({T}, {T}) " + launch("over", "%x", "%x")
         + launch("into", "%x", "%a"), "holds no copy of %x"),
        (launch("into", "%x", "%x"), None),
        (launch("apart", "%x", "%x"), "memory that it writes, which @apart does not allow"),
        (f"%k = host.constant {{value = 1.0 : f32}} : {T} " + launch("copy", "%x", "%k"),
         "writes %k, which is a constant"),
        (f"%k = host.constant {{value = 1.0 : f32}} : {T} host.copy %x, %k : ({T}, {T})",
         "writes %k, which is a constant"),
    ],
)  # fmt: skip
def test_what_is_read_and_written(body, error):
    check(program(alloc("%a") + alloc("%b") + body), error)


EXP = """{}host.call_aten %a{} {{callee = "{}", arguments = {{{}self = #aten.operand<0>}}}} """


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (EXP.format("%r = ", "", "aten.exp.default", "") + f": ({T}) -> {T}", "reads %a, which no"),
        (EXP.format("", ", %x", "aten.exp.out", "out = #aten.operand<1>, ") + f": ({T}, {T})",
         "reads %a, which nothing"),
        (EXP.format("", "", "aten.fill_.Scalar", "value = 1.0, ") + f": ({T})"
         + launch("copy", "%a", "%b"), None),
        (EXP.format("%r = ", "", "aten.exp.default", "out = #aten.operand<1>, ")
         + f": ({T}) -> {T}", "its arguments name operand 1 of 1"),
        (EXP.format("%r = ", ", %x", "aten.exp.default", "") + f": ({T}, {T}) -> {T}",
         "operand 1 stands for no argument of aten.exp.default"),
        (EXP.format("%r = ", "", "aten.exp.default", "").replace("}} ", '}, path = "fast"} ')
         + f": ({T}) -> {T}", "the path is 'fast', not shim, dispatcher, boxed"),
    ],
)  # fmt: skip
def test_calls(body, error):
    pytest.importorskip("torch")
    check(program(alloc("%a") + alloc("%b") + body), error)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("%v = host.view %a {offset = #sym<8>} : (A) -> H", None),
        ("%v = host.view %a {offset = #sym<9>} : (A) -> H", "from element 9 to 16 of memory whose"),
        ("%v = host.view %a {offset = #sym<-1>} : (A) -> H", "from element -1 to 6"),
        ("%u = host.view %a {offset = #sym<8>} : (A) -> H "
         "%v = host.view %u {offset = #sym<1>} : (H) -> H", "from element 9 to 16"),
        # An argument's storage may be larger.
        ("%v = host.view %x {offset = #sym<9>} : (A) -> H", None),
        ("%v = host.view %a {offset = #sym<0>} : (A) -> W", "another element or device"),
        ("%v = host.view %a {offset = #sym<0>} : (A) -> tensor<8xf32>", "needs the strides"),
        ("%v = host.alloc : tensor<8xf32>", "has no strides"),
        ("%v = host.alloc : tensor<[8] x f32, strides [0]>", "two elements of .* share a place"),
        ("%v = host.alloc {offset = #sym<32>} : A", "offset 32 is no multiple of 64 bytes"),
        ("%v = host.alloc {offset = #sym<0>, escapes} : A", "in the arena and escapes"),
        ("host.copy %x, %h : (A, H)", "another size"),
        ("host.copy %x, %w : (A, W)", "another element"),
        ("%n = host.item %x : (A) -> f64", "has not exactly one element"),
        ("%i = host.constant {value = 1 : i64} : tensor<[] x i64, strides []> "
         "%n = host.item %i : (tensor<[] x i64, strides []>) -> f64", "gives f64, not index"),
        ('%i = host.constant {value = "a"} : A', "is no constant"),
    ],
)  # fmt: skip
def test_memory(body, error):
    for short, type_ in (("A", T), ("H", HALF), ("W", WIDE)):
        body = body.replace(f"({short}", f"({type_}").replace(f", {short})", f", {type_})")
        body = body.replace(f"> {short}", f"> {type_}").replace(f": {short}", f": {type_}")
    head = alloc("%a") + alloc("%h", "", HALF) + alloc("%w", "", WIDE)
    check(program(head + body), error)


def test_what_is_returned_escapes():
    body = alloc("%a", "escapes") + launch("copy", "%x", "%a")
    view = f"%v = host.view %a {{offset = #sym<0>}} : ({T}) -> {T}"
    check(program(body, "%a"), None)
    check(program(body + view, "%v"), None)
    check(program(body.replace("{escapes}", ""), "%a"), "%a, whose memory does not escape")
    check(program(body.replace("{escapes}", "") + view, "%v"), "%v, whose memory does not escape")
    check(program(alloc("%a", "escapes"), "%a"), "reads %a, which nothing has written")


KEEPER = 'aten.schema {schema = "kept::watch(Tensor x) -> ()"}\n'


@pytest.mark.fault("V3")
@pytest.mark.parametrize(
    ("operator", "error"),
    [
        ("aten.extern.kept.watch.default", "may keep %v, whose memory does not escape"),
        ("aten.extern.kept.unknown.default", "may keep %v, whose memory does not escape"),
        ("aten.sum.default", None),
    ],
)
def test_what_a_call_may_keep_escapes(operator, error):
    argument = "x" if "kept" in operator else "self"
    body = (
        alloc("%a") + launch("copy", "%x", "%a")
        + f"%v = host.view %a {{offset = #sym<0>}} : ({T}) -> {T}\n"
        + f'host.call_aten %v {{callee = "{operator}", '
          f"arguments = {{{argument} = #aten.operand<0>}}}} : ({T}) -> ()"
    )  # fmt: skip
    check(KEEPER + program(body), error)
    check(KEEPER + program(body.replace("host.alloc", "host.alloc {escapes}")), None)
    again = launch("copy", "%x", "%a")
    check(KEEPER + program(body.replace("host.alloc", "host.alloc {escapes}") + "\n" + again),
          error and "writes %a, which host.call_aten may have kept")  # fmt: skip
    check(KEEPER + program(body.replace("%v {callee", "%x {callee") + "\n"
                           + launch("copy", "%a", "%x")), None)  # fmt: skip


@pytest.mark.fault("V3")
def test_what_a_called_function_may_keep_escapes():
    inner = (
        f"host.func @inner(%z: {T}) -> {T} {{\n"
        '  host.call_aten %z {callee = "aten.extern.kept.watch.default", '
        f"arguments = {{x = #aten.operand<0>}}}} : ({T}) -> ()\n"
        f"  host.return %z : {T}\n}}\n"
    )
    body = (
        alloc("%a") + launch("copy", "%x", "%a")
        + "%c = arith.constant true\n"
        + f"%y = flow.cond %c, %a {{then = @inner, otherwise = @inner}} : (i1, {T}) -> {T}\n"
    )  # fmt: skip
    text = KEEPER + inner + program(body)
    check(text, "may keep %a, whose memory does not escape")
    check(text.replace("host.alloc", "host.alloc {escapes}"), None)
    harmless = text.replace("aten.extern.kept.watch.default", "aten.sum.default")
    check(harmless.replace("{x = #aten", "{self = #aten"), None)


def arena(first: str, second: str, third: str, *more: str, type_: str = T) -> str:
    """%a and %b live at one time, %c after %a."""
    offsets = [f"offset = #sym<{o}>" for o in (first, second, third)]
    types = f"{type_}, {type_}"
    return "\n".join([
        *more,
        alloc("%a", offsets[0], type_), launch("copy", "%x", "%a", types),
        alloc("%b", offsets[1], type_), launch("copy", "%a", "%b", types),
        alloc("%c", offsets[2], type_), launch("copy", "%b", "%c", types),
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("offsets", "error"),
    [
        (("0", "64", "0"), None),
        (("128", "64", "128"), None),
        (("0", "0", "64"), r"\[0, \+64\) of the arena is not known to be apart from \[0, \+64\)"),
        (("0", "64", "64"), "which %b takes up at the same time"),
    ],
)
def test_the_arena_is_not_shared_at_one_time(offsets, error):
    check(program(arena(*offsets)), error)


def test_a_view_keeps_its_memory_in_use():
    view = f"%v = host.view %a {{offset = #sym<0>}} : ({T}) -> {T}\n"
    text = arena("0", "64", "0").replace(alloc("%b", "offset = #sym<64>"), view
                                         + alloc("%b", "offset = #sym<64>"))  # fmt: skip
    check(program(text), None)
    check(program(text + launch("copy", "%v", "%b")), r"apart from \[0, \+64\)")


SIZED = "tensor<[s0] x f32, strides [1]>"
SIZE = "floordiv(s0*4 + 63, 64)*64"


@pytest.mark.parametrize(
    ("offsets", "error"),
    [
        (("0", SIZE, "0"), None),
        ((f"{SIZE} + 64", f"{SIZE}*2 + 64", "64"), None),
        (("0", "64", "0"), "is not known to be apart from"),
        (("0", SIZE, SIZE), "is not known to be apart from"),
    ],
)
def test_symbolic_places_are_proven_apart(offsets, error):
    bind = f'%0 = sym.bind_size %x {{dim = 0 : i64, symbol = "s0"}} : ({SIZED}) -> index'
    text = program(arena(*offsets, bind, type_=SIZED)).replace(f"%x: {T}", f"%x: {SIZED}")
    check(text, error)


def test_places_whose_sizes_may_look_negative():
    """Offsets behind an allocation of (s0 - s1)*64 bytes: a size is never negative."""
    type_ = "tensor<[(s0 - s1)*16] x f32, strides [1]>"
    size = "(s0 - s1)*64"
    bind = "\n".join(
        f'%{k} = sym.bind_size %x {{dim = {k} : i64, symbol = "s{k}"}} '
        ": (tensor<[s0, s1] x f32, strides [s1, 1]>) -> index"
        for k in (0, 1)
    )
    text = arena("0", size, f"{size}*2", bind, type_=type_).replace("%x, %a", "%y, %a")
    text = text.replace(bind, bind + "\n" + alloc("%y", "", type_)
                        + f"host.copy %z, %y : ({type_}, {type_})")  # fmt: skip
    text = program(text).replace(
        f"%x: {T}", f"%x: tensor<[s0, s1] x f32, strides [s1, 1]>, %z: {type_}"
    )
    check(text, None)
    check(text.replace(f"offset = #sym<{size}*2>", f"offset = #sym<{size} - 64>"), "not known")


@pytest.mark.parametrize(("shape", "error"), [("16", None), ("8", "are tensor<8xf32>, not those")])
def test_constants_beside_the_text(shape, error):
    text = f'%k = host.constant {{value = #irc.resource<"00"> : tensor<{shape}xf32>}} : {T}'
    module = irc.parse(program(text), resources={"00": object()})
    if error is None:
        verify(module)
        return
    with pytest.raises(InvalidIR, match=error):
        verify(module)


BIT = "tensor<[] x i1, strides []>"
FLAG = 'host.flag {error = "IndexError", message = "no"}'
CHECKS = """
kernel.func @checks(%x: !kernel.ptr<f32>, %f: !kernel.ptr<i1>)
    attributes {target = "gpu", outputs = array<i64: 1>}
    { %t = arith.constant true kernel.check %t, %f : (i1, !kernel.ptr<i1>) kernel.return }
kernel.func @stores(%x: !kernel.ptr<f32>, %f: !kernel.ptr<i1>)
    attributes {target = "gpu", outputs = array<i64: 1>} { kernel.return }
"""


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (f"%f = {FLAG} : {BIT}\n" + launch("checks", "%x", "%f", f"{T}, {BIT}"), None),
        (f"%f = {FLAG} : {BIT}\n" + launch("checks", "%x", "%f", f"{T}, {BIT}") * 2, None),
        (alloc("%f", type_=BIT) + launch("checks", "%x", "%f", f"{T}, {BIT}"),
         "checks something by argument 1, and %f is no host.flag"),
        (f"%f = {FLAG} : {BIT}\n" + launch("stores", "%x", "%f", f"{T}, {BIT}"),
         "argument 1 is a host.flag, by which @stores checks nothing"),
        (f"%f = {FLAG} : {BIT}\n%c = host.item %f : ({BIT}) -> i1\n", "is used by host.item"),
        (f"%f = {FLAG} : tensor<[2] x i1, strides [1]>", "not one i1 in memory"),
        (f"%f = {FLAG} : tensor<[] x i8, strides []>", "not one i1 in memory"),
        (f"%f = {FLAG} : tensor<[] x i1>", "not one i1 in memory"),
        (f'%f = host.flag {{error = "OSError", message = "no"}} : {BIT}', "error 'OSError' is not"),
    ],
)  # fmt: skip
def test_flags(body, error):
    check(f"host.func @main(%x: {T}) {{\n{body}\nhost.return\n}}" + CHECKS, error)
