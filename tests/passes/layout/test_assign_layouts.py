"""Strides: what is a view, who writes the strides that the caller must see, what is copied."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import irc.interp
from irc.dialects import aten, func, graph, layout
from irc.ir import attributes as A
from irc.ir.passes import PassManager
from irc.ir.strides import dense_like, keeps_apart, regroup, reshape_strides
from irc.ir.symbols import symbol
from irc.ir.types import TensorType, contiguous_strides, f32
from tests.passes.loop.programs import program, tensor

LAYOUT = "assign-layouts,insert-layout-copies"


def strided(shape: Any, strides: Any) -> TensorType:
    return TensorType(shape, f32, strides)


def run(module: Any) -> func.FuncOp:
    PassManager.parse(LAYOUT).run(module)
    return next(iter(module.ops))  # type: ignore[no-any-return]


def info(strides: Any, **rest: Any) -> dict[str, Any]:
    return {"strides": A.DimsAttr(strides), **rest}


def copies(function: func.FuncOp) -> int:
    return sum(isinstance(op, layout.CopyOp) for op in function.block.ops)


def test_channels_last_stays_through_pointwise_ops() -> None:
    last = (60, 1, 15, 3)  # of sizes (2, 3, 4, 5)
    module = program(
        [strided((2, 3, 4, 5), last), tensor(3)],
        lambda g, x, b: g.op("exp", g.op("add", x, g.broadcast(b, x.type.shape, [1]))),
        [info(last)],
    )
    function = run(module)
    assert function.return_op.operands[0].type.strides == last
    assert copies(function) == 0


def test_a_producer_writes_the_strides_that_its_caller_wants() -> None:
    module = program([tensor(4, 6)], lambda g, x: g.op("exp", x), [info((1, 4))])
    function = run(module)
    assert function.return_op.operands[0].type.strides == (1, 4)
    assert copies(function) == 0


def test_a_wish_goes_back_through_a_permutation() -> None:
    module = program(
        [tensor(4, 6)],
        lambda g, x: g.op("permute", g.op("exp", x), permutation=[1, 0]),
        [info((4, 1))],
    )
    function = run(module)
    assert function.return_op.operands[0].type.strides == (4, 1)
    assert copies(function) == 0


def test_an_argument_that_is_returned_is_copied_unless_it_is_an_alias() -> None:
    module = program([tensor(4, 6)], lambda g, x: x)
    assert copies(run(module)) == 1
    alias = info((6, 1), alias_of=A.IntegerAttr(0))
    module = program([tensor(4, 6)], lambda g, x: x, [alias])
    assert copies(run(module)) == 0


def test_a_view_of_an_argument_stays_a_view() -> None:
    alias = info((1, 6), alias_of=A.IntegerAttr(0))
    module = program([tensor(4, 6)], lambda g, x: g.op("permute", x, permutation=[1, 0]), [alias])
    function = run(module)
    assert "view" in function.return_op.operands[0].defining_op.attributes
    assert copies(function) == 0


def test_a_call_that_gives_other_strides_is_copied() -> None:
    def build(g: Any, x: Any) -> Any:
        return g.call("aten.relu.default", x, type=tensor(4, 6), arguments={})

    function = run(program([tensor(4, 6)], build, [info((1, 4))]))
    assert copies(function) == 1
    assert function.return_op.operands[0].type.strides == (1, 4)


def test_strides_of_single_elements_are_shown_without_a_copy() -> None:
    def build(g: Any, x: Any) -> Any:
        return g.call("aten.relu.default", x, type=tensor(4, 1, 6), arguments={})

    function = run(program([tensor(4, 1, 6)], build, [info((6, 1, 1))]))
    assert function.return_op.operands[0].type.strides == (6, 1, 1)
    assert copies(function) == 0


S0, S1 = symbol("s0"), symbol("s1")


@pytest.mark.parametrize(
    ("source", "strides", "target", "expected"),
    [
        ((4, 6), (6, 1), (24,), (1,)),
        ((4, 6), (1, 4), (24,), None),
        ((4, 6), (12, 2), (24,), (2,)),
        ((2, 3, 4), (24, 4, 1), (2, 12), (24, 1)),
        ((2, 12), (24, 1), (2, 3, 4), (24, 4, 1)),
        ((S0, S1, 12), (S1 * 12, 12, 1), (S0 * S1, 12), (12, 1)),
        ((S0, S1, 12), (S1 * 24, 24, 1), (S0 * S1, 12), (24, 1)),
        ((S0, S1, 12), (S1 * 24, 24, 2), (S0, S1, 3, 4), (S1 * 24, 24, 8, 2)),
        ((S0, 12, S1), (S1 * 12, 1, 12), (S0, 3, 4, S1), (S1 * 12, 4, 1, 12)),
        ((S0, 12, S1), (S1 * 12, 1, 12), (S0, 12 * S1), None),
    ],
)
def test_reshape_strides(source: Any, strides: Any, target: Any, expected: Any) -> None:
    assert reshape_strides(source, strides, target) == expected


@pytest.mark.parametrize("seed", range(30))
def test_views_and_dense_orders_are_those_of_eager(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)

    def pick(low: int, high: int) -> int:
        return int(torch.randint(low, high, (), generator=generator))

    shape = [pick(1, 5) for _ in range(pick(2, 5))]
    order = torch.randperm(len(shape), generator=generator).tolist()
    x = torch.randn([shape[d] for d in order]).permute(torch.tensor(order).argsort().tolist())
    assert list(x.shape) == shape
    y = torch.randn(shape)
    assert dense_like(shape, [x.stride(), y.stride()]) == (x + y).stride()
    assert dense_like(shape, [x.stride()]) == x.neg().stride()
    groups = list(regroup(shape, [x.numel()]))
    assert sum(len(left) for left, _ in groups) == sum(size != 1 for size in shape)
    cut = pick(1, len(shape))
    merged = [*shape[: cut - 1], shape[cut - 1] * shape[cut], *shape[cut + 1 :]] if cut < len(
        shape
    ) else shape  # fmt: skip
    try:
        expected = x.view(merged).stride()
    except RuntimeError:
        assert reshape_strides(shape, x.stride(), merged) is None
        return
    found = reshape_strides(shape, x.stride(), merged)
    assert found is not None
    strided_view = x.as_strided(merged, found)
    assert torch.equal(strided_view, x.reshape(merged)) and len(found) == len(expected)


def test_every_level_gives_the_same_memory_order() -> None:
    module = program(
        [strided((3, 4), (1, 3)), tensor(3, 4)],
        lambda g, x, y: [g.op("add", x, y), g.op("mul", y, x)],
        [info((1, 3)), info(contiguous_strides((3, 4)))],
    )
    x, y = torch.randn(4, 3).t(), torch.randn(3, 4)
    run(module)
    first, second = irc.interp.run(module, x, y)
    assert torch.equal(first, x + y) and torch.equal(second, y * x)


def _relu_of_exponential(passed: Any) -> Any:
    def build(g: Any, x: Any) -> Any:
        made = g.call("aten.relu.default", g.op("exp", x), type=tensor(4, 6), arguments={})
        made.defining_op.attributes["operand_strides"] = A.ArrayAttr([A.DimsAttr(passed)])
        return made

    return build


def test_a_producer_writes_the_strides_that_eager_passes_to_a_call() -> None:
    function = run(program([tensor(4, 6)], _relu_of_exponential((1, 4))))
    (call,) = [op for op in function.block.ops if op.name == "graph.call_aten"]
    assert call.operands[0].type.strides == (1, 4)
    assert copies(function) == 0


def test_an_argument_with_other_strides_is_copied_for_a_call() -> None:
    def build(g: Any, x: Any) -> Any:
        made = g.call("aten.relu.default", x, type=tensor(4, 6), arguments={})
        made.defining_op.attributes["operand_strides"] = A.ArrayAttr([A.DimsAttr((1, 4))])
        return made

    function = run(program([tensor(4, 6)], build))
    assert copies(function) == 1


def test_a_repeated_element_is_never_written() -> None:
    function = run(program([tensor(4, 6)], _relu_of_exponential((0, 1))))
    (call,) = [op for op in function.block.ops if op.name == "graph.call_aten"]
    assert call.operands[0].type.strides == (6, 1)


def _relu_of_repeated(g: Any, rows: Any) -> Any:
    """A call whose operand eager repeats four times from columns that lie side by side."""
    made = g.broadcast(rows, (4, 6, 5), [1, 2])
    given: dict[str, A.Attribute] = {"self": aten.OperandAttr(0)}
    called = g.call("aten.relu.default", made, type=tensor(4, 6, 5), arguments=given)
    called.defining_op.attributes["operand_strides"] = A.ArrayAttr([A.DimsAttr((0, 8, 1))])
    return called


def operand_of_call(function: func.FuncOp) -> TensorType:
    (call,) = [op for op in function.block.ops if op.name == "graph.call_aten"]
    return call.operands[0].type  # type: ignore[no-any-return]


def test_a_wish_goes_back_through_repetition_and_slices() -> None:
    def build(g: Any, x: Any) -> Any:
        turned = g.op("permute", x, permutation=[1, 0])
        padded = g.op("pad", turned, low=[0, 0], high=[0, 3], value=graph.scalar_attribute(0, f32),
                      type=tensor(6, 8))  # fmt: skip
        cut = g.op("slice", padded, dim=1, start=0, step=1, type=tensor(6, 5))
        return _relu_of_repeated(g, cut)

    function = run(program([tensor(5, 6)], build))
    assert operand_of_call(function).strides == (0, 8, 1)
    assert copies(function) == 0


def test_a_repeated_operand_is_copied_once_and_repeated() -> None:
    def build(g: Any, x: Any) -> Any:
        return _relu_of_repeated(g, g.op("permute", x, permutation=[1, 0]))

    module = program([tensor(5, 6)], build)
    function = run(module)
    assert operand_of_call(function).strides == (0, 8, 1)
    (copy,) = [op for op in function.block.ops if isinstance(op, layout.CopyOp)]
    assert math.prod(copy.copy.type.shape) == 30
    x = torch.randn(5, 6)
    (found,) = irc.interp.run(module, x)
    assert torch.equal(found, x.t().expand(4, 6, 5).relu())


@pytest.mark.parametrize(
    ("shape", "strides", "apart"),
    [
        ((6, 8), (8, 1), True), ((6, 8), (5, 1), False), ((1, 8), (0, 1), True),
        ((2, 8), (0, 1), False), ((S0, 8), (8, 1), True), ((8, S0), (S0, 1), True),
        ((S0, S1), (S1 * 2, 2), True), ((S0, S1), (S0, 1), False),
    ],
)  # fmt: skip
def test_keeps_apart(shape: Any, strides: Any, apart: bool) -> None:
    assert keeps_apart(shape, strides) is apart


TAKEN = """func.func @main(%x: tensor<SHAPE x f32, strides SOURCE>, %i: tensor<INDEX x i64,
    strides OF_INDEX>) -> VALUE attributes {level = "graph"} {
  %t = graph.take %x, INDICES {dims = array<i64: DIMS>, position = POSITION : i64, check_bounds}
    : (TYPES) -> VALUE
  %y = graph.neg %t : (VALUE) -> VALUE
  return %y : VALUE
}"""


@pytest.mark.parametrize(("source", "strides", "dims", "position", "index", "expected"), [
    ((2, 3, 4, 5), (60, 1, 15, 3), (2, 3), 2, (6, 7), (126, 1, 21, 3)),
    ((2, 3, 4, 5), (60, 20, 5, 1), (2, 3), 2, (6, 7), (126, 42, 7, 1)),
    ((2, 3, 4, 5), (60, 1, 15, 3), (2,), 2, (6, 7), (630, 1, 105, 15, 3)),
    ((9, 4), (4, 1), (0,), 0, (3, 2), (8, 4, 1)),
    ((9, 4), (1, 9), (0,), 0, (3,), (4, 1)),
    ((9, 4), (1, 9), (1,), 1, (3,), (1, 9)),
    ((2, 3, 4), (12, 4, 1), (0, 2), 0, (5,), (3, 1)),
    ((6,), (1,), (0,), 0, (2, 5), (5, 1)),
])  # fmt: skip
def test_what_is_taken_lies_as_its_source(
    source: Any, strides: Any, dims: Any, position: int, index: Any, expected: Any
) -> None:
    """Where elements side by side are taken together."""
    kept = [size for d, size in enumerate(source) if d not in dims]
    shape = [*kept[:position], *index, *kept[position:]]
    of_index = list(contiguous_strides(index))
    texts = [f"tensor<{list(s)} x {e}, strides {list(t)}>"
             for s, e, t in ((source, "f32", strides), (index, "i64", of_index))]  # fmt: skip
    words = {
        "SHAPE": list(source), "SOURCE": list(strides), "OF_INDEX": of_index, "INDEX": list(index),
        "DIMS": ", ".join(map(str, dims)), "POSITION": position,
        "INDICES": ", ".join(["%i"] * len(dims)),
        "TYPES": ", ".join([texts[0], *[texts[1]] * len(dims)]),
        "VALUE": f"tensor<{list(shape)} x f32>",
    }  # fmt: skip
    text = TAKEN
    for word, value in words.items():
        text = text.replace(word, str(value))
    function = run(irc.parse(text))
    taken = next(op for op in function.block.ops if isinstance(op, graph.Take))
    assert taken.value.type.strides == expected  # type: ignore[attr-defined]
