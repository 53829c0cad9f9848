"""In whose memory `insert-layout-copies` leaves results; views by places in bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import irc.interp  # noqa: E402
from irc.dialects import func, graph, layout  # noqa: E402
from irc.ir import parse  # noqa: E402
from irc.ir import types as T  # noqa: E402
from irc.ir.builder import Builder  # noqa: E402
from irc.ir.core import BlockArgument, Value  # noqa: E402
from irc.ir.module import ModuleOp  # noqa: E402
from irc.ir.passes import PassContext, PassManager  # noqa: E402
from irc.ir.strides import last_element  # noqa: E402
from irc.ir.symbols import symbol  # noqa: E402
from irc.ir.types import TensorType  # noqa: E402
from irc.passes.layout.memory_views import view_at  # noqa: E402

BODY = """
func.func @main(%x: F8 {ARGUMENT}, %n: index) -> (RESULTS) attributes {level = "layout"} {
  %c = graph.constant {value = dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf32>} : F8
  %a = graph.neg %x : (F8) -> F8
  %b = graph.exp %x : (F8) -> F8
  %four = graph.full {value = 1.0 : f32} : F4
  %two = graph.full {value = 1.0 : f32} : F2
  %ints = graph.full {value = 1 : i32} : I4
  %shorts = graph.full {value = 1 : i16} : H4
  %longs = graph.full {value = 1 : i64} : L1
  %x2 = graph.slice %x {dim = 0 : i64, start = #sym<2>, step = 1 : i64, view} : (F8) -> F4
  %c2 = graph.slice %c {dim = 0 : i64, start = #sym<2>, step = 1 : i64, view} : (F8) -> F4
  %x3 = graph.slice %x {dim = 0 : i64, start = #sym<3>, step = 1 : i64, view} : (F8) -> F4
  %c3 = graph.slice %c {dim = 0 : i64, start = #sym<3>, step = 1 : i64, view} : (F8) -> F4
  %a1 = graph.slice %a {dim = 0 : i64, start = #sym<1>, step = 1 : i64, view} : (F8) -> F4
  %a2 = graph.slice %a {dim = 0 : i64, start = #sym<2>, step = 1 : i64, view} : (F8) -> F4
  %a4 = graph.slice %a {dim = 0 : i64, start = #sym<4>, step = 1 : i64, view} : (F8) -> F2
  %b2 = graph.slice %b {dim = 0 : i64, start = #sym<2>, step = 1 : i64, view} : (F8) -> F4
  %s = sym.bind %n {symbol = "s0"} : (index) -> index
  %as = layout.view %a {offset = #sym<s0>} : (F8) -> F4
  %h1 = graph.slice %shorts {dim = 0 : i64, start = #sym<1>, step = 1 : i64, view} : (H4) -> H2
  func.return VALUES : TYPES
}"""
KINDS = {
    "F8": "tensor<[8] x f32, strides [1]>", "F4": "tensor<[4] x f32, strides [1]>",
    "F2": "tensor<[2] x f32, strides [1]>", "I4": "tensor<[4] x i32, strides [1]>",
    "H4": "tensor<[4] x i16, strides [1]>", "H2": "tensor<[2] x i16, strides [1]>",
    "L1": "tensor<[1] x i64, strides [1]>",
}
TYPES = {
    "x": "F8", "c": "F8", "a": "F8", "b": "F8", "four": "F4", "two": "F2", "ints": "I4",
    "shorts": "H4", "longs": "L1", "x2": "F4", "c2": "F4", "a1": "F4", "a2": "F4", "b2": "F4",
    "as": "F4", "h1": "H2", "x3": "F4", "c3": "F4", "a4": "F2",
}  # fmt: skip
WORDS = {
    "o": "irc.offset = #sym<{}>", "s": "irc.strides = #sym.dims<[{}]>",
    "@": "irc.shares = {} : i64", "^": "irc.alias_of = {} : i64", "!": "irc.saved",
}


def module_of(results: str, argument: str = "o0") -> ModuleOp:
    """A function that returns values ("a: o0 s1, four: o2 s1 @0"); of each it is said at which
    offset and with which strides it lies, which result it shares with, which argument it is in."""
    names, infos = [], []
    for result in results.split(", "):
        name, _, words = result.partition(":")
        names.append(name)
        infos.append(said(words))
    text = BODY.replace("{ARGUMENT}", said(argument))
    types = ", ".join(TYPES[n] for n in names)
    told = ", ".join(f"{TYPES[n]} {info}" for n, info in zip(names, infos, strict=True))
    text = text.replace("VALUES : TYPES", ", ".join(f"%{n}" for n in names) + f" : {types}")
    text = text.replace("RESULTS", told)
    for name, kind in KINDS.items():
        text = text.replace(name, kind)
    return parse(text)


def said(words: str) -> str:
    return f"{{{', '.join(WORDS[w[0]].format(w[1:]) for w in words.split())}}}"


def shown(value: Value) -> str:
    """A value as what it is a view or a copy of."""
    op: Any = value.defining_op
    if isinstance(value, BlockArgument) or value.name_hint:
        return str(value.name_hint or value.index)
    kind: Any = value.type
    if isinstance(op, layout.ViewOp):
        steps = "" if kind.strides[-1:] in ((), (1,)) else f"::{kind.strides[-1]}"
        return f"{shown(op.source)}[{op.offset}{steps}]"
    if isinstance(op, graph.CallAten):
        return f"{shown(op.operands[0])}.{kind.element}"
    return f"{op.name.partition('.')[2]}({shown(op.operands[0])})"


def returned(module: ModuleOp) -> list[str]:
    context = PassContext()
    PassManager.parse("insert-layout-copies", verify="each").run(module, context)
    (function,) = module.ops
    assert isinstance(function, func.FuncOp)
    joined = context.statistics["insert-layout-copies", "storages made of results"]
    return ["joined"] if joined else [shown(v) for v in function.return_op.operands]


@pytest.mark.parametrize(
    ("result", "argument", "expected"),
    [
        ("four: o2 s1 ^0", "o0", "x[2]"),
        ("four: o4 s1 ^0", "o2", "x[2]"),
        ("four: o2 s2 ^0", "o0", "x[2::2]"),
        ("four: os0 s1 ^0", "o0", "x[s0]"),
        ("four: os0 s1 ^0", "os0", "x[0]"),
        ("four: o2 s1 ^0", "", "four"),  # where the argument begins isn't known
        ("four: s1 ^0", "o0", "four"),
        ("four: o2 s1", "o0", "four"),
        ("x2: o2 s1 ^0", "o0", "x2"),
        ("x: o0 s1 ^0", "o0", "x"),
        ("ints: o2 s1 ^0", "o0", "x[2].i32"),
        ("ints: os0 s1 ^0", "o0", "x[s0].i32"),
        ("shorts: o6 s1 ^0", "o1", "x[2].i16[0]"),
        ("shorts: os0 s1 ^0", "o0", "shorts"),
        ("longs: o2 s1 ^0", "o2", "x[2].i64[0]"),
        ("x: o0 s1", "o0", "copy(x)"),
        ("x2: o0 s1", "o0", "copy(x2)"),
        ("c: o0 s1", "o0", "copy(c)"),
        ("c2: o0 s1", "o0", "copy(c2)"),
        ("a: o0 s1", "o0", "a"),
        ("a: o0 s2", "o0", "copy(a)"),
        ("longs: o0 s7", "o0", "longs[0::7]"),
    ],
)
def test_a_result_is_in_the_argument_that_it_shares(
    result: str, argument: str, expected: str
) -> None:
    assert returned(module_of(result, argument)) == [expected]


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ("a: o0 s1, four: o2 s1 @0", "a a[2]"),
        ("a: o0 s1, a2: o2 s1 @0", "a a2"),
        ("a: o0 s1, a1: o2 s1 @0", "a a[2]"),
        ("a: o0 s1, b2: o2 s1 @0", "a a[2]"),
        ("a: o0 s1, two: o2 s2 @0", "a a[2::2]"),
        ("a: o0 s1, a4: o4 s1 @0", "a a4"),
        ("a: o0 s1, a4: o4 s2 @0", "a a[4::2]"),
        ("a: o0 s1, a2: o2 s2 @0", "joined"),  # the last one lies behind a's end
        ("a: o0 s1, four: o2 s1", "a four"),
        ("four: o2 s1, a: o0 s1 @0", "a[2] a"),
        ("a: o0 s1, ints: o2 s1 @0", "a a[2].i32"),
        ("a: o0 s1, h1: o6 s1 @0", "a a[3].i16[0]"),
        ("a2: o0 s1, two: o1 s1 @0", "a2 a2[1]"),
        ("a2: o0 s1, two: o1 s1 @0, two: o0 s1 @0", "a2 a2[1] a2[0]"),
        ("a2: o0 s1, a2: o0 s1 @0", "a2 a2[0]"),  # two handles on one array
        ("a2: o0 s1, a2: o0 s1", "a2 copy(a2)"),
        ("a2: o0 s1, four: o0 s1 @0", "a2 a2[0]"),
        ("as: o0 s1, two: o1 s1 @0", "as as[1]"),
        ("as: o0 s1, h1: o2 s1 @0", "as as[1].i16[0]"),
        ("as: o0 s1, longs: o1 s1 @0", "joined"),  # where it begins may be between two i64
        ("a1: o0 s1, longs: o0 s1 @0", "joined"),
        ("a1: o0 s1, longs: o0 s1 @0 !", "a1 longs"),  # what is saved may stay apart
        ("x3: o0 s1, longs: o0 s1 @0", "copy(x3) copy(x3)[0].i64[0]"),
        ("a2: o0 s1, longs: o0 s1 @0", "a2 a2[0].i64[0]"),
        ("x: o0 s1, four: o2 s1 @0", "copy(x) copy(x)[2]"),
        ("c: o0 s1, four: o2 s1 @0", "copy(c) copy(c)[2]"),
        ("a: o0 s1, a2: o2 s1", "a copy(a2)"),
        ("a: o0 s1, a2: o2 s1, b: o0 s1, b2: o2 s1 @2", "a copy(a2) b b2"),
    ],
)
def test_a_result_is_in_the_one_that_holds_it(results: str, expected: str) -> None:
    assert returned(module_of(results)) == expected.split()


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ("a1: o1 s1, a2: o2 s1 @0", "a1 a2"),
        ("a1: o4 s1, a2: o5 s1 @0", "a1 a2"),  # as far apart
        ("a1: o1 s1, a2: o3 s1 @0", "joined"),
        ("a1: o1 s1, b2: o2 s1 @0", "joined"),
        ("a1: o1 s1, four: o2 s1 @0", "joined"),
        ("a1: o1 s2, a2: o2 s2 @0", "joined"),  # other strides
        ("a1: o1 s1, a2: o2 s1", "a1 copy(a2)"),
        ("c2: o2 s1, c3: o3 s1 @0", "joined"),  # a constant's memory is no result's
        ("x2: o2 s1, x3: o3 s1 @0", "joined"),
        ("a1: o1 s1, a2: o2 s1 @0, a1: o1 s1, a2: o2 s1 @2", "joined"),
        ("a1: o1 s1, a2: o2 s1 @0, b2: o1 s1, four: o2 s1 @2", "joined"),
    ],
)
def test_results_of_one_storage_are_joined_where_they_are_apart(
    results: str, expected: str
) -> None:
    assert returned(module_of(results)) == expected.split()


# -- views of memory by places in bytes

DTYPES = {T.f32: np.float32, T.i16: np.int16, T.i64: np.int64, T.i8: np.int8, T.f64: np.float64}
N = symbol("n")


def view_of(source: TensorType, place: Any, type_: TensorType) -> ModuleOp | None:
    """A function that returns such a view of its argument, if there is one."""
    module = ModuleOp.empty()
    function = func.FuncOp.create("main", [source], ())
    module.block.append(function)
    builder = Builder.at_end(function.block)
    made = view_at(builder, function.block.arguments[0], place, type_)
    builder.create(func.ReturnOp, [] if made is None else [made])
    function.refresh_type()
    return None if made is None else module


@pytest.mark.parametrize(
    ("element", "place", "wanted", "sizes", "strides"),
    [
        (T.f32, 0, T.f32, (6,), (1,)), (T.f32, 8, T.f32, (2, 2), (1, 2)),
        (T.f32, 4, T.f32, (0,), (1,)), (T.f32, 8, T.i32, (4,), (1,)),
        (T.f32, 0, T.i16, (12,), (1,)), (T.f32, 2, T.i16, (11,), (1,)),
        (T.f32, 6, T.i16, (3, 3), (3, 1)), (T.f32, 22, T.i16, (1,), (1,)),
        (T.f32, 22, T.i16, (), ()), (T.f32, 3, T.i8, (2, 5), (7, 2)),
        (T.f32, 8, T.i16, (0, 3), (1, 9)), (T.f32, 0, T.i64, (3,), (1,)),
        (T.f32, 8, T.i64, (2,), (1,)), (T.f32, 16, T.i64, (1,), (1,)), (T.f32, 16, T.i64, (), ()),
        (T.f32, 0, T.i64, (2,), (2,)), (T.f32, 0, T.i64, (1, 3), (9, 1)),
        (T.i16, 8, T.i64, (1,), (1,)), (T.i16, 4, T.f32, (2,), (1,)),
        (T.i64, 20, T.f32, (2,), (3,)), (T.i64, 47, T.i8, (1,), (1,)),
    ],
)  # fmt: skip
def test_a_view_shows_the_bytes_that_lie_there(
    element: Any, place: int, wanted: Any, sizes: Any, strides: Any
) -> None:
    numpys = {**DTYPES, T.i32: np.int32}
    memory = np.arange(48, dtype=np.uint8)
    x = torch.from_numpy(memory.view(numpys[element]).copy())
    module = view_of(TensorType(x.shape, element, (1,)), place, TensorType(sizes, wanted, strides))
    assert module is not None
    irc.verify(module)
    (got,) = irc.interp.run(module, x)
    width = np.dtype(numpys[wanted]).itemsize
    steps = [s * width for s in strides]
    expected = np.ndarray(sizes, numpys[wanted], memory.tobytes(), place, steps)
    assert got.numpy().tobytes() == expected.tobytes() and got.stride() == strides
    own = x.element_size()
    if own != width:  # by way of the elements of the source that hold all of it
        end = place + (1 + last_element(TensorType(sizes, wanted, strides))) * width
        part = next(op for op in module.walk() if isinstance(op, layout.ViewOp)).view.type
        assert part.shape == (-(-end // own) - place // own,)


@pytest.mark.parametrize(
    ("element", "sizes", "place", "wanted", "to", "strides"),
    [
        (T.f32, (6,), 1, T.i16, (1,), (1,)), (T.f32, (6,), 2, T.i64, (1,), (1,)),
        (T.i16, (12,), 1, T.f32, (1,), (1,)), (T.f32, (N,), N * 4, T.i16, (1,), (1,)),
        (T.f32, (N,), 0, T.i16, (N,), (1,)), (T.f32, (N,), 0, T.i16, (2, 2), (N, 1)),
    ],
)  # fmt: skip
def test_elements_of_another_size_need_known_places(
    element: Any, sizes: Any, place: Any, wanted: Any, to: Any, strides: Any
) -> None:
    assert view_of(TensorType(sizes, element, (1,)), place, TensorType(to, wanted, strides)) is None


@pytest.mark.parametrize(("wanted", "expected"), [(T.f32, "0[n]"), (T.i32, "0[n].i32")])
def test_elements_of_one_size_need_none(wanted: Any, expected: str) -> None:
    kind = TensorType((N, 2), wanted, (N, 1))
    module = view_of(TensorType((N * 2,), T.f32, (1,)), N * 4, kind)
    assert module is not None
    (value,) = next(iter(module.ops)).return_op.operands  # type: ignore[attr-defined]
    assert value.type is kind and shown(value) == expected
