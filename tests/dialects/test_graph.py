"""The graph dialect: inferred types and what the verifier refuses."""

from __future__ import annotations

import pytest

from irc.dialects import graph
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import Block
from irc.ir.diagnostics import InvalidIR
from irc.ir.symbols import symbol
from irc.ir.types import TensorType, bf16, f32, i1, i32, i64, index
from irc.ir.verifier import verify

MATRIX = TensorType((4, 6), f32)


@pytest.fixture
def builder():
    return Builder(Block([MATRIX, MATRIX, TensorType((3,), i64), TensorType((4, 6), bf16)]))


def operand(builder, number):
    return builder.block.arguments[number]


def test_pointwise_types_are_inferred(builder):
    x, y = operand(builder, 0), operand(builder, 1)
    for name, cls in graph.POINTWISE.items():
        if cls.domain not in ("float", "number", "comparable"):
            continue
        count = len(cls.operand_fields)
        op = builder.create(cls, *(x, y)[:count])
        op.verify_op()
        assert op.results[0].type.element is (i1 if cls.gives_bool else f32), name


def test_pointwise_refuses_other_shapes_and_narrow_floats(builder):
    x = operand(builder, 0)
    other = Block([TensorType((6,), f32)]).arguments[0]
    with pytest.raises(InvalidIR, match="operand 1"):
        graph.Add((x, other), (MATRIX,)).verify_op()
    narrow = operand(builder, 3)
    with pytest.raises(InvalidIR, match="not defined on"):
        graph.Exp((narrow,), (narrow.type,)).verify_op()
    with pytest.raises(InvalidIR, match="not defined on"):
        graph.And((x, x), (MATRIX,)).verify_op()


def test_views_and_reductions_infer_their_shapes(builder):
    x = operand(builder, 0)
    assert builder.value(graph.Permute, x, permutation=[1, 0]).type.shape == (6, 4)
    kept = builder.value(graph.Reduce, x, combiner="sum", dims=[1], keepdim=True)
    assert kept.type.shape == (4, 1)
    assert builder.value(graph.Reduce, x, combiner="max", dims=[0]).type.shape == (6,)
    place = builder.value(graph.ArgReduce, x, combiner="argmax", dims=[0, 1])
    assert place.type == TensorType((), i64)
    mean, spread = builder.create(graph.Moments, x, dims=[0]).results
    assert mean.type.shape == spread.type.shape == (6,)
    size = symbol("s0")
    wide = TensorType((4, size), f32)
    y = Block([wide]).arguments[0]
    joined = builder.value(graph.Concat, [x, y], dim=1)
    assert joined.type.shape == (4, size + 6)
    joined.owner.verify_op()


def test_take_puts_index_dimensions_at_position(builder):
    x, i = operand(builder, 0), operand(builder, 2)
    first = builder.value(graph.Take, x, [i], dims=[0], position=0)
    assert first.type.shape == (3, 6)
    last = builder.value(graph.Take, x, [i], dims=[1], position=1)
    assert last.type.shape == (4, 3)
    both = builder.value(graph.Take, x, [i, i], dims=[0, 1], position=0)
    assert both.type.shape == (3,)
    both.owner.verify_op()


@pytest.mark.parametrize(
    ("cls", "kind", "attributes", "message"),
    [
        (graph.Reshape, TensorType((5, 5), f32), {}, "24 elements become 25"),
        (graph.Broadcast, TensorType((4, 7), f32), {"dims": [0, 1]}, "can't become"),
        (graph.Slice, TensorType((4, 6), f32), {"dim": 1, "start": 1, "step": 1}, "outside"),
        (graph.Window, TensorType((4, 5, 3), f32), {"dim": 1, "step": 1, "dilation": 1}, "outside"),
        (graph.Iota, TensorType((4,), f32), {"dim": 0}, "not integers"),
        (graph.Reduce, TensorType((4,), f32), {"combiner": "mean", "dims": [1]}, "combiner"),
        (graph.Scan, MATRIX, {"combiner": "sum", "dim": 2}, "dims"),
    ],
)
def test_verifier_refuses(builder, cls, kind, attributes, message):
    operands = () if cls is graph.Iota else (operand(builder, 0),)
    op = cls.make(*operands, result_types=kind, **attributes)
    with pytest.raises(InvalidIR, match=message):
        verify(op)


def test_full_is_an_attribute_or_a_scalar(builder):
    one = A.FloatAttr(1.5, f32)
    builder.create(graph.Full, None, value=one, result_types=TensorType((), f32)).verify_op()
    with pytest.raises(InvalidIR, match="is of type"):
        graph.Full.make(None, value=1.5, result_types=TensorType((), i32)).verify_op()
    with pytest.raises(InvalidIR, match="either"):
        graph.Full.make(None, result_types=TensorType((), i32)).verify_op()
    scalar = Block([index]).arguments[0]
    graph.Full.make(scalar, result_types=TensorType((2,), f32)).verify_op()


def test_item_and_from_scalar_know_their_scalars(builder):
    one = Block([TensorType((1,), i64)]).arguments[0]
    item = builder.create(graph.Item, one)
    assert item.results[0].type is index
    assert builder.value(graph.FromScalar, item.results[0]).type == TensorType((), i64)
    with pytest.raises(InvalidIR, match="one element"):
        graph.Item.make(operand(builder, 0)).verify_op()


def test_random_and_effectful_calls_stay(builder):
    x = operand(builder, 0)
    call = graph.CallAten.make(
        [x], callee="aten.bernoulli.p", arguments={}, random=True, result_types=(MATRIX,)
    )
    assert not call.is_removable()
    pure = graph.CallAten.make([x], callee="aten.neg.default", arguments={}, result_types=(MATRIX,))
    assert pure.is_removable()
