"""Where results lie: pieces of a storage, roots, memory that must not be shared."""

from __future__ import annotations

import random
from typing import Any

import attrs
import pytest

torch = pytest.importorskip("torch")

import irc  # noqa: E402
from irc.dialects import graph, layout, sym  # noqa: E402
from irc.ir import attributes as A  # noqa: E402
from irc.ir import parse  # noqa: E402
from irc.ir import types as T  # noqa: E402
from irc.ir.symbols import Range, floordiv, maximum, symbol  # noqa: E402
from irc.ir.types import TensorType  # noqa: E402
from irc.ir.verifier import verify  # noqa: E402
from irc.passes.layout.joined_results import _storage, join_results  # noqa: E402
from irc.passes.layout.memory_views import place_in_memory, storage_root, viewed  # noqa: E402
from irc.passes.layout.pad_strides import may_be_padded  # noqa: E402
from irc.passes.layout.shared_results import LIMIT, Piece, _piece, groups, sources  # noqa: E402
from tests.fuzz.harness import clones, observe, same  # noqa: E402
from tests.passes.layout.test_elide_layout_copies import PIPELINE, lowered  # noqa: E402
from tests.passes.layout.test_propagate_channels_last import TYPES, convolution  # noqa: E402
from tests.passes.loop.programs import program  # noqa: E402

N = symbol("n")


def piece(sizes, strides, offset=0, element=T.f32):
    return Piece(TensorType(sizes, element, strides), offset)


def test_a_piece_holds_what_lies_in_its_places():
    choose = random.Random(0)
    held = 0
    for _ in range(600):
        one, other = (
            piece([choose.randint(1, 3) for _ in range(2)],
                  [choose.choice([1, 2, 3, 4, 6]) for _ in range(2)], choose.randint(0, 4),
                  choose.choice([T.f32, T.f32, T.i16, T.f64]))
            for _ in range(2)
        )  # fmt: skip
        wanted = other.places() <= one.places()
        wanted = wanted and (other.begin - one.begin) % other.width == 0
        assert one.holds(other) == wanted, (one, other)
        held += wanted
    assert 20 < held < 580


def test_large_pieces_are_compared_by_their_ends():
    rows = LIMIT // 64
    whole = piece([rows, 64], [64, 1])
    assert whole.size > LIMIT and whole.is_solid
    assert whole.holds(piece([rows - 1, 64], [64, 1], 64))
    assert whole.holds(piece([rows, 64], [64, 1]))
    assert not whole.holds(piece([rows, 64], [64, 1], 1))
    gaps = piece([rows, 32], [64, 1])
    assert not gaps.is_solid
    assert gaps.holds(gaps) and not gaps.holds(piece([rows - 1, 32], [64, 1], 64))


RESULTS = """
func.func @main(%x: tensor<[4, 6] x f32, strides [6, 1]>)
    -> (tensor<[4, 6] x f32, strides [6, 1]> FIRST, tensor<[2, 6] x f32, strides [6, 1]> SECOND)
    attributes {level = "layout"} {
  %a = graph.neg %x : (tensor<[4, 6] x f32, strides [6, 1]>) -> tensor<[4, 6] x f32, strides [6, 1]>
  %b = graph.slice %a {dim = 0 : i64, start = #sym<1>, step = 1 : i64, view}
      : (tensor<[4, 6] x f32, strides [6, 1]>) -> tensor<[2, 6] x f32, strides [6, 1]>
  func.return %a, %b : tensor<[4, 6] x f32, strides [6, 1]>, tensor<[2, 6] x f32, strides [6, 1]>
}
"""
WHOLE = "{irc.offset = #sym<0>, irc.strides = #sym.dims<[6, 1]>}"


