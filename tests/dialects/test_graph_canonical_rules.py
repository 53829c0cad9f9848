"""Each canonicalization of the graph dialect by a program that it changes and by those that look
like it and must stay; every program has the same values before and after."""

from __future__ import annotations

import itertools
import math

import pytest

torch = pytest.importorskip("torch")

from irc.dialects import graph  # noqa: E402
from irc.dialects.func import FuncOp, ReturnOp  # noqa: E402
from irc.dialects.graph.canonical import full_value, widens  # noqa: E402
from irc.interp import run  # noqa: E402
from irc.interp.core import torch_dtype  # noqa: E402
from irc.ir import attributes as A  # noqa: E402
from irc.ir import types as T  # noqa: E402
from irc.ir import verify as irc_verify  # noqa: E402
from irc.ir.builder import Builder  # noqa: E402
from irc.ir.module import ModuleOp  # noqa: E402
from irc.ir.passes import PassManager  # noqa: E402
from irc.ir.symbols import symbol  # noqa: E402
from irc.ir.types import TensorType  # noqa: E402


def kind(*sizes, e=T.f32):
    return TensorType(list(sizes), e)


def left(build, *types, inputs=None, verify="each"):
    """The names of the operations of main(...) = build(builder, ...) after canonicalize; its
    values are the same before and after."""
    module = ModuleOp.empty()
    function = FuncOp.create("main", types, [])
    module.block.append(function)
    b = Builder.at_end(function.block)
    b.create(ReturnOp, [build(b, *function.block.arguments)])
    function.refresh_type()
    if inputs is None:
        inputs = [
            (torch.arange(math.prod(t.shape)) * 3 % 7 - 2)
            .reshape(t.shape)
            .to(torch_dtype(t.element))
            for t in types
        ]
    if verify == "each":
        irc_verify(module)
    before = run(module, *inputs)[0]
    PassManager.parse("canonicalize", verify=verify).run(module)
    after = run(module, *inputs)[0]
    assert before.dtype == after.dtype
    torch.testing.assert_close(after, before, rtol=0, atol=0, equal_nan=True)
    return [op.name.partition(".")[2] for op in function.block.ops][:-1]


def full(b, value, type_):
    attr = graph.scalar_attribute(value, type_.element)
    return b.value(graph.Full, None, value=attr, result_types=type_)


def sliced(b, x, start, size, step=1, dim=0, **flags):
    shape = list(x.type.shape)
    shape[dim] = size
    return b.value(graph.Slice, x, dim=dim, start=start, step=step,
                   result_types=TensorType(shape, x.type.element), **flags)  # fmt: skip


# -- views


def test_views_that_change_nothing_go():
    assert left(lambda b, x: b.value(graph.Reshape, x, result_types=kind(3, 4)), kind(3, 4)) == []
    assert left(lambda b, x: b.value(graph.Permute, x, permutation=[0, 1]), kind(3, 4)) == []
    assert left(lambda b, x: sliced(b, x, 0, 3), kind(3, 4)) == []
    assert left(lambda b, x: b.value(graph.Concat, [x], dim=0), kind(3, 4)) == []

    def same(b, x):
        return b.value(graph.Broadcast, x, dims=[0, 1], result_types=kind(3, 4))

    assert left(same, kind(3, 4)) == []
    # A sum of -0.0 alone is 0.0, as in eager mode.
    for combiner, names in (("sum", ["reduce"]), ("prod", []), ("max", [])):

        def nothing(b, x, combiner=combiner):
            return b.value(graph.Reduce, x, combiner=combiner, dims=[], keepdim=False)

        assert left(nothing, kind(3, 4)) == names


def test_views_that_change_something_stay():
    assert left(lambda b, x: b.value(graph.Permute, x, permutation=[1, 0]), kind(3, 3)) == [
        "permute"
    ]
    assert left(lambda b, x: sliced(b, x, 1, 2), kind(3, 4)) == ["slice"]
    assert left(lambda b, x: sliced(b, x, 0, 2, 2), kind(3, 4)) == ["slice"]
    assert left(lambda b, x: b.value(graph.Concat, [x, x], dim=0), kind(3, 4)) == ["concat"]

    def rows(b, x):
        return b.value(graph.Reduce, x, combiner="sum", dims=[0], keepdim=True)

    assert left(rows, kind(1, 4)) == ["reduce"]


