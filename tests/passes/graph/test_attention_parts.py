"""The parts by which attention is recognized, on programs of a few nodes."""

from __future__ import annotations

import math
from typing import Any

import attrs
import pytest

from irc.ir.symbols import symbol
from irc.passes.graph.attention import recognize
from irc.passes.graph.attention.dims import Label, moves, start
from irc.passes.graph.attention.facts import MORE_ELEMENTS, interval
from irc.passes.graph.attention.program import NotAttention, OperatorCall, is_one


@attrs.define(eq=False)
class Node:
    """A tensor: what makes it, or the number that it holds; how many read it."""

    shape: tuple[Any, ...] = (2, 3)
    call: OperatorCall | None = None
    dtype: str = "float32"
    uses: int = 1
    number: float | None = None


class Nodes:
    """A program of nodes."""

    def call(self, value: Node) -> OperatorCall | None:
        return value.call

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, Node)

    def shape(self, value: Node) -> tuple[Any, ...]:
        return value.shape

    def dtype(self, value: Node) -> str:
        return value.dtype

    def uses(self, value: Node) -> int:
        return value.uses

    def same(self, first: Any, second: Any) -> bool:
        return bool(first == second)

    def number(self, value: Node) -> float | None:
        return value.number


PROGRAM: Any = Nodes()


def made(name: str, shape: tuple[Any, ...] = (2, 3), **arguments: Any) -> Node:
    dtype = arguments.pop("of_dtype", "float32")
    return Node(shape, OperatorCall(name, arguments), dtype)


def full(number: float) -> Node:
    return made("full.default", (), size=[], fill_value=number)


def condition(**more: Any) -> Node:
    return Node(dtype="bool", **more)


def chosen(first: Any, second: Any) -> Node:
    return made("where.self", condition=condition(), self=first, other=second)


# -- between which numbers the elements of a mask lie


@pytest.mark.parametrize(
    ("value", "ends"),
    [
        (2.5, (2.5, 2.5)),
        (full(-1.0), (-1.0, -1.0)),
        (-math.inf, None),
        (None, None),
        ("float32", None),
        (Node(), None),
        (condition(), (0.0, 1.0)),
        (made("exp.default", self=full(1.0)), None),
        (chosen(full(-3.0), full(2.0)), (-3.0, 2.0)),
        (chosen(full(2.0), full(-3.0)), (-3.0, 2.0)),
        (chosen(full(2.0), Node()), None),
        (chosen(Node(), full(2.0)), None),
        (made("view.default", self=chosen(1.0, 4.0), size=[6]), (1.0, 4.0)),
        (made("select.int", self=chosen(1.0, 4.0), dim=0, index=0), (1.0, 4.0)),
        (made("permute.default", self=chosen(1.0, 4.0), dims=[1, 0]), (1.0, 4.0)),
        (made("masked_fill.Scalar", self=full(1.0), mask=condition(), value=-2.0), (-2.0, 1.0)),
        (made("mul.Tensor", self=chosen(-2.0, 3.0), other=chosen(-5.0, 4.0)), (-15.0, 12.0)),
        (made("add.Tensor", self=chosen(-2.0, 3.0), other=condition(), alpha=1), (-2.0, 4.0)),
        (made("add.Tensor", self=chosen(-2.0, 3.0), other=condition(), alpha=2), None),
        (made("add.Tensor", self=chosen(-2.0, 3.0), other=Node(), alpha=1), None),
        (made("add.Tensor", self=Node(), other=chosen(-2.0, 3.0), alpha=1), None),
        (made("sub.Tensor", self=chosen(-2.0, 3.0), other=condition(), alpha=1), (-3.0, 3.0)),
        (made("rsub.Scalar", self=condition(), other=1, alpha=1), (0.0, 1.0)),
        (made("rsub.Scalar", self=chosen(1.0, 2.0), other=5, alpha=1), (3.0, 4.0)),
        (made("mul.Tensor", self=chosen(0.0, 300.0), other=300.0), (0.0, 90000.0)),
        (made("mul.Tensor", self=chosen(0.0, 300.0), other=300.0, of_dtype="float16"), None),
        (made("mul.Tensor", self=chosen(0.0, 1e30), other=1e30), None),
    ],
)  # fmt: skip
def test_between_which_numbers_elements_lie(value: Any, ends: tuple[float, float] | None) -> None:
    assert interval(PROGRAM, value) == ends


