"""Small questions about views: whether they overlap, where they begin, what their storage is."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from irc.dialects import aten, sym
from irc.dialects.aten.schema import find_schema
from irc.ir import attributes as A
from irc.ir.symbols import symbol
from irc.ir.types import (
    DTYPE_OF_ELEMENT,
    ComplexType,
    TensorType,
    f16,
    f32,
    f64,
    i1,
    i8,
    i32,
)
from irc.passes.graph.convert_aten import storages
from irc.passes.graph.convert_aten.part_writes import diagonal_size
from irc.passes.graph.functionalize.value_building import is_static, is_view_of, may_overlap
from irc.passes.graph.functionalize.view_chains import (
    ElementStep,
    FlattenStep,
    StridedStep,
    ViewStep,
    overlaps,
    shows_storage,
)
from irc.passes.graph.functionalize.view_inverses import place_of
from tests.passes.graph.aten_programs import NONE, Program, tensor

S, T = symbol("s0"), symbol("s1")


@pytest.mark.parametrize(
    "sizes, strides, outcome",
    [
        ((0, 3), (0, 0), False), ((S, 0), (0, 1), False), ((2, 3), (3, 1), False),
        ((1, 3), (0, 1), False), ((3, 1), (1, 0), False), ((1, 5000), (0, 1), False),
        ((1, 3), (S, 1), False), ((S, 3), (3, 1), False), ((S, 3), (2, 1), True),
        ((3,), (T,), True), ((2, 3), (2, 1), True), ((2, 2), (2, 3), False),
        ((3, 2), (2, 3), False), ((2, 2048), (3, 2), False), ((2, 2049), (3, 2), True),
        ((2,), (0,), True), ((2, 2), (0, 1), True), ((), (), False), ((3, 3), (1, 2), True),
    ],
)  # fmt: skip
def test_views_that_may_name_an_element_twice(sizes, strides, outcome):
    assert may_overlap(sizes, strides) is outcome


@pytest.mark.parametrize(
    "kind, outcome",
    [
        (tensor((2, 3)), True), (tensor((2, 3), NONE), True), (tensor((S, 3), NONE), False),
        (tensor((2, 3), (S, 1)), False), (tensor(()), True), (tensor((), NONE), True),
    ],
)  # fmt: skip
def test_what_is_static(kind, outcome):
    assert is_static(kind) is outcome


def test_views_of_a_value():
    p = Program(tensor((2, 3)), tensor((2, 3)))
    x, y = p.arguments
    t = p.call("t.default", tensor((3, 2), (1, 3)), x)
    row = p.call("select.int", tensor((2,), (3,)), t, 0, 1)
    copy = p.call("clone.default", tensor((2, 3)), x)
    refined = p.builder.value(sym.RefineOp, x, result_types=x.type)
    assert is_view_of(x, x) and is_view_of(t, x) and is_view_of(row, x) and is_view_of(row, t)
    assert not is_view_of(x, y) and not is_view_of(row, y) and not is_view_of(t, row)
    assert not is_view_of(copy, x) and not is_view_of(refined, y)


@pytest.mark.parametrize(
    "shape, strides, order, dense",
    [
        ((2, 3), (3, 1), [0, 1], [0, 1]), ((2, 3), (1, 2), [1, 0], [1, 0]),
        ((2, 3), (4, 1), None, None), ((2, 2), (1, 1), None, None), ((2,), (2,), None, None),
        ((1, 3), (7, 1), [0, 1], [0, 1]), ((3, 1, 2), (1, 9, 3), [1, 2, 0], [1, 2, 0]),
        ((2, 1, 3), (3, 5, 1), [1, 0, 2], [1, 0, 2]), ((), (), [], []),
        ((2, 3, 4), (4, 8, 1), [1, 0, 2], [1, 0, 2]), ((2, 3, 4), (12, 4, 2), None, None),
        ((1, 2), (1, 1), [0, 1], [0, 1]),
    ],
)  # fmt: skip
def test_the_order_of_dense_elements(shape, strides, order, dense):
    kind = tensor(shape, strides)
    flat = FlattenStep(kind, tensor((64,)))
    assert storages.dense_order(shape, strides) == dense
    if shape != (1, 3) and 1 in shape:  # dimensions of size 1 lie anywhere
        assert sorted(flat.order()) == sorted(order)
        big = [d for d in flat.order() if shape[d] != 1]
        assert big == [d for d in order if shape[d] != 1]
    else:
        assert flat.order() == order


def test_the_order_of_symbolic_sizes():
    assert storages.dense_order((S, 3), (3, 1)) == [0, 1]
    assert storages.dense_order((3, S), (1, 3)) == [1, 0]
    assert storages.dense_order((S, 3), (S, 1)) is None
    assert FlattenStep(tensor((2, S)), tensor((64,))).order() == [0, 1]


@pytest.mark.parametrize(
    "old, new, count, places, outcome",
    [
        (f32, f64, 2, {0, 1, 3}, {0}), (f32, f64, 2, {0, 1, 2, 3}, {0, 1}),
        (f32, f64, 2, {0}, set()),
        (f64, f32, 4, {1}, {2, 3}), (f32, i8, 8, {1}, {4, 5, 6, 7}), (f32, f64, 2, {1, 2}, set()),
        (f16, f64, 2, set(range(1, 8)), {1}), (f32, f64, 2, None, None),
        (f32, i32, S, {0, 2}, {0, 2}), (f32, i32, 4, None, None),
    ],
)  # fmt: skip
def test_places_that_have_elements_of_another_size(old, new, count, places, outcome):
    step = ElementStep(tensor((8,), None, old), tensor((count,), None, new))
    places = None if places is None else frozenset(places)
    assert step.allowed(places) == outcome


def test_a_slice_of_a_storage():
    vector = tensor((24,))
    step = StridedStep(vector, tensor((2, 3)), 4)
    assert step.slice_type() is tensor((6,)) and step.end() == 10
    assert StridedStep(vector, tensor((2, 3), (4, 1)), 4).slice_type() is None


def named(name):
    """A view step of this operator of ATen."""
    op = SimpleNamespace(schema=find_schema(f"aten.{name}.default"))
    return ViewStep(op, 0, tensor((4,)), tensor((4,)))


WINDOW = StridedStep(tensor((24,)), tensor((S, 3), (2, 1)), 0)
PART = StridedStep(tensor((24,)), tensor((2, 3)), 0)


@pytest.mark.parametrize(
    "kind, chain, outcome",
    [
        (tensor((2, 3)), [WINDOW], False), (tensor((2, 3), (2, 1)), [], True),
        (tensor((S, 3), (0, 1)), [], True), (tensor((S, 1), (1, 0)), [], False),
        (tensor((S, 2), (1, 0)), [], True), (tensor((S, 3)), [], False),
        (tensor((S, 3)), [WINDOW], True), (tensor((S, 3)), [PART], False),
        (tensor((S, 3)), [PART, WINDOW], True), (tensor((S, 3)), [named("unfold")], True),
        (tensor((S, 3)), [named("view")], False), (tensor((S, 3), NONE), [], False),
        (tensor((S, 3)), [FlattenStep(tensor((4,)), tensor((4,)))], False),
    ],
)  # fmt: skip
def test_views_of_symbolic_sizes_that_overlap(kind, chain, outcome):
    assert overlaps(kind, chain) is outcome


@pytest.mark.parametrize(
    "names, outcome",
    [("", True), ("view", True), ("_conj", False), ("_conj _conj", True), ("_neg_view", False),
     ("_conj _neg_view", False), ("_neg_view t _neg_view", True), ("_conj _conj _neg_view", False)],
)  # fmt: skip
def test_a_view_shows_what_is_stored_or_its_conjugate(names, outcome):
    assert shows_storage([PART, *map(named, names.split())]) is outcome


C64 = ComplexType(f32)


@pytest.mark.parametrize(
    "name, source, made, arguments, result, outcome",
    [
        ("slice.Tensor", tensor((4, 6)), tensor((2, 6)), (0, 1, 3), 0, ((2, 6), (6, 1), 6)),
        ("t.default", tensor((4, 6), (1, 4)), tensor((6, 4)), (), 0, ((6, 4), (1, 6), 0)),
        ("clone.default", tensor((4, 6)), tensor((4, 6)), (), 0, None),
        ("view.dtype", tensor((4,)), tensor((4,), None, i32), (aten.DtypeAttr("int32"),), 0, None),
        ("_neg_view.default", tensor((4,)), tensor((4,)), (), 0, None),
        ("_conj.default", tensor((4,), None, C64), tensor((4,), None, C64), (), 0, None),
        ("split.Tensor", tensor((4,)), [tensor((2,)), tensor((2,))], (2,), 1, ((2,), (1,), 2)),
    ],
)  # fmt: skip
def test_where_a_view_of_a_row_major_tensor_lies(name, source, made, arguments, result, outcome):
    p = Program(source)
    values = p.call(name, made if isinstance(made, list) else [made], p.arguments[0], *arguments)
    step = ViewStep(values[result].defining_op, result, source, values[result].type)
    assert place_of(step) == outcome


def test_where_a_view_with_an_operand_more_lies():
    p = Program(tensor((4, 6)), tensor((3, 8)))
    made = p.call("view_as.default", tensor((3, 8)), *p.arguments)
    step = ViewStep(made.defining_op, 0, p.arguments[0].type, made.type)
    assert place_of(step) == ((3, 8), (8, 1), 0)


# -- what a value is a view of


def strided_view(p, value, offset=None, kind=None):
    kind = kind or tensor((2, 2), (6, 1))
    return p.call("as_strided.default", kind, value, [2, 2], [6, 1], offset)


def row(p, value, index=2):
    kind = value.type
    made = TensorType(kind.shape[1:], kind.element, kind.strides[1:] if kind.strides else None)
    return p.call("select.int", made, value, 0, index)


def rows(p, value, start=1, end=3):
    kind = value.type
    made = TensorType((end - start, *kind.shape[1:]), kind.element, kind.strides)
    return p.call("slice.Tensor", made, value, 0, start, end)


def transposed(p, value):
    kind = value.type
    made = TensorType(kind.shape[::-1], kind.element, kind.strides[::-1])
    return p.call("t.default", made, value)


def diagonal(p, value):
    return p.call("diagonal.default", tensor((2,), (7,)), value)


def bits(p, value, kind):
    return p.call("view.dtype", kind, value, aten.DtypeAttr(DTYPE_OF_ELEMENT[kind.element]))


CHAINS = {
    "itself": (lambda p, c: c, 0),
    "transposed": (transposed, 0),
    "a row": (row, 12),
    "rows": (rows, 6),
    "all rows": (lambda p, c: rows(p, c, 0, 4), 0),
    "rows of rows": (lambda p, c: rows(p, rows(p, c), 1, 2), 12),
    "a row of the transposed": (lambda p, c: row(p, transposed(p, c)), 2),
    "a diagonal": (diagonal, None),
    "a row of an unknown place": (lambda p, c: row(p, diagonal(p, c), 1), None),
    "a diagonal of rows": (lambda p, c: diagonal(p, rows(p, c)), None),
    "a place": (lambda p, c: strided_view(p, c, 5), 5),
    "a place of rows": (lambda p, c: strided_view(p, rows(p, c), 5), 5),
    "a place of a diagonal": (lambda p, c: strided_view(p, diagonal(p, c), 5), 5),
    "rows of a place": (lambda p, c: rows(p, strided_view(p, c, 5), 1, 2), 11),
    "rows of a place of rows": (lambda p, c: rows(p, strided_view(p, rows(p, c), 5), 1, 2), 11),
    "a diagonal of a place": (lambda p, c: diagonal(p, strided_view(p, c, 5)), None),
    "as_strided where it is": (lambda p, c: strided_view(p, c), None),
    "without strides": (lambda p, c: row(p, p.call("t.default", tensor((6, 4), NONE), c)), None),
    "bits": (lambda p, c: rows(p, bits(p, c, tensor((4, 6), None, i32))), 6),
}  # fmt: skip


@pytest.mark.parametrize("chain", CHAINS)
def test_the_storage_of_a_tensor_made_here(chain):
    make, place = CHAINS[chain]
    p = Program(tensor((4, 6)))
    made = p.call("clone.default", tensor((4, 6)), p.arguments[0])
    assert storages.storage_owner(p.converting(), make(p, made)) == (made, place)


def test_a_write_or_another_size_of_elements_ends_the_chain():
    p = Program(tensor((4, 6)))
    made = p.call("clone.default", tensor((4, 6)), p.arguments[0])
    written = p.call("neg_.default", tensor((4, 6)), made)
    halves = bits(p, made, tensor((4, 12), None, f16))
    bools = bits(p, bits(p, halves, tensor((4, 24), None, i8)), tensor((4, 24), None, i1))
    c = p.converting()
    assert storages.storage_owner(c, rows(p, written)) == (written, 6)
    assert storages.storage_owner(c, rows(p, halves)) == (halves, 12)
    assert storages.storage_owner(c, bools) == (bools, 0)
    assert storages.is_callers(c, p.arguments[0]) and storages.is_callers(c, halves)
    assert not storages.is_callers(c, made)


def test_where_an_argument_begins_is_asked_when_a_place_counts_from_its_storage():
    p = Program(tensor((4, 6)))
    (x,) = p.arguments
    p.function.attributes["arg_info"] = A.ArrayAttr([A.DictAttr({"offset": A.DimAttr(3)})])

    def asked():
        return sum(isinstance(op, sym.BindOffsetOp) for op in p.function.block.ops)

    assert storages.storage_owner(p.converting(), rows(p, x)) == (x, 6) and not asked()
    place = strided_view(p, x, 5)
    assert storages.storage_owner(p.converting(), diagonal(p, place)) == (x, None) and not asked()
    assert storages.storage_owner(p.converting(), place) == (x, 2) and asked()


@pytest.mark.parametrize(
    "name, strides, outcome",
    [("neg_.default", (6, 1), True), ("neg.default", (6, 1), False),
     ("neg.default", (7, 1), False), ("copy.default", (6, 1), False),
     ("copy.default", (7, 1), True), ("copy.default", (1, 4), False),
     ("copy.default", NONE, True), ("slice_scatter.default", (6, 1), True),
     ("select_scatter.default", (6, 1), True)],
)  # fmt: skip
def test_which_results_begin_where_their_operand_does(name, strides, outcome):
    kind = tensor((4, 6), strides)
    p = Program(kind, tensor((6,)))
    x, part = p.arguments
    more = {"select": (part, 0, 1), "slice": (x,), "copy": (x,)}
    name_of = name.removesuffix(".default").removesuffix("_scatter")
    made = p.call(name, kind, x, *more.get(name_of, ()))
    assert storages.keeps_place(made.defining_op) is outcome


@pytest.mark.parametrize(
    "rows_, columns, offset, outcome",
    [(3, 4, 0, 3), (4, 3, 0, 3), (3, 4, 1, 3), (3, 4, 2, 2), (3, 4, -1, 2), (3, 4, 4, 0),
     (3, 4, 5, 0), (3, 4, -3, 0), (3, 4, -4, 0), (S, 4, 0, None), (3, S, 0, None)],
)  # fmt: skip
def test_the_length_of_a_diagonal(rows_, columns, offset, outcome):
    assert diagonal_size(rows_, columns, offset) == outcome