@pytest.mark.parametrize(
    ("second", "known"),
    [
        ("{irc.offset = #sym<6>, irc.strides = #sym.dims<[6, 1]>, irc.shares = 0 : i64}",
         {1: (0, 24)}),
        ("{irc.offset = #sym<6>, irc.strides = #sym.dims<[6, 1]>}", {}),  # a storage of its own
        ("{irc.offset = #sym<6>, irc.strides = #sym.dims<[6]>, irc.shares = 0 : i64}", {}),
        ("{irc.strides = #sym.dims<[6, 1]>, irc.shares = 0 : i64}", {}),
        ("{irc.offset = #sym<6>, irc.shares = 0 : i64}", {}),
        ("{irc.offset = #sym<s0>, irc.strides = #sym.dims<[6, 1]>, irc.shares = 0 : i64}", {}),
        ("{irc.offset = #sym<6>, irc.strides = #sym.dims<[s0, 1]>, irc.shares = 0 : i64}", {}),
        ("{irc.offset = #sym<6>, irc.strides = #sym.dims<[6, 1]>, irc.shares = 0 : i64, "
         "irc.alias_of = 0 : i64}", {}),
        ("{irc.offset = #sym<18>, irc.strides = #sym.dims<[6, 1]>, irc.shares = 0 : i64}", {}),
    ],
)  # fmt: skip
def test_parts_of_results_are_found_where_places_are_known(second, known):
    module = parse(RESULTS.replace("FIRST", WHOLE).replace("SECOND", second))
    assert sources(module.lookup("main")) == known


@pytest.mark.parametrize(
    ("sizes", "strides", "rest", "known"),
    [
        ((4, 6), [6, 1], {}, True), ((4, 6), [6, 1], {"offset": None}, False),
        ((4, 6), None, {}, False), ((4, 6), [1], {}, False), ((4, 6), [6, 1, 1], {}, False),
        ((0, 6), [6, 1], {}, False), ((4, 0), [6, 1], {}, False), ((1, 6), [6, 1], {}, True),
        ((4, 6), [symbol("s0"), 6, 1], {}, False),
        ((4, 6), [symbol("s0"), 1], {}, True), ((symbol("s0"), 6), [6, 1], {}, True),
        ((4, 6), [6, 1], {"offset": A.DimAttr(symbol("s0"))}, True),
        ((4, 6), [0, 1], {"offset": A.DimAttr(3)}, True), ((), [], {}, True),
    ],
)  # fmt: skip
def test_a_piece_is_where_its_places_are_told(sizes, strides, rest, known):
    dims = None if strides is None else A.DimsAttr(strides)
    told = {"strides": dims, "offset": A.DimAttr(0), **rest}
    entries = A.DictAttr({k: v for k, v in told.items() if v is not None})
    made = _piece(TensorType(sizes, T.f32), entries)
    assert (made is not None) == known
    if made is not None:
        assert made == piece(sizes, strides, told["offset"].dim) and not made.is_saved


def test_a_piece_is_an_array():
    told = {"strides": A.DimsAttr([]), "offset": A.DimAttr(0)}
    assert _piece(T.index, A.DictAttr(told)) is None
    saved = _piece(TensorType((), T.f32), A.DictAttr({**told, "saved": A.UNIT}))
    assert saved is not None and saved.is_saved and saved == piece((), ())


def test_a_piece_knows_the_ranges_of_its_symbols():
    def entries(strides):
        return A.DictAttr({"strides": A.DimsAttr(strides), "offset": A.DimAttr(0)})

    def asked():
        raise AssertionError("numbers need no ranges")

    kind, ranges = TensorType((4, 6), T.f32), {"n": Range(2, None)}
    static, symbolic = _piece(kind, entries([6, 1]), asked), _piece(
        kind, entries([N, 1]), lambda: ranges
    )  # fmt: skip
    assert static is not None and static.is_static and not static.ranges
    assert symbolic is not None and not symbolic.is_static and symbolic.ranges == ranges
    assert symbolic.is_le(2, N) and not symbolic.is_le(3, N)
    assert _piece(kind, entries([None, 1]), lambda: ranges) is None


def test_pieces_with_gaps_are_compared_by_numbers():
    gaps, symbolic = piece([4], [2]), piece([N], [2])
    assert gaps.holds(gaps) and symbolic.holds(symbolic)
    assert not gaps.holds(symbolic) and not symbolic.holds(gaps)