def counted(**ends: Any) -> Node:
    return made("arange.start_step", of_dtype="int64", **ends)


def compared(name: str, first: Any, second: Any) -> Node:
    return made(name, of_dtype="bool", self=first, other=second)


def held(*conditions: Any, name: str = "bitwise_and.Tensor") -> Node:
    words = dict(zip(("self", "other"), conditions, strict=False))
    return made(name, of_dtype="bool", **words)


POSITIONS = counted(start=0, end=7, step=1)
ALWAYS, NEVER = compared("ge.Scalar", POSITIONS, 0), compared("lt.Scalar", POSITIONS, 0)


@pytest.mark.parametrize(
    ("value", "ends"),
    [
        (POSITIONS, (0.0, 6.0)),
        (counted(start=3, end=9, step=2), (3.0, 8.0)),
        (counted(start=3, end=2, step=1), (3.0, 3.0)),
        (counted(start=0, end=symbol("n"), step=1), (0, MORE_ELEMENTS)),
        (counted(start=symbol("n"), end=9, step=1), None),
        (counted(start=9, end=0, step=-1), None),
        (made("add.Tensor", self=POSITIONS, other=-2, alpha=1, of_dtype="int64"), (-2.0, 4.0)),
        (made("add.Tensor", self=POSITIONS, other=125, alpha=1, of_dtype="int8"), None),
        (made("mul.Tensor", self=POSITIONS, other=-1, of_dtype="uint8"), None),
        (ALWAYS, (1.0, 1.0)),
        (NEVER, (0.0, 0.0)),
        (compared("ge.Scalar", counted(start=0, end=symbol("n"), step=1), 0), (1.0, 1.0)),
        (compared("gt.Scalar", POSITIONS, 0), (0.0, 1.0)),
        (compared("gt.Scalar", POSITIONS, -1), (1.0, 1.0)),
        (compared("le.Scalar", POSITIONS, 6), (1.0, 1.0)),
        (compared("le.Scalar", POSITIONS, 5), (0.0, 1.0)),
        (compared("lt.Scalar", POSITIONS, 7), (1.0, 1.0)),
        (compared("le.Tensor", POSITIONS, POSITIONS), (0.0, 1.0)),
        (compared("ge.Scalar", Node(), 0), (0.0, 1.0)),
        (held(ALWAYS, condition()), (0.0, 1.0)),
        (held(ALWAYS, ALWAYS), (1.0, 1.0)),
        (held(NEVER, condition()), (0.0, 0.0)),
        (held(ALWAYS, condition(), name="bitwise_or.Tensor"), (1.0, 1.0)),
        (held(ALWAYS, name="bitwise_not.default"), (0.0, 0.0)),
        (held(condition(), name="logical_not.default"), (0.0, 1.0)),
        (held(POSITIONS, name="logical_not.default"), (0.0, 1.0)),
        (held(POSITIONS, ALWAYS, name="logical_and.default"), (0.0, 1.0)),
        (made("where.self", condition=ALWAYS, self=2.0, other=Node()), (2.0, 2.0)),
        (made("where.self", condition=NEVER, self=Node(), other=3.0), (3.0, 3.0)),
        (made("_to_copy.default", self=chosen(2.0, 3.0), of_dtype="bool"), (1.0, 1.0)),
        (made("_to_copy.default", self=chosen(-2.0, 3.0), of_dtype="bool"), (0.0, 1.0)),
        (made("_to_copy.default", self=full(0.0), of_dtype="bool"), (0.0, 0.0)),
    ],
)  # fmt: skip
def test_conditions_that_always_hold(value: Any, ends: tuple[float, float] | None) -> None:
    assert interval(PROGRAM, value) == ends


