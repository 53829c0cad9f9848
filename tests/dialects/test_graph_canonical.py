"""Graph canonicalization keeps every value, and removes what it should."""

import math

import pytest

torch = pytest.importorskip("torch")

from irc.dialects import graph  # noqa: E402
from irc.dialects.func import FuncOp, ReturnOp  # noqa: E402
from irc.interp import run  # noqa: E402
from irc.interp.core import torch_dtype  # noqa: E402
from irc.ir import types as T  # noqa: E402
from irc.ir.builder import Builder  # noqa: E402
from irc.ir.module import ModuleOp  # noqa: E402
from irc.ir.passes import PassManager  # noqa: E402
from irc.ir.types import TensorType  # noqa: E402

SPECIAL = [0.0, -0.0, 1.5, -2.0, math.inf, -math.inf, math.nan, 1e-40, 300.7, 65504.0, -1.0, 7.0]


def simplify(build, type_):
    """The ops left of main(x) = build(x) after canonicalize, with equal values before and after."""
    module = ModuleOp.empty()
    function = FuncOp.create("main", [type_], [])
    module.block.append(function)
    b = Builder.at_end(function.block)
    out = build(b, function.block.arguments[0])
    b.create(ReturnOp, [out])
    function.refresh_type()
    values = torch.tensor(SPECIAL).reshape(type_.shape)
    if not torch_dtype(type_.element).is_floating_point:
        values = values.nan_to_num(5.0, 100.0, -100.0)
    x = values.to(torch_dtype(type_.element))
    before = run(module, x)[0]
    PassManager.parse("canonicalize", verify="none").run(module)
    after = run(module, x)[0]
    torch.testing.assert_close(after, before, rtol=0, atol=0, equal_nan=True)
    number = before == before
    assert torch.equal(torch.signbit(after)[number], torch.signbit(before)[number])
    return [op.name.partition(".")[2] for op in function.block.ops][:-1]


X = TensorType([3, 4], T.f32)


def full(b, value, type_):
    attr = graph.scalar_attribute(value, type_.element)
    return b.value(graph.Full, None, value=attr, result_types=type_)


def test_views_of_views_become_one():
    def twice(b, x):
        y = b.value(graph.Permute, x, permutation=[1, 0])
        y = b.value(graph.Permute, y, permutation=[1, 0])
        y = b.value(graph.Reshape, y, result_types=TensorType([12], T.f32))
        return b.value(graph.Reshape, y, result_types=TensorType([2, 6], T.f32))

    assert simplify(twice, X) == ["reshape"]


@pytest.mark.parametrize(
    ("element", "made", "left"),
    [(T.f32, T.f32, ["slice", "reshape", "broadcast"]),
     (T.f32, T.bf16, ["slice", "reshape", "cast", "broadcast"]),
     (T.i64, T.f32, ["slice", "reshape", "cast", "broadcast"]),
     (T.f32, T.i32, ["slice", "item", "full"])],
)  # fmt: skip
def test_a_number_read_from_a_tensor_to_fill_another_is_not_read(element, made, left):
    def build(b, x):
        kind = TensorType([1, 1], element)
        one = b.value(graph.Slice, x, dim=0, start=2, step=1,
                      result_types=TensorType([1, 4], element))  # fmt: skip
        one = b.value(graph.Slice, one, dim=1, start=3, step=1, result_types=kind)
        number = b.value(graph.Item, one)
        return b.value(graph.Full, number, result_types=TensorType([2, 3], made))

    found = simplify(build, TensorType([3, 4], element))
    assert [name for name in found if name != "slice"] == left[1:]


def test_broadcasts_combine():
    def twice(b, x):
        y = b.value(
            graph.Broadcast, x, dims=[1, 2], result_types=TensorType([2, 3, 4], T.f32)
        )
        return b.value(
            graph.Broadcast, y, dims=[0, 2, 3], result_types=TensorType([2, 5, 3, 4], T.f32)
        )

    assert simplify(twice, X) == ["broadcast"]


@pytest.mark.parametrize(
    "op, value, left",
    [
        (graph.Add, 0.0, ["full", "add"]),
        (graph.Add, -0.0, []),
        (graph.Sub, 0.0, []),
        (graph.Sub, -0.0, ["full", "sub"]),
        (graph.Mul, 1.0, []),
        (graph.Mul, 0.0, ["full", "mul"]),
        (graph.Div, 1.0, []),
    ],
)
def test_only_true_neutral_elements_go(op, value, left):
    assert simplify(lambda b, x: b.value(op, x, full(b, value, X)), X) == left