def at_least_two(sizes, strides, offset, element=T.f32):
    return attrs.evolve(piece(sizes, strides, offset, element), ranges={"n": Range(2, None)})


def vector(length, element):
    return TensorType((length,), element, (1,))


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([piece([4], [1], 1), piece([4], [1], 2)], (4, vector(5, T.f32))),
        ([piece([4], [1], 2), piece([4], [2], 1)], (4, vector(7, T.f32))),
        ([piece([4], [1], 1), piece([2], [1], 3, T.i16)], (4, vector(8, T.i16))),
        ([piece([2], [1], 3, T.i16), piece([4], [1], 1)], (4, vector(8, T.i16))),
        ([piece([2], [1], 3, T.i16), piece([2], [1], 2)], (4, vector(6, T.i16))),
        ([piece([2], [1], 2, T.i64), piece([3], [1], 3)], (8, vector(6, T.i32))),
        ([piece([2], [1], 0, T.c128), piece([2], [1], 1, T.c128)], (0, vector(6, T.i64))),
        ([piece([2], [1], 0, T.c64), piece([2], [1], 1, T.c64)], (0, vector(3, T.i64))),
        ([piece([4], [1], 0), at_least_two([4], [1], N)], (0, vector(N + 4, T.f32))),
        ([at_least_two([4], [1], N), piece([4], [1], 0)], (0, vector(N + 4, T.f32))),
        ([piece([4], [1], 2), at_least_two([4], [1], N)], (8, vector(N + 2, T.f32))),
        ([at_least_two([4], [1], N), at_least_two([4], [1], N + 1)], (N * 4, vector(5, T.f32))),
        ([piece([4], [1], 3), at_least_two([9], [1], N)], None),  # which begins first?
        # Which ends last is seen when the program runs.
        ([piece([9], [1], 0), at_least_two([4], [1], N)],
         (0, vector(floordiv(maximum(0, 36, N * 4 + 16), 4), T.f32))),
        ([piece([4], [1], 0), at_least_two([4], [1], N, T.i32)], None),
        ([at_least_two([4], [1], N, T.c64), at_least_two([4], [1], N + 1, T.c64)], None),
        ([at_least_two([4], [1], 0), at_least_two([N], [1], 0, T.i64)], None),
    ],
)
def test_a_storage_holds_all_pieces(pieces, expected):
    assert _storage(pieces) == expected


def test_places_are_compared_up_to_a_limit():
    count = LIMIT // 4
    for size, held in ((count, True), (count + 1, False)):
        assert piece([size], [2]).holds(piece([size - 1], [2], 2)) == held
    assert piece([1], [1]).holds(piece([1], [1])) and piece([2], [2]).holds(piece([1], [1], 2))
    assert not piece([2], [2]).holds(piece([1], [1], 1))


