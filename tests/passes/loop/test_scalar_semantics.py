"""Every pointwise function on every element type: graph level equals loop level, bit for bit."""

from __future__ import annotations

import math

import pytest
import torch

import irc.interp
from irc.dialects import graph
from irc.dialects.graph_pointwise import DOMAINS
from irc.ir import types as T
from irc.ir.diagnostics import IRCError
from irc.ir.passes import PassManager
from tests.passes.loop.programs import LOWERING, clones, compare, program

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