@pytest.mark.parametrize(
    "path, left",
    [
        ([T.f32, T.bf16], 0),
        ([T.f32, T.f64, T.bf16], 0),
        ([T.f64, T.f16, T.f32], 2),
        ([T.i32, T.f32], 2),
        ([T.f32, T.f16], 1),
        ([T.i1, T.bf16], 2),
    ],
)
def test_casts_combine_only_where_nothing_is_lost(path, left):
    start = TensorType([3, 4], T.bf16)

    def casts(b, x):
        for element in path:
            x = b.insert(graph.Cast.to(x, element)).results[0]
        return x

    assert len(simplify(casts, start)) == left


def test_casts_of_constants_fold_to_the_rounded_value():
    def cast(b, x):
        y = full(b, 0.1, TensorType([3, 4], T.f32))
        return b.insert(graph.Cast.to(y, T.bf16)).results[0]

    assert simplify(cast, X) == ["full"]


def test_bool_algebra():
    flag = TensorType([3, 4], T.i1)

    def program(b, x):
        y = b.value(graph.And, x, full(b, True, flag))
        y = b.value(graph.Or, full(b, False, flag), y)
        y = b.value(graph.Not, b.value(graph.Not, y))
        return b.value(graph.Eq, y, full(b, True, flag))

    assert simplify(program, flag) == []


@pytest.mark.fault("V19")
@pytest.mark.parametrize("condition", [True, False])
def test_a_select_of_a_known_condition_is_the_chosen_one(condition):
    def chosen(b, x):
        other = b.value(graph.Neg, x)
        return b.value(graph.Select, full(b, condition, TensorType([3, 4], T.i1)), x, other)

    assert simplify(chosen, X) == ([] if condition else ["neg"])


def test_a_select_of_one_value_is_it_and_of_two_stays():
    def build(b, x, same):
        flags = b.value(graph.Gt, x, full(b, 0.0, X))
        return b.value(graph.Select, flags, x, x if same else b.value(graph.Neg, x))

    assert simplify(lambda b, x: build(b, x, True), X) == []
    assert "select" in simplify(lambda b, x: build(b, x, False), X)


def power(dims=(1,), combiner="max", keepdim=True, spread=None, other=False, turned=False):
    """Builds exp(x - the largest of x's rows), or nearly so."""

    def build(b, x):
        rows = b.value(graph.Neg, x) if other else x
        row = b.value(graph.Reduce, rows, combiner=combiner, dims=list(dims), keepdim=keepdim)
        spreads = spread if spread is not None else [0, 1]
        row = b.value(graph.Broadcast, row, dims=spreads, result_types=x.type)
        sides = (row, x) if turned else (x, row)
        return b.value(graph.Exp, b.value(graph.Sub, *sides))

    return build


@pytest.mark.parametrize(
    ("shape", "facts", "flagged"),
    [
        ((3, 4), {}, True), ((3, 4), {"dims": (0, 1)}, True), ((3, 4), {"dims": (0,)}, True),
        ((3, 4), {"combiner": "min"}, False), ((3, 4), {"combiner": "sum"}, False),
        ((3, 4), {"other": True}, False), ((3, 4), {"turned": True}, False),
        # The maxima of rows, of which each column takes another.
        ((3, 3), {"keepdim": False, "spread": [1]}, False),
        ((3, 3), {"keepdim": False, "spread": [0]}, False),
    ],
)  # fmt: skip
def test_a_power_of_what_is_not_above_a_maximum_says_so(shape, facts, flagged):
    module = ModuleOp.empty()
    function = FuncOp.create("main", [TensorType(shape, T.f32)], [])
    module.block.append(function)
    b = Builder.at_end(function.block)
    b.create(ReturnOp, [power(**facts)(b, function.block.arguments[0])])
    function.refresh_type()
    x = torch.tensor([-1.0, 2.0, 0.5, 3.0] * 3)[: math.prod(shape)].reshape(shape)
    before = run(module, x)[0]
    PassManager.parse("canonicalize", verify="each").run(module)
    torch.testing.assert_close(run(module, x)[0], before, rtol=0, atol=0)
    (exp,) = [op for op in function.block.ops if isinstance(op, graph.Exp)]
    assert bool(exp.nonpositive) is flagged
