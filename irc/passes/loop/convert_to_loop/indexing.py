"""Elements that are read and written at positions that are data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from irc.dialects import graph, loop
from irc.dialects.graph.inferred import tensor_type
from irc.ir import attributes as A
from irc.ir.core import Value
from irc.ir.symbols import Dim, symbol
from irc.ir.types import (
    index,
)
from irc.passes.common.bodies import Body, axes_of, make_axes, make_compute
from irc.passes.loop.convert_to_loop.scalar_semantics import POINTWISE, cast
from irc.passes.loop.convert_to_loop.support import (
    ComputeBuilder,
    computes_in,
    converts,
)


def position_of(body: Body, value: Value) -> Value:
    """An integer scalar as an index."""
    return body.op("arith.index_cast", value, type=index)


def check_bounds(c: ComputeBuilder, op: Any, indices: Value, dim: int) -> None:
    """Raise at run time where an index into a dimension of the op's source is out of bounds."""
    size = op.source.type.shape[dim]

    def holds(body: Body, at: tuple[Dim, ...]) -> Value:
        value = position_of(body, body.read(indices, at))
        return body.op(
            "arith.andi",
            body.compare("sge", value, body.index(0)),
            body.compare("slt", value, body.index(size)),
        )

    text = f"index out of bounds for dimension {dim} with size {size}"
    c.check(holds, indices, text, op.error)


@converts(graph.Gather)
def _gather(c: ComputeBuilder, op: graph.Gather) -> None:
    source, indices = op.operands
    if op.check_bounds:
        check_bounds(c, op, indices, op.dim)

    def value_of(body: Body, at: tuple[Dim, ...]) -> Value:
        position = position_of(body, body.read(indices, at))
        place = [symbol(loop.placeholder(0)) if d == op.dim else a for d, a in enumerate(at)]
        return body.read(source, place, [position])

    c.emit_map(value_of)


def _taken(op: Any, at: tuple[Dim, ...], index_rank: int) -> tuple[tuple[Dim, ...], list[Dim]]:
    """The index tensors' position, and the source's indices with placeholders, for the element
    at `at` of what a take reads (or a put writes)."""
    start = op.position
    inner = at[start : start + index_rank]
    rest = iter([*at[:start], *at[start + index_rank :]])
    source_rank = len(at) - index_rank + len(op.dims)
    place: list[Dim] = []
    for dim in range(source_rank):
        if dim in op.dims:
            place.append(symbol(loop.placeholder(op.dims.index(dim))))
        else:
            place.append(next(rest))
    return inner, place


def _check_all(c: ComputeBuilder, op: Any, indices: Iterable[Value]) -> None:
    if op.check_bounds:
        for value, dim in zip(indices, op.dims, strict=True):
            check_bounds(c, op, value, dim)


@converts(graph.Take)
def _take(c: ComputeBuilder, op: graph.Take) -> None:
    _check_all(c, op, op.indices)

    def value_of(body: Body, at: tuple[Dim, ...]) -> Value:
        inner, place = _taken(op, at, op.indices[0].type.rank)
        positions = [position_of(body, body.read(v, inner)) for v in op.indices]
        return body.read(op.source, place, positions)

    c.emit_map(value_of)


def _emit_scatter(
    c: ComputeBuilder,
    space: Sequence[Dim],
    init: Value,
    combiner: str,
    content: Callable[[Body, tuple[Dim, ...]], tuple[Value, list[Value], list[Dim]]],
) -> None:
    body = c.body()
    value, extra, place = content(body, axes_of(len(space)))
    body.finish([value], extra)
    output = loop.ResultAttr("scatter", combiner, None, A.DimsAttr(place))
    scattered = make_compute(c.builder, make_axes(space), [output], [c.type], body, [init])
    c.results = [scattered.results[0]]


@converts(graph.Scatter)
def _scatter(c: ComputeBuilder, op: graph.Scatter) -> None:
    if op.check_bounds:
        check_bounds(c, op, op.indices, op.dim)
    written, kept = op.indices.type.shape, op.source.type.shape
    if written == tuple(1 if d == op.dim else size for d, size in enumerate(kept)):
        _scatter_one(c, op)
        return

    def content(body: Body, at: tuple[Dim, ...]) -> tuple[Value, list[Value], list[Dim]]:
        position = position_of(body, body.read(op.indices, at))
        place = [symbol(loop.placeholder(0)) if d == op.dim else a for d, a in enumerate(at)]
        return body.read(op.operands[2], at), [position], place

    _emit_scatter(c, op.indices.type.shape, op.source, op.combiner, content)


_COMBINED = {"sum": "add", "prod": "mul", "min": "minimum", "max": "maximum"}


def _scatter_one(c: ComputeBuilder, op: graph.Scatter) -> None:
    """At most one value for each place: a map that selects it, so that it fuses."""
    source, indices, value = op.operands

    def value_of(body: Body, at: tuple[Dim, ...]) -> Value:
        row = [0 if d == op.dim else a for d, a in enumerate(at)]
        position = position_of(body, body.read(indices, row))
        hit = body.compare("eq", position, body.index(at[op.dim]))
        old, new = body.read(source, at), body.read(value, row)
        if op.combiner != "set":
            element = c.type.element
            wide = computes_in(element)
            parts = [cast(body, part, element, wide) for part in (old, new)]
            combined = POINTWISE[_COMBINED[op.combiner]](body, wide, *parts)
            new = cast(body, combined, wide, element)
        return body.select(hit, new, old)

    c.emit_map(value_of)


@converts(graph.Put)
def _put(c: ComputeBuilder, op: graph.Put) -> None:
    _check_all(c, op, op.indices)
    written = op.operands[1]

    def content(body: Body, at: tuple[Dim, ...]) -> tuple[Value, list[Value], list[Dim]]:
        inner, place = _taken(op, at, op.indices[0].type.rank)
        positions = [position_of(body, body.read(v, inner)) for v in op.indices]
        return body.read(written, at), positions, place

    _emit_scatter(c, tensor_type(written).shape, op.source, op.combiner, content)