def cast(value: Any, dtype: str) -> Node:
    return made("_to_copy.default", self=value, of_dtype=dtype)


LARGE, FAR = counted(start=0, end=2052, step=1), counted(start=2**63 - 9, end=2**63 - 1, step=1)
WIDE, BYTES = chosen(0.0, 3e38), cast(chosen(3.0, 200.0), "uint8")


@pytest.mark.parametrize(
    ("value", "ends"),
    [
        (cast(LARGE, "float16"), (0.0, 2052.0)),  # 2051 is rounded up
        (cast(made("mul.Tensor", self=LARGE, other=-1, of_dtype="int64"), "float16"), (-2052, 0)),
        (compared("le.Scalar", LARGE, 2051), (1.0, 1.0)),
        (compared("le.Scalar", cast(LARGE, "float16"), 2051), (0.0, 1.0)),
        (compared("lt.Scalar", cast(full(2050.0), "float16"), 2051), (0.0, 1.0)),  # is 2052 there
        (compared("lt.Scalar", counted(start=0, end=2**24 + 1, step=1), 2.0**24 + 1), (0.0, 1.0)),
        (compared("lt.Tensor", FAR, cast(full(2.0**63), "float32")), (0.0, 1.0)),
        (cast(counted(start=0, end=65505, step=1), "float16"), (0.0, 65504.0)),
        (cast(counted(start=0, end=65506, step=1), "float16"), None),  # may be infinite
        (cast(LARGE, "int8"), None),
        (cast(chosen(-1.5, 2.5), "int8"), (-1, 2)),
        (cast(chosen(-1.5, 2.5), "uint8"), None),
        (cast(chosen(-1.5, 2.5), "float8_e4m3fn"), None),
        (cast(WIDE, "float16"), None),
        (made("add.Tensor", self=WIDE, other=1e38, alpha=1), None),
        (made("add.Tensor", self=chosen(0.0, 256.0), other=1, alpha=1, of_dtype="bfloat16"),
         (1.0, 258.0)),
        (made("add.Tensor", self=FAR, other=7, alpha=1, of_dtype="int64"), None),
        (made("add.Tensor", self=FAR, other=1, alpha=1, of_dtype="int64"),
         (2**63 - 8, 2**63 - 1)),
        (made("where.self", condition=condition(), self=2051.0, other=0.0, of_dtype="float16"),
         (0.0, 2052.0)),
        (compared("ge.Scalar", BYTES, -1), (0.0, 1.0)),  # -1 is 255 there
        (compared("lt.Scalar", BYTES, 256), (0.0, 1.0)),
        (compared("lt.Scalar", BYTES, 201), (1.0, 1.0)),
        (compared("lt.Scalar", condition(), 2), (1.0, 1.0)),
        (made("arange.default", end=300, of_dtype="bfloat16"), None),
        (made("arange.default", end=257, of_dtype="bfloat16"), (0, 256)),
        (made("arange.default", end=300, of_dtype="uint8"), None),
        (made("arange.default", end=symbol("n"), of_dtype="float32"), None),
        (made("full.default", fill_value=2051, of_dtype="float16"), (2052.0, 2052.0)),
        (made("full.default", fill_value=2.7, of_dtype="int64"), (2, 2)),
        (made("full.default", fill_value=0.5, of_dtype="bool"), (1.0, 1.0)),
        (cast(full(0.5), "bool"), (1.0, 1.0)),
        (cast(cast(full(0.5), "int64"), "float32"), (0.0, 0.0)),
        (cast(full(-1e6), "float16"), None),
    ],
)  # fmt: skip
def test_ends_are_rounded_as_elements_are(
    value: Any, ends: tuple[float, float] | None
) -> None:
    assert interval(PROGRAM, value) == ends