def test_pieces_of_symbolic_sizes_are_compared_by_ranges():
    n, m = symbol("n"), symbol("m")

    def of(sizes, strides, offset=0, low=0):
        return attrs.evolve(piece(sizes, strides, offset), ranges={"n": Range(low)})

    whole = of([n], [1])
    assert whole.holds(of([n // 2], [1])) and whole.holds(of([n - n // 2], [1], n // 2))
    assert not of([n // 2], [1]).holds(whole) and not whole.holds(of([n // 2], [1], n // 2 + 1))
    assert not whole.holds(of([m], [1]))
    assert of([n], [1], low=2).holds(of([2], [1])) and not whole.holds(of([2], [1]))
    table = of([n, n], [n, 1], low=1)
    assert table.holds(of([n - 1, n], [n, 1], n)) and table.holds(of([n, n], [1, n]))
    assert not table.holds(of([n, n], [n, 1], 1))
    gaps = of([n], [2])
    assert gaps.holds(of([n], [2])) and not gaps.holds(of([n - 1], [2], 2))


HALVES = """
func.func @main(%x: tensor<[s0] x f32, strides [1]>)
    -> (tensor<[floordiv(s0, 2)] x f32, strides [1]>
          {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>},
        tensor<[floordiv(s0, 2)] x f32, strides [1]>
          {irc.offset = #sym<PLACE>, irc.strides = #sym.dims<[1]>, irc.shares = 0 : i64})
    attributes {level = "layout"} {
  %n = sym.bind_size %x {dim = 0 : i64, symbol = "s0"} : (tensor<[s0] x f32, strides [1]>) -> index
  %a = graph.slice %x {dim = 0 : i64, start = #sym<0>, step = 1 : i64}
      : (tensor<[s0] x f32, strides [1]>) -> tensor<[floordiv(s0, 2)] x f32, strides [1]>
  %b = graph.slice %x {dim = 0 : i64, start = #sym<PLACE>, step = 1 : i64}
      : (tensor<[s0] x f32, strides [1]>) -> tensor<[floordiv(s0, 2)] x f32, strides [1]>
  func.return %a, %b : tensor<[floordiv(s0, 2)] x f32, strides [1]>,
                       tensor<[floordiv(s0, 2)] x f32, strides [1]>
}
"""


@pytest.mark.parametrize(("place", "joined"), [("floordiv(s0, 2)", True), ("s1 - 1", False)])
def test_results_of_symbolic_sizes_are_joined_where_their_order_is_known(place, joined):
    module = parse(HALVES.replace("PLACE", place))
    function = module.lookup("main")
    assert join_results(function) == ([[0, 1]] if joined else [])
    if joined:
        verify(module)
        made = [place_in_memory(v) for v in function.return_op.operands]
        assert made[0][0] is made[1][0] and made[1][1] == symbol("s0") // 2 * 4
        x = torch.arange(7.0)
        assert [r.tolist() for r in irc.run(module, x)] == [[0, 1, 2], [3, 4, 5]]


def test_results_without_elements_are_no_pieces():
    text = RESULTS.replace("FIRST", WHOLE).replace("SECOND", WHOLE).replace("[2, 6]", "[0, 6]")
    function = parse(text).lookup("main")
    assert [list(known) for known in groups(function)] == [[0]]


def test_memory_is_that_of_what_is_viewed():
    module = parse("""
      func.func @main(%x: tensor<[s0] x f32, strides [1]>) attributes {level = "layout"} {
        %n = sym.bind_size %x {dim = 0 : i64, symbol = "s0"}
            : (tensor<[s0] x f32, strides [1]>) -> index
        sym.assert {relation = "eq", lhs = #sym<s0>, rhs = #sym<8>, message = "eight"}
        %a = graph.neg %x : (tensor<[s0] x f32, strides [1]>) -> tensor<[s0] x f32, strides [1]>
        %b = sym.refine %a : (tensor<[s0] x f32, strides [1]>) -> tensor<[8] x f32, strides [1]>
        %c = layout.view %b {offset = #sym<2>}
            : (tensor<[8] x f32, strides [1]>) -> tensor<[4] x f32, strides [1]>
        %d = graph.slice %c {dim = 0 : i64, start = #sym<1>, step = 1 : i64, view}
            : (tensor<[4] x f32, strides [1]>) -> tensor<[2] x f32, strides [1]>
        %e = graph.slice %c {dim = 0 : i64, start = #sym<1>, step = 1 : i64}
            : (tensor<[4] x f32, strides [1]>) -> tensor<[2] x f32, strides [1]>
        func.return
      }""")
    ops = {op.results[0].name_hint: op for op in module.walk() if op.results}
    neg = ops["a"].results[0]
    assert isinstance(ops["b"], sym.RefineOp) and isinstance(ops["c"], layout.ViewOp)
    assert [viewed(ops[n]) for n in "abe"] == [None, neg, None] and viewed(None) is None
    for name, place in (("a", 0), ("b", 0), ("c", 8), ("d", 12)):
        assert place_in_memory(ops[name].results[0]) == (neg, place)
        assert storage_root(ops[name].results[0]) is neg
    assert place_in_memory(ops["e"].results[0]) == (ops["e"].results[0], 0)
    assert isinstance(ops["e"], graph.Slice)


def test_memory_is_that_of_other_elements_of_it():
    module = parse("""
      func.func @main(%x: tensor<[4] x f32, strides [1]>) attributes {level = "layout"} {
        %a = graph.call_aten %x {callee = "aten.view.dtype", arguments = {self = #aten.operand<0>,
            dtype = #aten.dtype<"int16">}}
            : (tensor<[4] x f32, strides [1]>) -> tensor<[8] x i16, strides [1]>
        %b = layout.view %a {offset = #sym<3>}
            : (tensor<[8] x i16, strides [1]>) -> tensor<[4] x i16, strides [1]>
        %c = graph.call_aten %x {callee = "aten.relu.default",
            arguments = {self = #aten.operand<0>}}
            : (tensor<[4] x f32, strides [1]>) -> tensor<[4] x f32, strides [1]>
        func.return
      }""")
    (function,) = module.ops
    (x,) = function.block.arguments
    a, b, c = (op.results[0] for op in function.block.ops if op.results)
    assert [viewed(v.defining_op) for v in (a, b, c)] == [x, a, None]
    assert place_in_memory(b) == (x, 6) and storage_root(c) is c


def info(**entries: Any) -> A.DictAttr:
    made = {"saved": A.UNIT, "strides": A.DimsAttr([4, 1]), "offset": A.DimAttr(0), **entries}
    return A.DictAttr({k: v for k, v in made.items() if v is not None})


@pytest.mark.parametrize(
    ("entries", "free"),
    [({}, True), ({"saved": None}, False), ({"shares": A.IntegerAttr(0)}, False),
     ({"strides": None}, False), ({"strides": A.DimsAttr([symbol("s0"), 1])}, False),
     ({"offset": None}, False), ({"offset": A.DimAttr(2)}, False)],
)  # fmt: skip
def test_what_only_the_backward_program_sees_may_be_padded(entries, free):
    assert may_be_padded(info(**entries)) == free


# -- memory that results must not have


def check_twice(function: Any, *args: torch.Tensor) -> None:
    """Eager's outcome; and again, after the caller has written the results of the first call."""
    from irc.pipeline import lower

    module = irc.trace(function, tuple(clones(args)))
    lower(module)
    program = irc.build(module)
    for _ in range(2):
        expected, got = observe(function, args), observe(program, args)
        same(expected, got, what="built")
        for value in got.outputs:
            value.fill_(99)


CONSTANT = torch.arange(8.0)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: CONSTANT.clone(),
        lambda x: (lambda c: (c[::2], c[1::2]))(CONSTANT + 0),
        lambda x: (lambda c: (c[::2], c[1::2]))(torch.tensor([1.0, 2.0, 3.0, 4.0])),
        lambda x: (lambda c: (c, c[1:]))(torch.tensor([1.0, 2.0, 3.0, 4.0])),
        lambda x: torch.tensor([1.0, 2.0]),
        lambda x: (x.clone(), x.clone()),
        lambda x: (lambda c: (c[::2], c[1::2]))(x.clone()),
        lambda x: (lambda c: (c[::2], c[1::2], x[1:]))(x.neg()),
    ],
)
def test_results_are_no_memory_of_constants_and_arguments(function):
    check_twice(function, torch.arange(6.0))


@pytest.mark.parametrize("which", ["argument", "result", "another's source"])
def test_copies_into_results_that_must_not_share_stay(which):
    def body(g, x, w):
        y = g.op("exp", convolution(g, x, w))
        if which == "argument":
            return x, y
        if which == "result":
            return y, y
        return g.op("tanh", y), y, y

    module = program(TYPES, body)
    x, w = torch.randn(2, 8, 5, 6), torch.randn(8, 8, 3, 3)
    expected = irc.interp.run(module, x, w)
    lowered(module, PIPELINE)
    got = irc.interp.run(module, x, w)
    for a, b in zip(got, expected, strict=True):
        torch.testing.assert_close(a, b)
    pointers = [t.untyped_storage().data_ptr() for t in (x, w, *got)]
    assert len(set(pointers)) == len(pointers)
