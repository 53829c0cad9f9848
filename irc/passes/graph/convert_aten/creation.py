"""Operators that make tensors from numbers."""

from __future__ import annotations

from typing import Any

from irc.dialects import graph, sym
from irc.ir.core import Value
from irc.ir.types import ComplexType, IntegerType, f64, i64
from irc.passes.graph.convert_aten.support import (
    Call,
    compute_element,
    converts,
    decline,
    is_float,
)


def _filled(c: Call, number: Any) -> Value:
    if isinstance(c.result.element, ComplexType):
        decline("complex constants are ATen's")
    return c.full(number, c.result)


@converts("aten.full.default", "aten.full_like.default", "aten.new_full.default",
          "aten.fill.Scalar", "aten.fill.Tensor")  # fmt: skip
def full(c: Call) -> Value:
    value = c.one_of("fill_value", "value")
    if isinstance(value, Value) and hasattr(value.type, "element"):
        return c.operand(value, c.result.shape, c.result.element)
    return _filled(c, value)


@converts("aten.zeros.default", "aten.zeros_like.default", "aten.new_zeros.default",
          "aten.zero.default")  # fmt: skip
def zeros(c: Call) -> Value:
    return _filled(c, 0)


@converts("aten.ones.default", "aten.ones_like.default", "aten.new_ones.default")
def ones(c: Call) -> Value:
    return _filled(c, 1)


@converts("aten.empty.memory_format", "aten.empty_like.default", "aten.new_empty.default",
          "aten.empty_strided.default", "aten.new_empty_strided.default",
          "aten.empty_permuted.default", "aten.extern.prims.empty_strided.default")  # fmt: skip
def empty(c: Call) -> Value:
    if isinstance(c.result.element, ComplexType):
        decline("complex elements are ATen's")
    return c.emit(graph.Undefined, result_types=c.result)


@converts("aten.arange.default", "aten.arange.start", "aten.arange.start_step")
def arange(c: Call) -> Value:
    start, step = c.arguments.get("start", 0), c.arguments.get("step", 1)
    return _progression(c, start, step)


@converts("aten.extern.prims.iota.default")
def iota(c: Call) -> Value:
    return _progression(c, c.start, c.step)


def _progression(c: Call, start: Any, step: Any) -> Value:
    """start + k*step: exactly for integers, in f64 for floats as ATen's CPU does for double."""
    element = c.result.element
    if isinstance(element, ComplexType):
        decline("complex elements are ATen's")
    if isinstance(element, IntegerType):
        if any(isinstance(n, Value) for n in (start, step)):
            decline("the steps of integers are data")
        # ATen rounds both towards zero before it counts.
        start, step = (int(n) if isinstance(n, float) else n for n in (start, step))
        return _affine(c, c.iota(0, c.result, i64), start, step, element)
    # ATen accumulates floats in f64 on the CPU.
    positions = c.cast(c.iota(0, c.result, i64), f64)
    return _affine(c, positions, start, step, element)


def _affine(c: Call, positions: Value, start: Any, step: Any, element: Any) -> Value:
    if not (isinstance(step, int | float) and step == 1):
        positions = c.pointwise("mul", positions, c.full(step, positions))
    if not (isinstance(start, int | float) and start == 0):
        positions = c.pointwise("add", positions, c.full(start, positions))
    return c.cast(positions, element)


@converts("aten.linspace.default")
def linspace(c: Call) -> Value:
    """From both ends inwards, as ATen does, so that the last element is `end` exactly."""
    if not is_float(c.result.element):
        decline("integer results are ATen's")
    if not isinstance(c.start, int | float) or not isinstance(c.end, int | float):
        decline("the ends are not constants")
    steps = c.steps
    if not isinstance(steps, int):
        decline("the count is symbolic")
    element = compute_element(c.result.element)
    if steps <= 1:
        return _filled(c, c.start)
    positions = c.iota(0, c.result, i64)
    step = c.full((c.end - c.start) / (steps - 1), c.result, element)
    forward = c.pointwise("mul", c.cast(positions, element), step)
    backward = c.pointwise("sub", c.full(steps - 1, positions), positions)
    backward = c.pointwise("mul", c.cast(backward, element), step)
    first = c.pointwise("add", c.full(c.start, c.result, element), forward)
    last = c.pointwise("sub", c.full(c.end, c.result, element), backward)
    near = c.pointwise("lt", positions, c.full(steps // 2, positions))
    return c.finish(c.select(near, first, last))


@converts("aten.eye.default", "aten.eye.m")
def eye(c: Call) -> Value:
    if isinstance(c.result.element, ComplexType):
        decline("complex elements are ATen's")
    rows, columns = c.iota(0, c.result), c.iota(1, c.result)
    return c.cast(c.pointwise("eq", rows, columns), c.result.element)


@converts("aten.sym_size.int")
def size(c: Call) -> Value:
    dim = c.dim if c.dim >= 0 else c.dim + len(c.self_.type.shape)
    return c.emit(sym.ValueOp, dim=c.self_.type.shape[dim])


@converts("aten.one_hot.default")
def one_hot(c: Call) -> Value:
    if not isinstance(c.num_classes, int) or c.num_classes < 0:
        decline("the number of classes is data")
    classes = c.iota(c.result.rank - 1, c.result)
    rank = c.result.rank
    type_ = c.self_.type
    spread = c.emit_typed(
        graph.Broadcast, c.self_, type_.with_shape(c.result.shape), dims=list(range(rank - 1))
    )
    return c.cast(c.pointwise("eq", c.cast(spread, i64), classes), c.result.element)