def test_intervals_are_asked_for_only_so_deep() -> None:
    assert interval(PROGRAM, chosen(1.0, 4.0), depth=0) is None
    assert interval(PROGRAM, chosen(1.0, 4.0), depth=1) == (1.0, 4.0)
    value = chosen(1.0, 4.0)
    for _ in range(12):
        value = made("clone.default", self=value)
    assert interval(PROGRAM, value) is None
    assert interval(PROGRAM, value.call["self"]) == (1.0, 4.0)  # type: ignore[index]


# -- numbers and scales


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (3, 3.0), (True, 1.0), (0.5, 0.5), (None, None), ("float32", None), ([1], None),
        (Node(number=2.0), 2.0), (Node(number=0.0), 0.0), (Node(), None), (full(0.25), 0.25),
        (made("full.default", size=[2], fill_value=symbol("n")), None),
        (made("fill.Scalar", self=Node(), value=7), 7.0),
        (made("scalar_tensor.default", s=4), 4.0),
        (made("zeros.default", size=[2]), 0.0),
        (made("zeros_like.default", self=Node()), 0.0),
        (made("expand.default", self=full(2.0), size=[2, 3]), 2.0),
        (made("_to_copy.default", self=Node(number=2.0)), 2.0),
        (made("neg.default", self=full(2.0)), None),
    ],
)  # fmt: skip
def test_the_number_that_a_value_is(value: Any, number: float | None) -> None:
    assert recognize.number_of(PROGRAM, value) == number


X = Node()


@pytest.mark.parametrize(
    ("call", "number"),
    [
        (made("mul.Tensor", self=X, other=full(2.0)), 2.0),
        (made("mul.Tensor", self=full(2.0), other=X), 2.0),
        (made("mul.Scalar", self=X, other=2), 2.0),
        (made("div.Tensor", self=X, other=full(4.0)), 0.25),
        (made("div.Tensor", self=full(4.0), other=X), None),
        (made("div.Tensor", self=X, other=full(0.0)), None),
        (made("div.Tensor", self=X, other=full(4.0), rounding_mode="floor"), None),
        (made("div.Tensor", self=X, other=full(4.0), rounding_mode=None), 0.25),
        (made("mul.Tensor", self=X, other=full(math.inf)), None),
        (made("mul.Tensor", self=X, other=Node()), None),
        (made("mul.Scalar", self=X, other=symbol("n")), None),
        (made("mul.Scalar", self=2.0, other=2.0), None),
        (made("add.Tensor", self=X, other=full(2.0)), None),
    ],
)
def test_what_a_call_scales_by(call: Node, number: float | None) -> None:
    scaled = recognize.scaling(PROGRAM, call.call)  # type: ignore[arg-type]
    assert scaled == (None if number is None else (X, number))


def test_a_factor_is_peeled_where_size_and_dtype_stay() -> None:
    def peeled(value: Node) -> Any:
        return recognize._scaled_alike(PROGRAM, value.call, value)  # type: ignore[arg-type]

    assert peeled(made("mul.Scalar", self=X, other=2)) == (X, 2.0)
    assert peeled(made("mul.Tensor", (4, 2, 3), self=X, other=full(2.0))) is None
    assert peeled(made("mul.Tensor", (1, 3), self=X, other=full(2.0))) is None
    assert peeled(made("mul.Scalar", self=X, other=2, of_dtype="float64")) is None
    assert peeled(made("add.Scalar", self=X, other=2)) is None


def test_shapes_of_one_rank_and_size() -> None:
    assert recognize._has_shape(PROGRAM, X, (2, 3))
    assert not recognize._has_shape(PROGRAM, X, (2, 4))
    assert not recognize._has_shape(PROGRAM, X, (2,))
    assert not recognize._has_shape(PROGRAM, X, (2, 3, 1))


class Guarded:
    """A size that may not be compared: the comparison is a guard."""

    def __eq__(self, other: object) -> bool:
        raise AssertionError("compared")

    __hash__ = None  # type: ignore[assignment]


