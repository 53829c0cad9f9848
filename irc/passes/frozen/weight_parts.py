"""Constant weights of f32 cut into three parts of bf16, whose sum they are.

As kernels cut the other factor (`irc.passes.kernel.cpu.contraction.split`): the first part is what
the upper 16 bits hold, the second one is what is left of the number, rounded, the third the rest of
that. Infinities and NaN are their own first parts, with nothing left.
"""

from __future__ import annotations

from irc.dialects import graph
from irc.dialects.graph.inferred import tensor_type
from irc.ir.builder import Builder
from irc.ir.core import Value
from irc.ir.types import IntegerType, bf16, f32, i1

I32 = IntegerType(32)
UPPER = -(1 << 16)
"""The bits of an f32 that a bf16 has."""


def parts_of(builder: Builder, weight: Value) -> list[Value]:
    """The parts of a tensor of f32, of bf16, the largest first."""
    type_ = tensor_type(weight)
    integers, narrow = type_.with_element(I32), type_.with_element(bf16)

    def full(number: float, of: IntegerType | None = None) -> Value:
        every = type_.with_element(f32 if of is None else of)
        value = graph.scalar_attribute(number, every.element)
        one = builder.value(graph.Full, value=value, result_types=every.with_shape(()))
        spread: Value = builder.value(graph.Broadcast, one, dims=[], result_types=every)
        return spread

    bits = builder.value(graph.Bitcast, weight, result_types=integers)
    upper = builder.value(graph.And, bits, full(UPPER, I32))
    first = builder.value(graph.Bitcast, upper, result_types=type_)
    rest = builder.value(graph.Sub, weight, first)
    known = builder.value(graph.Eq, rest, rest, result_types=type_.with_element(i1))
    rest = builder.value(graph.Select, known, rest, full(0.0))
    parts = [builder.value(graph.Cast, first, result_types=narrow),
             builder.value(graph.Cast, rest, result_types=narrow)]  # fmt: skip
    wide = builder.value(graph.Cast, parts[1], result_types=type_)
    rest = builder.value(graph.Sub, rest, wide)
    return [*parts, builder.value(graph.Cast, rest, result_types=narrow)]


def sum_of(builder: Builder, parts: list[Value]) -> Value:
    """The numbers whose parts these are, from the largest on; exact."""
    total: Value | None = None
    for part in parts:
        wide = builder.value(
            graph.Cast, part, result_types=tensor_type(part).with_element(f32)
        )
        total = wide if total is None else builder.value(graph.Add, total, wide)
    assert total is not None
    return total


__all__ = ["parts_of", "sum_of"]
