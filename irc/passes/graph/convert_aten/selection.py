"""The largest elements of short rows, by the rank of each."""

from __future__ import annotations

from collections.abc import Sequence

from irc.dialects import graph
from irc.ir.core import Value
from irc.ir.types import f32, f64, i64
from irc.passes.graph.convert_aten.support import (
    Call,
    converts,
    decline,
    element_of,
    normalized,
    rank_of,
    shape_of,
)

#: Comparing all pairs of a row beats ATen's selection up to about this many elements.
LONGEST_ROW = 64


@converts("aten.topk.default")
def topk(c: Call) -> Sequence[Value]:
    """Rows of a few elements, as routers have: an element's rank is the number that go before it.

    NaN counts as the largest, as in ATen. Of equal elements the first goes first, which ATen
    leaves open; integers and floats of 16 bits, where this is common, stay ATen's. It leaves the
    order open, too, of rows that need not be sorted: they are here.
    """
    source, k, rank = c.arguments["self"], c.k, rank_of(c.arguments["self"])
    if not rank or element_of(source) not in (f32, f64):
        decline("only rows of wide floats are ranked")
    dim = normalized(c.dim, rank)
    size = shape_of(source)[dim]
    if not isinstance(size, int) or not isinstance(k, int) or not 0 < k <= size <= LONGEST_ROW:
        decline(f"a row of {size} elements is selected from by ATen")
    order = [d for d in range(rank) if d != dim] + [dim]
    rows = c.permute(source, order)
    places = _ranks(c, c.compute(rows), c.largest)
    shape = (*shape_of(rows)[:-1], size, k)
    like = c.result.with_shape(shape)
    kept = list(range(rank))
    hit = c.pointwise("eq", _spread(c, places, kept, shape), c.iota(rank, like))
    chosen = c.select(hit, c.iota(rank - 1, like), c.full(0, like, i64))
    index = c.reduce("sum", chosen, [rank - 1])
    value = c.emit(graph.Gather, rows, index, dim=rank - 1, check_bounds=False)
    back = [order.index(d) for d in range(rank)]
    return [c.permute(value, back), c.permute(index, back)]


def _spread(c: Call, value: Value, dims: Sequence[int], shape: Sequence[object]) -> Value:
    type_ = value.type.with_shape(tuple(shape))  # type: ignore[attr-defined]
    return c.emit(graph.Broadcast, value, dims=list(dims), result_types=type_)


def _ranks(c: Call, rows: Value, largest: bool) -> Value:
    """How many elements of its row go before each one, an i64 tensor of the same shape."""
    rank = rank_of(rows)
    shape = (*shape_of(rows), shape_of(rows)[-1])
    mine = _spread(c, rows, range(rank), shape)
    other = _spread(c, rows, [*range(rank - 1), rank], shape)
    ahead, behind = ("gt", "lt") if largest else ("lt", "gt")
    my_nan, other_nan = c.pointwise("isnan", mine), c.pointwise("isnan", other)
    first, second = (other_nan, my_nan) if largest else (my_nan, other_nan)
    nan_ahead = c.pointwise("and", first, c.pointwise("not", second))
    nan_behind = c.pointwise("and", second, c.pointwise("not", first))
    before = c.pointwise("or", c.pointwise(ahead, other, mine), nan_ahead)
    after = c.pointwise("or", c.pointwise(behind, other, mine), nan_behind)
    earlier = c.pointwise("lt", c.iota(rank, mine), c.iota(rank - 1, mine))
    tied = c.pointwise("and", c.pointwise("not", after), earlier)
    return c.reduce("sum", c.cast(c.pointwise("or", before, tied), i64), [rank])