def test_only_the_number_one_is_one() -> None:
    assert is_one(1) and not is_one(2) and not is_one(0)
    assert not is_one(symbol("n")) and not is_one(Guarded())


# -- the softmax of rows without a key


def safe(**other: Any) -> Any:
    """What `_safe_softmax` says of where(all(scores == -inf), 0, softmax(scores)), changed."""
    scores = other.get("scores", X)
    compared = other.get("compared", made("eq.Scalar", self=scores, other=-math.inf))
    none = other.get("none", made("all.dim", self=compared, dim=-1, keepdim=True))
    soft = other.get("soft", made("_softmax.default", self=X, dim=-1, half_to_float=False))
    call = made("where.self", condition=none, self=other.get("zero", full(0.0)), other=soft).call
    assert call is not None
    return recognize._safe_softmax(PROGRAM, call) is soft


def test_the_softmax_whose_empty_rows_are_zero() -> None:
    assert safe()
    assert not safe(scores=Node())
    assert not safe(zero=full(1.0))
    assert not safe(compared=condition())
    assert not safe(compared=made("ne.Scalar", self=X, other=-math.inf))
    assert not safe(compared=made("eq.Scalar", self=X, other=0.0))
    assert not safe(none=condition())
    assert not safe(none=made("any.dim", self=condition(), dim=-1))
    assert not safe(soft=Node())
    assert not safe(soft=made("exp.default", self=X))


# -- the way from the softmax to the first product


def product(uses: int = 1) -> Node:
    node = made("bmm.default", self=Node(), mat2=Node())
    node.uses = uses
    return node


def walked(value: Any, depth: int = 8) -> Any:
    return recognize._walk(PROGRAM, value, 1.0, depth)


def test_the_way_to_the_product() -> None:
    first = product()
    assert walked(first) == (first, [], 1.0)
    assert walked(made("mul.Scalar", self=first, other=0.5)) == (first, [], 0.5)
    cast = OperatorCall("_to_copy.default", {
        "self": first, "non_blocking": False, "memory_format": None})  # fmt: skip
    assert walked(Node(call=cast)) == (first, [], 1.0)
    assert walked(Node(call=cast, dtype="int32")) is None
    assert walked(Node()) is None and walked(made("tanh.default", self=first)) is None
    for step in (made("mul.Scalar", self=first, other=0.5), Node(call=cast),
                 made("view.default", self=first, size=[2, 3])):  # fmt: skip
        assert walked(step, depth=2)[0] is first and walked(step, depth=1) is None


def test_scores_that_others_read_end_the_way() -> None:
    top = recognize._DEPTH
    twice = product(uses=2)
    assert walked(twice, top) == (twice, [], 1.0), "of the softmax's operand others are counted"
    assert walked(made("mul.Scalar", self=twice, other=0.5), top) is None
    assert walked(made("mul.Scalar", self=product(uses=0), other=0.5), top) is None


def test_what_is_added_to_scores() -> None:
    first, bias = product(), Node()
    _, steps, _ = walked(made("add.Tensor", self=first, other=bias, alpha=2))
    assert steps[0].mask == (bias, None, False, 2.0)
    _, steps, scale = walked(made("sub.Tensor", self=bias, other=first, alpha=1))
    assert steps[0].mask == (bias, None, False, 1.0) and scale == -1.0
    assert walked(made("add.Tensor", self=first, other=full(3.0), alpha=1)) == (first, [], 1.0)
    assert walked(made("add.Tensor", self=first, other=bias, alpha=symbol("n"))) is None
    assert walked(made("add.Tensor", (4, 2, 3), self=first, other=bias, alpha=1)) is None


def test_what_takes_the_place_of_scores() -> None:
    first, seen = product(), condition()

    def where(yes: Any, no: Any) -> Any:
        return walked(made("where.self", condition=seen, self=yes, other=no))

    assert where(first, full(-math.inf))[1][0].mask == (seen, -math.inf, True, 1.0)
    assert where(full(-2.0), first)[1][0].mask == (seen, -2.0, False, 1.0)
    assert where(first, full(2.0)) is None and where(first, full(math.nan)) is None
    assert where(first, Node()) is None
    assert where(first, full(0.0))[1][0].mask == (seen, 0.0, True, 1.0)