@pytest.mark.parametrize(
    ("low", "high", "names"),
    [([0, 0], [0, 0], []), ([1, 0], [0, 0], ["pad"]), ([0, 0], [0, 1], ["pad"]),
     ([1, 0], [-1, 0], ["pad"])],
)  # fmt: skip
def test_a_pad_by_nothing_goes(low, high, names):
    value = graph.scalar_attribute(9.0, T.f32)

    def padded(b, x):
        return b.value(graph.Pad, x, low=low, high=high, value=value)

    assert left(padded, kind(3, 4)) == names


def test_permutes_and_broadcasts_of_their_kind_are_one():
    def permuted(b, x):
        y = b.value(graph.Permute, x, permutation=[1, 2, 0])
        return b.value(graph.Permute, y, permutation=[0, 2, 1])

    assert left(permuted, kind(2, 3, 4)) == ["permute"]

    def shaped(b, x):
        y = b.value(graph.Reshape, x, result_types=kind(4, 6))
        return b.value(graph.Reshape, y, result_types=kind(8, 3))

    assert left(shaped, kind(2, 3, 4)) == ["reshape"]

    def repeated(b, x):
        y = b.value(graph.Broadcast, x, dims=[1], result_types=kind(2, 3))
        return b.value(graph.Broadcast, y, dims=[0, 2], result_types=kind(2, 5, 3))

    assert left(repeated, kind(3)) == ["broadcast"]


VIEWS_OF_FULL = {
    "reshape": lambda b, x, **f: b.value(graph.Reshape, x, result_types=kind(12), **f),
    "permute": lambda b, x, **f: b.value(graph.Permute, x, permutation=[1, 0], **f),
    "slice": lambda b, x, **f: sliced(b, x, 1, 2, **f),
    "reverse": lambda b, x, **f: b.value(graph.Reverse, x, dims=[0], **f),
    "broadcast": lambda b, x, **f: b.value(
        graph.Broadcast, x, dims=[1, 2], result_types=kind(2, 3, 4), **f
    ),
    "window": lambda b, x, **f: b.value(
        graph.Window, x, dim=0, step=1, dilation=1, result_types=kind(2, 4, 2), **f
    ),
}


@pytest.mark.parametrize("name", VIEWS_OF_FULL)
def test_a_view_of_a_full_is_a_full(name):
    view = VIEWS_OF_FULL[name]
    assert left(lambda b, x: view(b, full(b, 2.0, kind(3, 4))), kind(1)) == ["full"]
    assert left(lambda b, x: view(b, x), kind(3, 4)) == [name]


@pytest.mark.parametrize("name", sorted({*VIEWS_OF_FULL} - {"reverse"}))
def test_what_shares_memory_of_a_full_stays(name):
    """The flag `view` says so, from the layout level on."""
    made = left(lambda b, x: VIEWS_OF_FULL[name](b, full(b, 2.0, kind(3, 4)), view=A.UNIT), kind(1),
                verify="none")  # fmt: skip
    assert made == ["full", name]


# -- concatenations


@pytest.mark.parametrize(
    ("start", "size", "step", "names"),
    [
        (0, 3, 1, []), (3, 4, 1, []), (7, 2, 1, []),  # a piece
        (0, 2, 1, ["slice"]), (1, 2, 1, ["slice"]), (4, 3, 1, ["slice"]), (3, 2, 2, ["slice"]),
        (3, 2, 3, ["slice"]), (8, 1, 1, ["slice"]), (6, 1, 1, ["slice"]), (2, 1, 5, ["slice"]),
        (2, 2, 1, ["concat", "slice"]), (1, 3, 1, ["concat", "slice"]),
        (0, 3, 2, ["concat", "slice"]), (0, 9, 1, ["concat"]), (3, 3, 2, ["concat", "slice"]),
        (6, 2, 1, ["concat", "slice"]), (2, 2, 2, ["concat", "slice"]),
        (4, 4, 1, ["concat", "slice"]),
    ],
)  # fmt: skip
def test_a_slice_of_a_concatenation_is_of_the_piece_it_lies_in(start, size, step, names):
    def build(b, x, y, z):
        joined = b.value(graph.Concat, [x, y, z], dim=0)
        return sliced(b, joined, start, size, step)

    found = left(build, kind(3, 2), kind(4, 2), kind(2, 2))
    assert found == names


