"""A tensor with a part of it replaced: slices, rows, diagonals, triangles."""

from __future__ import annotations

from collections.abc import Sequence

from irc.dialects import graph, sym
from irc.ir.core import Value
from irc.ir.symbols import Dim
from irc.ir.types import i64
from irc.passes.graph.convert_aten.joins import concat
from irc.passes.graph.convert_aten.positions import element_position, slice_start
from irc.passes.graph.convert_aten.support import (
    Call,
    converts,
    decline,
    moved_source,
    normalized,
    rank_of,
    shape_of,
)


@converts("aten.slice_scatter.default", rows=True)
@converts("aten.select_scatter.default", rows=False)
def slice_scatter(c: Call, *, rows: bool) -> Value:
    """The source with a slice replaced: inside the slice its element, else the old one."""
    source, part = moved_source(c), c.src
    rank = rank_of(source)
    dim = normalized(c.dim, rank)
    size = shape_of(source)[dim]
    part = c.cast(part, c.result.element)
    if not rows:
        index = element_position(c, c.index, size)
        shape = [1 if d == dim else s for d, s in enumerate(shape_of(source))]
        _must_have(c, part, [s for d, s in enumerate(shape) if d != dim])
        start, step, part = index, 1, c.reshape(part, shape)
    else:
        step = c.step
        width = _slice_size(c, size, shape_of(part)[dim])
        _must_have(c, part, [width if d == dim else s for d, s in enumerate(shape_of(source))])
        start = slice_start(c, c.start, c.end, size, shape_of(part)[dim], step)
    if shape_of(part)[dim] == size and start == 0:
        return c.broadcast(part, c.result.shape)
    if step != 1:
        return _strided_scatter(c, source, part, dim, start, step)
    width = shape_of(part)[dim]
    parts = [
        c.slice(source, dim, 0, start),
        part,
        c.slice(source, dim, start + width, size - start - width),
    ]
    parts = [p for p in parts if shape_of(p)[dim] != 0]
    return concat(c, parts, dim)


def _must_have(c: Call, part: Value, sizes: Sequence[Dim]) -> None:
    """Let the program raise where what is written has other sizes than the place for it, which
    torch does not see while tracing."""
    for have, want in zip(shape_of(part), sizes, strict=True):
        if have == want:
            continue
        if isinstance(have, int) and isinstance(want, int):
            decline("what is written has other sizes than the place for it, and ATen raises")
        text = f"expected src to have a size equal to the slice of self: {have} and {want}"
        c.builder.create(sym.AssertOp, relation="eq", lhs=have, rhs=want, message=text)


def _slice_size(c: Call, size: Dim, otherwise: Dim) -> Dim:
    """How many elements a slice has, where all numbers are known."""
    bounds = (c.start, c.end, c.step)
    if isinstance(size, int) and all(b is None or isinstance(b, int) for b in bounds):
        return len(range(*slice(*bounds).indices(size)))
    return otherwise


def _strided_scatter(
    c: Call, source: Value, part: Value, dim: int, start: Dim, step: int
) -> Value:
    width = shape_of(part)[dim]
    type_ = c.result.with_shape((width,)).with_element(i64)
    positions = c.iota(0, type_)
    positions = c.pointwise("mul", positions, c.full(step, positions))
    positions = c.pointwise("add", positions, c.full(start, positions))
    return c.emit(
        graph.Put, source, part, [positions], dims=[dim], position=dim, combiner="set"
    )


def diagonal_size(rows: Dim, columns: Dim, offset: int) -> int | None:
    """The length of a diagonal; None where sizes are symbolic."""
    if isinstance(rows, int) and isinstance(columns, int):
        return max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    return None


@converts("aten.diagonal_scatter.default")
def diagonal_scatter(c: Call) -> Value:
    source = moved_source(c)
    rank = rank_of(source)
    first, second = (normalized(d, rank) for d in (c.dim1, c.dim2))
    embed_kind = source.type
    part = c.cast(c.src, c.result.element)
    place = diagonal_size(shape_of(source)[first], shape_of(source)[second], c.offset)
    rest = [s for d, s in enumerate(shape_of(source)) if d not in (first, second)]
    _must_have(c, part, [*rest, place if place is not None else shape_of(part)[-1]])
    embedded = c.emit_typed(
        graph.DiagonalEmbed, part, embed_kind, offset=c.offset, dim1=first, dim2=second
    )
    rows, columns = c.iota(first, source), c.iota(second, source)
    shifted = c.pointwise("add", rows, c.full(c.offset, rows))
    return c.select(c.pointwise("eq", shifted, columns), embedded, source)


@converts("aten.tril.default", function="le")
@converts("aten.triu.default", function="ge")
def triangle(c: Call, *, function: str) -> Value:
    source = moved_source(c)
    rank = rank_of(source)
    rows, columns = c.iota(rank - 2, source), c.iota(rank - 1, source)
    bound = c.pointwise("add", rows, c.full(c.diagonal, rows))
    return c.select(c.pointwise(function, columns, bound), source, c.full(0, source))
