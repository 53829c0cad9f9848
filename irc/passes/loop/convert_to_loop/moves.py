"""The same elements elsewhere: copies, views, joins, paddings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from irc.dialects import aten, graph, layout, loop
from irc.dialects.graph.inferred import tensor_type
from irc.dialects.graph.views import INDICES, source_indices, view_strides
from irc.ir import attributes as A
from irc.ir.core import Operation, Value
from irc.ir.strides import ordered_like
from irc.ir.symbols import Dim
from irc.passes.common.bodies import Body, axis_name
from irc.passes.loop.convert_to_loop.support import (
    ComputeBuilder,
    constant_scalar,
    converts,
    is_complex,
    op_scalar,
)


@converts(graph.Copy, layout.CopyOp)
def _copy(c: ComputeBuilder, op: Operation) -> None:
    if is_complex(op.results[0]):
        _call_clone(c, op)
    else:
        c.emit_map(lambda body, at: body.read(op.operands[0], at))


def _call_clone(c: ComputeBuilder, op: Operation) -> None:
    """A copy of complex elements is ATen's: kernels have no complex numbers."""
    strides = c.type.strides
    assert strides is not None
    entries = {
        "callee": A.StringAttr("aten.clone.default"),
        "arguments": A.DictAttr({"self": aten.OperandAttr(0)}),
        "eager_strides": A.ArrayAttr([A.DimsAttr(strides)]),
    }
    operands = [c.handle(op.operands[0])]
    c.results = [*c.builder.insert(graph.CallAten(operands, [c.type], entries)).results]


@converts(*INDICES)
def _view(c: ComputeBuilder, op: Operation) -> None:
    """The elements of the source, read at other places; one that is a view in memory has a handle,
    too."""
    source, type_ = op.operands[0], c.type
    assert type_.strides is not None
    extents = {axis_name(d): size for d, size in enumerate(type_.shape)}
    # A view may repeat elements in memory; the array that stands for it has none twice.
    is_view = "view" in op.attributes
    dense = type_.with_strides(ordered_like(type_.shape, type_.strides)) if is_view else type_
    view = _view_in_memory(c, op) if is_view else None
    read = c.map(lambda body, at: body.read(source, source_indices(op, at, extents)), dense)
    if view is not None:
        c.handles[read] = view
        view.name_hint = op.results[0].name_hint
    c.results = [read]


def _view_in_memory(c: ComputeBuilder, op: Operation) -> Value:
    handle = c.handle(op.operands[0])
    # The compute that reads a view may have other strides than the view itself.
    place = view_strides(op, tensor_type(handle))
    assert place is not None
    view: Value = c.builder.value(layout.ViewOp, handle, offset=place[1], result_types=c.type)
    return view


def in_range(body: Body, position: Dim, low: Dim, high: Dim) -> Value | None:
    """The mask low <= position < high; a bound that is None isn't checked."""
    mask: Value | None = None
    value = body.index(position)
    if low is not None:
        mask = body.compare("sge", value, body.index(low))
    if high is not None:
        mask = body.both(mask, body.compare("slt", value, body.index(high)))
    return mask


@converts(graph.Concat)
def _concat(c: ComputeBuilder, op: graph.Concat) -> None:
    dim = op.dim
    sources = [v for v in op.operands if v.type.shape[dim] != 0]  # type: ignore[attr-defined]
    if len(sources) > 1 and c.joins(op):
        c.results = [_joined_in_memory(c, sources, dim)]
        return
    starts: list[Dim] = []
    running: Dim = 0
    for source in sources:
        starts.append(running)
        running = running + source.type.shape[dim]  # type: ignore[attr-defined]

    def value_of(body: Body, at: tuple[Dim, ...]) -> Value:
        value: Value | None = None
        for number in range(len(sources) - 1, -1, -1):
            shifted = list(at)
            shifted[dim] = at[dim] - starts[number]
            low: Any = starts[number] if number else None
            high: Any = starts[number + 1] if number + 1 < len(sources) else None
            mask = in_range(body, at[dim], low, high)
            value = body.read(sources[number], shifted, (), mask, None if mask is None else value)
        if value is None:
            return body.zero(loop.signless(c.type.element))
        return value

    c.emit_map(value_of)


def _joined_in_memory(c: ComputeBuilder, sources: Sequence[Value], dim: int) -> Value:
    """The pieces, each computed with the strides of the whole, so that it can be made in place."""
    strides = c.type.strides
    pieces = []
    for source in sources:
        type_ = source.type.with_strides(strides)  # type: ignore[attr-defined]
        pieces.append(c.map(partial(_element, source), type_))
    joined: Value = c.builder.value(layout.JoinOp, pieces, dim=dim, result_types=c.type)
    return joined


def _element(source: Value, body: Body, at: tuple[Dim, ...]) -> Value:
    return body.read(source, at)


@converts(graph.Pad)
def _pad(c: ComputeBuilder, op: graph.Pad) -> None:
    source = op.operands[0]
    sizes = source.type.shape  # type: ignore[attr-defined]
    fill = constant_scalar(op.attributes["value"], c.type.element)

    def value_of(body: Body, at: tuple[Dim, ...]) -> Value:
        mask: Value | None = None
        shifted: list[Dim] = []
        for dim, size in enumerate(sizes):
            low, high = op.low[dim], op.high[dim]
            shifted.append(at[dim] - low)
            below: Any = None if isinstance(low, int) and low <= 0 else 0
            above: Any = None if isinstance(high, int) and high <= 0 else size
            if below is not None or above is not None:
                mask = body.both(mask, in_range(body, at[dim] - low, below, above))
        other = None if mask is None else body.constant(fill, loop.signless(c.type.element))
        return body.read(source, shifted, (), mask, other)

    c.emit_map(value_of)


@converts(graph.DiagonalEmbed)
def _diagonal_embed(c: ComputeBuilder, op: graph.DiagonalEmbed) -> None:
    def value_of(body: Body, at: tuple[Dim, ...]) -> Value:
        row = at[op.dim1] - max(-op.offset, 0)
        column = at[op.dim2] - max(op.offset, 0)
        indices = [a for d, a in enumerate(at) if d not in (op.dim1, op.dim2)]
        on_diagonal = body.compare("eq", body.index(row), body.index(column))
        mask = body.both(on_diagonal, in_range(body, row, 0, op.source.type.shape[-1]))
        return body.read(op.source, [*indices, row], (), mask, body.zero(op_scalar(c)))

    c.emit_map(value_of)