def test_a_slice_along_another_dimension_stays():
    def build(b, x, y):
        return sliced(b, b.value(graph.Concat, [x, y], dim=0), 0, 3, dim=1)

    assert left(build, kind(3, 4), kind(3, 4)) == ["concat", "slice"]


def test_a_slice_that_shares_the_memory_of_a_concatenation_stays():
    def build(b, x, y):
        return sliced(b, b.value(graph.Concat, [x, y], dim=0), 0, 3, view=A.UNIT)

    assert left(build, kind(3, 4), kind(3, 4), verify="none") == ["concat", "slice"]


# -- casts

ELEMENTS = {
    T.i1: torch.bool, T.i8: torch.int8, T.i16: torch.int16, T.i32: torch.int32, T.i64: torch.int64,
    T.f16: torch.float16, T.bf16: torch.bfloat16, T.f32: torch.float32, T.f64: torch.float64,
}  # fmt: skip
UNSIGNED = {T.IntegerType(n, True): n for n in (8, 16, 32)}


def is_float(element):
    return isinstance(element, T.FloatType)


def extremes(element):
    """The numbers of a type that others hold least easily."""
    if element is T.i1:
        return [0, 1]
    if is_float(element):
        info = torch.finfo(ELEMENTS[element])
        return [info.max, info.tiny, info.smallest_normal, 1 + info.eps, -info.max]
    bits = element.width
    low, high = (0, 2**bits - 1) if element.unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return [low, high, high - 1, 1]


def holds(element, number):
    """Whether a type has a number."""
    if element is T.i1:
        return number in (0, 1)
    if is_float(element):
        if isinstance(number, int) and abs(number) >= 1 << 53 and number & (number - 1):
            return False
        value = float(number)
        return torch.tensor(value, dtype=torch.float64).to(ELEMENTS[element]).item() == value
    low, high, *_ = extremes(element)
    return number == int(number) and low <= number <= high


@pytest.mark.parametrize(
    ("source", "target"),
    [*itertools.product([*ELEMENTS, *UNSIGNED], repeat=2)],
    ids=lambda e: str(e),
)
def test_a_type_is_widened_by_what_holds_its_numbers(source, target):
    if is_float(source) and not is_float(target):
        assert not widens(source, target)
    else:
        assert widens(source, target) == all(holds(target, n) for n in extremes(source))


