"""Every pointwise function on every element type: graph level equals loop level, bit for bit."""

from __future__ import annotations

import math

import pytest
import torch

import irc.interp
from irc.dialects import graph
from irc.dialects.graph.pointwise import DOMAINS
from irc.ir import types as T
from irc.ir.diagnostics import IRCError
from irc.ir.passes import PassManager
from irc.ir.text.parser import parse
from tests.passes.loop.programs import FUSION, LOWERING, clones, compare, program

ELEMENTS = [T.f32, T.f64, T.i8, T.i16, T.i32, T.i64, T.ui8, T.i1]
NARROW = [T.bf16, T.f16]
FLOATS = [
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, 3.5, -2.5, 1e-3, 7.0, -7.0, 0.1, 1e10, math.inf,
    -math.inf, math.nan,
]  # fmt: skip


def samples(element: T.Type) -> torch.Tensor:
    dtype = irc.interp.core.torch_dtype(element)
    if dtype.is_floating_point:
        return torch.tensor(FLOATS, dtype=dtype)
    if element is T.i1:
        return torch.tensor([True, False])
    info = torch.iinfo(dtype)
    values = [0, 1, 2, 3, 7, 8, 31, 63, 64, info.max, info.max - 1, info.min]
    if info.min < 0:
        values += [-1, -2, -7, info.min + 1]
    return torch.tensor([v for v in values if info.min <= v <= info.max], dtype=dtype)


def pairs(element: T.Type) -> tuple[torch.Tensor, torch.Tensor]:
    values = samples(element)
    return values.repeat_interleave(len(values)), values.repeat(len(values))


def lower_and_compare(build, arguments, elements) -> None:  # type: ignore[no-untyped-def]
    types = [T.TensorType(list(a.shape), e) for a, e in zip(arguments, elements, strict=True)]
    module = program(types, build)
    expected = irc.interp.run(module, *clones(arguments))
    PassManager.parse(LOWERING).run(module)
    compare(expected, irc.interp.run(module, *clones(arguments)), 0.0, "lowering")


CASES = [
    (name, element)
    for name, cls in graph.POINTWISE.items()
    for element in ELEMENTS
    if DOMAINS[cls.domain](element)
]


@pytest.mark.parametrize(("name", "element"), CASES, ids=lambda v: str(v))
def test_function_equals_the_graph_level(name: str, element: T.Type) -> None:
    cls = graph.POINTWISE[name]
    unary = len(cls.operand_fields) == 1
    arguments = [samples(element)] if unary else list(pairs(element))
    integer = isinstance(element, T.IntegerType)
    if name in ("floor_div", "trunc_div", "remainder", "fmod") and integer:
        info = torch.iinfo(arguments[0].dtype)
        defined = (arguments[1] != 0) & ~((arguments[0] == info.min) & (arguments[1] == -1))
        arguments = [a[defined] for a in arguments]
    if name in ("lgamma", "digamma"):
        arguments = [a[a != 0] for a in arguments]
    lower_and_compare(lambda g, *a: g.op(name, *a), arguments, [element] * len(arguments))


@pytest.mark.parametrize("source", ELEMENTS + NARROW, ids=str)
@pytest.mark.parametrize("target", ELEMENTS + NARROW, ids=str)
def test_cast_equals_the_graph_level(source: T.Type, target: T.Type) -> None:
    values = samples(source)
    if values.is_floating_point() and isinstance(target, T.IntegerType) and target is not T.i1:
        low = 0 if target.unsigned else -100
        values = values[values.isfinite() & (values >= low) & (values < 100)]
    build = lambda g, x: g.op("cast", x, type=x.type.with_element(target))  # noqa: E731
    lower_and_compare(build, [values], [source])


@pytest.mark.parametrize("name", ["floor_div", "trunc_div", "remainder", "fmod"])
def test_integer_division_by_zero_raises(name: str) -> None:
    module = program([T.TensorType((3,), T.i64)] * 2, lambda g, a, b: g.op(name, a, b))
    PassManager.parse(LOWERING).run(module)
    numerator = torch.tensor([5, -7, 8])
    irc.interp.run(module, numerator, torch.tensor([1, 2, 3]))
    with pytest.raises((RuntimeError, IRCError), match="ZeroDivisionError"):
        irc.interp.run(module, numerator, torch.tensor([1, 0, 3]))


def test_a_constant_divisor_needs_no_check() -> None:
    module = program([T.TensorType((3,), T.i64)], lambda g, a: g.op("remainder", a, g.full(3, a)))
    PassManager.parse(LOWERING).run(module)
    assert not any(op.name == "sym.assert_value" for op in module.walk())


@pytest.mark.parametrize("combiner", ["set", "sum", "prod", "min", "max"])
@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("element", [T.f32, T.i64, T.bf16], ids=str)
def test_scatter_equals_the_graph_level(combiner: str, columns: int, element: T.Type) -> None:
    dtype = irc.interp.core.torch_dtype(element)
    source = torch.arange(20).reshape(4, 5).to(dtype)
    indices = torch.tensor([[4, 0, 2], [1, 3, 0], [2, 2, 1], [0, 1, 4]])[:, :columns].contiguous()
    if combiner == "set":
        indices[2] = indices[1]  # no place is written twice: which value stays is open
    values = (torch.arange(4 * columns).reshape(4, columns) - 5).to(dtype)
    lower_and_compare(
        lambda g, x, i, v: g.op("scatter", x, i, v, dim=1, combiner=combiner, check_bounds=True),
        [source, indices, values],
        [element, T.i64, element],
    )


@pytest.mark.parametrize("index", [5, -1])
def test_an_index_out_of_bounds_raises(index: int) -> None:
    types = [T.TensorType((5, 2), T.f32), T.TensorType((3,), T.i64)]
    module = program(
        types,
        lambda g, x, i: g.op("take", x, [i], dims=[0], position=0, check_bounds=True),
    )
    PassManager.parse(f"{LOWERING},{FUSION}").run(module)
    irc.interp.run(module, torch.randn(5, 2), torch.tensor([0, 4, 1]))
    with pytest.raises((RuntimeError, IndexError, IRCError), match="out of bounds"):
        irc.interp.run(module, torch.randn(5, 2), torch.tensor([0, index, 1]))


def test_positions_that_are_known_need_no_check() -> None:
    def build(g, x):  # type: ignore[no-untyped-def]
        index = g.op("iota", type=T.TensorType((3,), T.i64), dim=0)
        index = g.op("add", index, g.full(2, index))
        return g.op("take", x, [index], dims=[0], position=0, check_bounds=True)

    module = program([T.TensorType((5, 2), T.f32)], build)
    PassManager.parse(f"{LOWERING},{FUSION}").run(module)
    names = [op.name for op in module.walk()]
    assert "sym.assert_value" not in names and names.count("loop.compute") == 1
    x = torch.randn(5, 2)
    assert torch.equal(irc.interp.run(module, x)[0], x[2:])


def test_attributes_that_an_operation_does_not_declare_stay_on_the_graph_level():
    text = """
func.func @main(%x: tensor<[4] x i32, strides [1]>) -> tensor<[4] x i32, strides [1]> {
  %y = graph.maximum %x, %x {note = "mine", type = "any"} : (tensor<[4] x i32, strides [1]>, tensor<[4] x i32, strides [1]>) -> tensor<[4] x i32, strides [1]>
  func.return %y : tensor<[4] x i32, strides [1]>
}
"""  # noqa: E501
    module = parse(text)
    PassManager.parse("convert-to-loop").run(module)
    assert "arith.maxsi" in str(module) and "mine" not in str(module)
