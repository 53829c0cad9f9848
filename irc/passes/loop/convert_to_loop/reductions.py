"""Reductions, statistics and scans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irc.dialects import graph, loop
from irc.ir.core import Value
from irc.ir.symbols import Dim
from irc.ir.types import (
    FloatType,
    i1,
    i64,
)
from irc.passes.common.bodies import Body, axes_of, make_axes
from irc.passes.loop.convert_to_loop.scalar_semantics import cast
from irc.passes.loop.convert_to_loop.support import (
    ComputeBuilder,
    computes_in,
    converts,
    element_of,
)


def _widened(c: ComputeBuilder, source: Value) -> Callable[[Body, tuple[Dim, ...]], Value]:
    element = element_of(source)
    wide = computes_in(element)
    return lambda body, at: cast(body, body.read(source, at), element, wide)


@converts(graph.Reduce)
def _reduce(c: ComputeBuilder, op: graph.Reduce) -> None:
    source: Any = op.operands[0]
    element = source.type.element
    if not op.dims:
        starts = op.combiner == "sum" and isinstance(element, FloatType)

        def alone(body: Body, at: tuple[Dim, ...]) -> Value:
            if not starts:
                return body.read(source, at)
            wide = computes_in(element)  # a sum starts at 0.0: of -0.0 alone it is 0.0
            value = body.op("arith.addf", _widened(c, source)(body, at), body.zero(wide))
            return cast(body, value, wide, element)

        c.emit_map(alone)
        return
    combiner = op.combiner
    if element is i1:
        combiner = {"max": "any", "min": "all", "prod": "all", "sum": "any"}.get(combiner, combiner)
    c.emit_reduce(_widened(c, source), source.type.shape, op.dims, combiner, computes_in(element))


@converts(graph.ArgReduce)
def _arg_reduce(c: ComputeBuilder, op: graph.ArgReduce) -> None:
    source: Any = op.operands[0]
    if not op.dims:
        c.emit_map(lambda body, at: body.zero(i64))
        return
    wide = computes_in(source.type.element)
    c.emit_reduce(_widened(c, source), source.type.shape, op.dims, op.combiner, wide)


@converts(graph.Moments)
def _moments(c: ComputeBuilder, op: graph.Moments) -> None:
    source: Any = op.operands[0]
    if op.dims:
        c.emit_reduce(
            _widened(c, source), source.type.shape, op.dims, "moments", source.type.element
        )
        return

    def deviation(body: Body, at: tuple[Dim, ...]) -> Value:
        # Of one number from itself: 0, but NaN for an infinite one and for NaN.
        number = body.read(source, at)
        return body.op("arith.subf", number, number)

    c.results = [c.map(lambda body, at: body.read(source, at), c.type), c.map(deviation, c.type)]


@converts(graph.Scan)
def _scan(c: ComputeBuilder, op: graph.Scan) -> None:
    source: Any = op.operands[0]
    wide, body = op.accumulator or computes_in(element_of(source)), c.body()
    value = cast(body, body.read(source, axes_of(source.type.rank)), element_of(source), wide)
    output = loop.ResultAttr("scan", op.combiner, wide, None)
    axes = make_axes(source.type.shape, [op.dim], "scan")
    c.results = list(c.compute(body, [value], [output], [c.type], axes))