def numbers(element):
    if is_float(element):
        return [0.0, -0.0, 1.5, -2.0, 0.1, 100.7, 1e-3, 3.0, -77.2, 64.0, 0.3, 5.0]
    if element is T.i1:
        return [0, 1] * 6
    top = 2 ** (element.width - 1)
    return [0, 1, -1, 7, 100, -100, top - 1, -top, top // 2 + 1, 77, 3, top // 3]


TRIPLES = [
    t for t in itertools.product(ELEMENTS, repeat=3)
    if not (is_float(t[0]) and not is_float(t[1])) or t[1] is T.i1
]  # fmt: skip


@pytest.mark.parametrize("first", ELEMENTS, ids=str)
def test_casts_of_casts_keep_every_value(first):
    """All chains of two casts; an integer out of the range of another is no case, since its
    conversion from a float is not defined."""
    merged = set()
    for _, middle, target in [t for t in TRIPLES if t[0] is first]:
        x = torch.tensor(numbers(first)).to(ELEMENTS[first])
        if is_float(middle) and not is_float(target) and not is_float(first):
            x = x.clamp(-100, 100) if first is not T.i1 else x

        def twice(b, x, middle=middle, target=target):
            y = b.insert(graph.Cast.to(x, middle)).results[0]
            return b.insert(graph.Cast.to(y, target)).results[0]

        found = left(twice, kind(12, e=first), inputs=[x])
        if len(found) < 2 and first is not middle and middle is not target:
            merged.add((middle, target))
            assert widens(first, middle)
            assert not (is_float(middle) and not is_float(target) and target is not T.i1)
    if first in (T.i1, T.i8, T.i16, T.f16, T.bf16):
        assert merged
    assert ((T.i32, T.i64) in merged) == (first in (T.i1, T.i8, T.i16))
    assert ((T.i64, T.i16) in merged) == (first in (T.i1, T.i8, T.i16, T.i32))
    assert ((T.f64, T.f32) in merged) == (first in (T.i1, T.i8, T.i16, T.f16, T.bf16, T.f32))
    assert ((T.f32, T.bf16) in merged) == (first in (T.i1, T.i8, T.f16, T.bf16))


WIDE = 2**53
FULLS = [
    (T.f32, 0.1, T.bf16, True), (T.f32, 0.1, T.f64, True), (T.f64, 1e300, T.f32, True),
    (T.f64, math.nan, T.f16, True), (T.i64, 3, T.f32, True), (T.i64, WIDE, T.f32, True),
    (T.i64, WIDE + 1, T.f32, False), (T.i64, -WIDE - 1, T.f32, False),
    (T.i64, 2 * WIDE + 1, T.f32, False), (T.f64, 4.0 * WIDE, T.f32, True),
    (T.i32, 5, T.i1, True), (T.i32, 0, T.i1, True), (T.f32, 0.5, T.i1, True),
    (T.f32, math.nan, T.i1, True), (T.i32, 200, T.i8, True), (T.i32, -200, T.i8, True),
    (T.i32, 127, T.i8, True), (T.i32, 128, T.i8, True), (T.i64, 2**31, T.i32, True),
    (T.i8, -1, T.i64, True), (T.i1, True, T.i32, True), (T.i1, True, T.f32, True),
    (T.f32, 1.9, T.i32, True), (T.f32, -1.9, T.i8, True), (T.f32, 127.0, T.i8, True),
    (T.f32, 128.0, T.i8, False), (T.f32, -128.0, T.i8, True), (T.f32, -129.0, T.i8, False),
    (T.f32, 3e9, T.i64, False), (T.f32, 2.0**31, T.i64, False), (T.f32, 2.0**30, T.i64, True),
    (T.f32, math.nan, T.i32, False), (T.f32, math.inf, T.i32, False),
    (T.f32, -3.0, T.IntegerType(8, True), False), (T.f32, 255.0, T.IntegerType(8, True), True),
    (T.f32, 256.0, T.IntegerType(8, True), False), (T.i32, -1, T.IntegerType(8, True), True),
    (T.i32, 255, T.IntegerType(8, True), True), (T.f32, -0.5, T.IntegerType(8, True), True),
]  # fmt: skip


@pytest.mark.parametrize(("source", "number", "target", "folds"), FULLS)
def test_a_cast_of_a_full_is_folded_where_its_number_is_known(source, number, target, folds):
    def build(b, x):
        return b.insert(graph.Cast.to(full(b, number, kind(2, e=source)), target)).results[0]

    if not folds and not is_float(target):
        module = ModuleOp.empty()
        function = FuncOp.create("main", [], [])
        module.block.append(function)
        b = Builder.at_end(function.block)
        b.create(ReturnOp, [build(b, None)])
        PassManager.parse("canonicalize", verify="none").run(module)
        assert [op.name for op in function.block.ops][:-1] == ["graph.full", "graph.cast"]
        return
    assert left(build, kind(1)) == (["full"] if folds else ["full", "cast"])


def test_a_full_is_seen_through_views_alone():
    module = ModuleOp.empty()
    function = FuncOp.create("main", [kind(3, 4)], [])
    module.block.append(function)
    b = Builder.at_end(function.block)
    known = full(b, 2.0, kind(3, 4))
    for name in ("reshape", "permute", "slice", "broadcast"):
        assert full_value(VIEWS_OF_FULL[name](b, known)) == 2.0
    assert full_value(b.value(graph.Neg, known)) is None
    assert full_value(function.block.arguments[0]) is None


def strided(sizes, strides):
    return TensorType(sizes, T.f32, strides)


@pytest.mark.parametrize("shared", [(True, True), (True, False), (False, True)])
def test_a_view_of_a_view_shares_memory_only_if_both_do(shared):
    """From the layout level on, where types have strides."""
    kinds = [strided([2, 3, 4], [12, 4, 1]), strided([3, 4, 2], [4, 1, 12]),
             strided([3, 2, 4], [4, 12, 1])]  # fmt: skip
    copied = strided([3, 4, 2], [8, 2, 1])
    middle = kinds[1] if shared[0] else copied
    last = kinds[2] if all(shared) else strided([3, 2, 4], [8, 1, 2])

    def build(b, x):
        flags = [{"view": A.UNIT} if s else {} for s in shared]
        y = b.value(graph.Permute, x, permutation=[1, 2, 0], result_types=middle, **flags[0])
        return b.value(graph.Permute, y, permutation=[0, 2, 1], result_types=last, **flags[1])

    merged = left(build, kinds[0], verify="none")
    assert merged == (["permute", "permute"] if shared == (False, True) else ["permute"])


VALUE = graph.scalar_attribute(9.0, T.f32)
#: Operations that change nothing but the strides, which are memory's: they stay what they are.
COPIES = {
    "concat": lambda b, x, t: b.value(graph.Concat, [x], dim=0, result_types=t),
    "pad": lambda b, x, t: b.value(graph.Pad, x, low=[0, 0], high=[0, 0], value=VALUE,
                                   result_types=t),
    "slice": lambda b, x, t: b.value(graph.Slice, x, dim=0, start=0, step=1, result_types=t),
    "reduce": lambda b, x, t: b.value(graph.Reduce, x, combiner="max", dims=[], keepdim=False,
                                      result_types=t),
}  # fmt: skip


@pytest.mark.parametrize("name", COPIES)
def test_what_changes_strides_alone_stays(name):
    kinds = strided([3, 4], [4, 1]), strided([3, 4], [1, 3])
    for made, names in zip(kinds, ([], [name]), strict=True):
        assert left(lambda b, x, made=made: COPIES[name](b, x, made), kinds[0],
                    verify="none") == names  # fmt: skip


def test_a_slice_of_a_concatenation_with_other_strides_is_of_the_piece():
    whole, piece = strided([6, 4], [4, 1]), strided([3, 4], [4, 1])
    for made, names in ((piece, []), (strided([3, 4], [1, 3]), ["slice"])):

        def build(b, x, y, made=made):
            joined = b.value(graph.Concat, [x, y], dim=0, result_types=whole)
            return b.value(graph.Slice, joined, dim=0, start=3, step=1, result_types=made)

        assert left(build, piece, piece, verify="none") == names


def names_of(build, *types):
    """The names of the operations of main(...) = build(builder, ...) after canonicalize; it is not
    run."""
    module = ModuleOp.empty()
    function = FuncOp.create("main", types, [])
    module.block.append(function)
    b = Builder.at_end(function.block)
    b.create(ReturnOp, [build(b, *function.block.arguments)])
    PassManager.parse("canonicalize", verify="none").run(module)
    return [op.name.partition(".")[2] for op in function.block.ops][:-1]


@pytest.mark.parametrize(("strides", "count"), [([3, 1], 1), ([6, 2], 2)])
def test_two_views_are_one_only_where_it_has_their_strides(strides, count):
    """The verifier refuses the other program: nothing is made of what it says."""

    def shaped(b, x):
        y = b.value(graph.Reshape, x, result_types=strided([4, 6], [6, 1]), view=A.UNIT)
        return b.value(graph.Reshape, y, result_types=strided([8, 3], strides), view=A.UNIT)

    assert names_of(shaped, strided([2, 3, 4], [12, 4, 1])) == ["reshape"] * count


# -- numbers read from tensors


@pytest.mark.parametrize(
    ("source", "made", "names"),
    [
        (kind(), kind(2), ["broadcast"]),
        (kind(1, 1), kind(2), ["reshape", "broadcast"]),
        (kind(e=T.i64), kind(2, e=T.i32), ["cast", "broadcast"]),
        (kind(1, e=T.i32), kind(2, e=T.f32), ["reshape", "cast", "broadcast"]),
        (kind(e=T.f32), kind(2, e=T.i32), ["item", "full"]),
        (kind(e=T.f32), kind(2, e=T.bf16), ["cast", "broadcast"]),
        (kind(e=T.i1), kind(2, e=T.f32), ["cast", "broadcast"]),
        (kind(), TensorType([2], T.f32, None, "cuda:0"), ["item", "full"]),
        (TensorType([], T.f32, None, "cuda:0"), kind(2), ["item", "full"]),
    ],
)
def test_a_full_of_an_item_is_a_broadcast(source, made, names):
    def build(b, x):
        return b.value(graph.Full, b.value(graph.Item, x), result_types=made)

    assert names_of(build, source) == names


def test_a_full_of_another_number_stays():
    def every(b, x):
        number = b.value(graph.Item, x, every=A.UNIT)
        return b.value(graph.Full, number, result_types=kind(2, e=T.i1))

    assert names_of(every, kind(e=T.i1)) == ["item", "full"]
    assert names_of(lambda b, x: b.value(graph.Full, x, result_types=kind(2)), T.f64) == ["full"]


@pytest.mark.parametrize("target", [T.f8E5M2, T.ComplexType(T.f32)], ids=str)
def test_casts_to_other_types_do_not_fold(target):
    for source, number in ((T.f32, math.inf), (T.f32, 1.0), (T.i32, 3), (T.i1, True)):

        def build(b, x, source=source, number=number):
            made = full(b, number, kind(2, e=source))
            return b.insert(graph.Cast.to(made, target)).results[0]

        assert names_of(build, kind(1)) == ["full", "cast"]


def test_the_number_of_a_full_that_a_value_gives_is_not_known():
    def build(b, x):
        return b.insert(graph.Cast.to(b.value(graph.Full, x, result_types=kind(2)), T.bf16)
                        ).results[0]  # fmt: skip

    assert names_of(build, T.f64) == ["full", "cast"]
    module = ModuleOp.empty()
    function = FuncOp.create("main", [T.f64], [])
    module.block.append(function)
    b = Builder.at_end(function.block)
    made = b.value(graph.Full, function.block.arguments[0], result_types=kind(2))
    assert full_value(made) is None


def test_casts_of_floats_to_integers_through_floats_stay():
    """What is out of range is another number by each way."""
    for path, count in (([T.f64, T.i32], 2), ([T.f64, T.i1], 1), ([T.f64, T.bf16], 1),
                        ([T.bf16, T.i1], 2)):  # fmt: skip

        def build(b, x, path=path):
            for element in path:
                x = b.insert(graph.Cast.to(x, element)).results[0]
            return x

        assert names_of(build, kind(2)) == ["cast"] * count


ROWS = symbol("s0")


@pytest.mark.parametrize(
    ("sizes", "start", "size", "step", "names"),
    [
        ((ROWS, 4), 0, ROWS, 1, []),
        ((ROWS, 4), ROWS, 4, 1, []),
        ((4, ROWS), 4, ROWS, 1, []),
        ((4, ROWS), 1, 2, 1, ["slice"]),
        ((4, ROWS), 0, 4, 1, []),
        # Where these lie depends on the number of rows.
        ((ROWS, 4), 1, 2, 1, ["concat", "slice"]),
        ((ROWS, 4), ROWS, 2, 1, ["concat", "slice"]),
        ((ROWS, 4), 0, 4, 1, ["concat", "slice"]),
        ((4, ROWS), 0, ROWS, 1, ["concat", "slice"]),
        ((4, ROWS), 5, 1, 1, ["concat", "slice"]),
        ((4, ROWS), ROWS, 2, 1, ["concat", "slice"]),
        ((4, ROWS), 4, ROWS, 2, ["concat", "slice"]),
    ],
)
def test_pieces_of_symbolic_sizes(sizes, start, size, step, names):
    def build(b, x, y):
        joined = b.value(graph.Concat, [x, y], dim=0, result_types=kind(ROWS + 4, 2))
        return sliced(b, joined, start, size, step)

    assert names_of(build, *[kind(n, 2) for n in sizes]) == names


def test_views_of_what_is_no_view_stay():
    for name, view in VIEWS_OF_FULL.items():
        assert names_of(lambda b, x, view=view: view(b, b.value(graph.Neg, x)), kind(3, 4)) == [
            "neg", name,
        ]  # fmt: skip