# -- dimensions


B, H, L, S = Label(2, 0), Label(4, 1), Label(5, 2), Label(7, 3)
LABELS = (B,), (H,), (L,), (S,)


def test_the_dimensions_of_a_mask() -> None:
    def slots(shape: tuple[Any, ...], labels: Any = LABELS) -> Any:
        batch, heads, queries, keys = labels
        groups = (*batch, *heads), queries, keys
        return recognize._mask_slots(PROGRAM, Node(shape), groups, labels)

    assert slots((8, 5, 7)) == ((2, 4, 5, 7), (0, 1, 2, 3))
    assert slots((1, 5, 7)) == ((1, 5, 7), (None, None, 1, 2))
    assert slots((8, 1, 7)) == ((2, 4, 1, 7), (0, 1, None, 3))
    assert slots((7,)) == ((7,), (None, None, None, 0))
    batched = (Label(symbol("b"), 0),), (H,), (L,), (S,)
    assert slots((5, 7), batched) == ((5, 7), (None, None, 0, 1))
    with pytest.raises(NotAttention, match="which change, in one dimension"):
        slots((symbol("b") * 4, 5, 7), batched)
    sized = (B,), (Label(symbol("h"), 1),), (L,), (S,)
    with pytest.raises(NotAttention, match="which change, in one dimension"):
        slots((symbol("h") * 2, 5, 7), sized)


def test_heads_that_are_shared() -> None:
    shared = Label(2)
    assert recognize._are_heads((B,), (H,), False) and recognize._are_heads((), (), False)
    assert recognize._are_heads((B,), (H, shared), True)
    assert recognize._are_heads((B,), (shared,), True)
    assert not recognize._are_heads((B,), (H, shared), False)
    assert not recognize._are_heads((B,), (shared, H), True)
    assert not recognize._are_heads((B,), (shared, Label(2)), True)
    assert not recognize._are_heads((shared,), (), True)
    assert not recognize._are_heads((shared,), (H,), True)
    assert not recognize._are_heads((B, H), (), True)
    assert not recognize._are_heads((), (B, H), True)


def test_the_labels_of_a_factor() -> None:
    def slots(first: tuple[Label, ...], last: Any = ((L,), (S,)), order: Any = (0, 1)) -> Any:
        return recognize._slots(PROGRAM, (first, *last), LABELS, order, False)

    assert slots((B, H)) == ((B,), (H,), (L,), (S,))
    assert slots((B, H), order=(1, 0)) == ((B,), (H,), (S,), (L,))
    assert slots((B,)) is None, "the heads are missing"
    assert slots((B, H, L)) is None, "one is left over"
    assert slots((H, B)) is None, "4 are no batch of 2"
    assert slots((B, Label(4))) is None, "heads that are repeated"
    assert slots((B, Label(2, 1), Label(2, 2))) is None, "heads in two dimensions"
    assert slots((B, H), ((L, S), ())) is None and slots((B, H), ((Label(5),), (S,))) is None


def test_what_the_written_form_copies() -> None:
    view = made("view.default", self=X, size=[6])
    clone = made("clone.default", self=view)
    assert not recognize.copies(PROGRAM, X)
    assert not recognize.copies(PROGRAM, view)
    assert recognize.copies(PROGRAM, clone)
    assert recognize.copies(PROGRAM, made("expand.default", self=clone, size=[2, 3]))
    assert not recognize.copies(PROGRAM, made("exp.default", self=clone))
    assert not moves(None)


def test_sizes_of_one_are_no_dimension() -> None:
    (batch,), heads, (width,) = start(PROGRAM, Node((2, 1, 3)))
    assert heads == () and (batch.size, batch.dim, width.size, width.dim) == (2, 0, 3, 2)
