"""Rows in order, and their largest elements: on a GPU sorted in a tile, else by ranks.

A row is sorted as integers that hold an element's key, which orders as the elements do, above its
position. So equal elements keep their order, NaN is the largest as in ATen, and the values are read
again where the positions say, bit by bit as they were.
"""

from __future__ import annotations

from collections.abc import Sequence

from irc.dialects import graph
from irc.dialects.graph.inferred import tensor_type
from irc.ir.attributes import Type
from irc.ir.core import Value
from irc.ir.types import FloatType, IntegerType, f32, f64, i1, i16, i32, i64
from irc.passes.graph.convert_aten.support import (
    Call,
    converts,
    decline,
    element_of,
    normalized,
    rank_of,
    shape_of,
)


@converts("aten.sort.default")
@converts("aten.sort.stable")
def sort(c: Call) -> Sequence[Value]:
    """Values and positions of short rows on a GPU. Equal elements keep their order."""
    rows, order, dim = _rows_to_sort(c)
    index = _sorted_places(c, rows, bool(c.descending))
    return _picked(c, rows, index, order, dim)


def _rows_to_sort(c: Call) -> tuple[Value, list[int], int]:
    """The source with the sorted dimension last, the order that takes it there, and that
    dimension. Declines what no tile sorts."""
    source = c.arguments["self"]
    rank, element = rank_of(source), element_of(source)
    if c.result.device == "cpu":
        decline("a CPU sorts with ATen")
    if not rank or _key_bits(element) is None:
        decline("only rows of elements of at most 32 bits are sorted in a tile")
    dim = normalized(c.dim, rank)
    size = shape_of(source)[dim]
    if not isinstance(size, int) or not 1 < size <= c.figures.sorted_row:
        decline(f"a row of {size} elements is sorted by ATen")
    order = [d for d in range(rank) if d != dim] + [dim]
    return c.permute(source, order), order, dim


def _key_bits(element: Type) -> int | None:
    """The width of signed integers that order as the elements do; None where there are none."""
    if isinstance(element, FloatType):
        return element.width if element.width in (16, 32) else None
    if not isinstance(element, IntegerType):
        return None
    width = element.width + (element.unsigned or element is i1)
    return 16 if width <= 16 else 32 if width <= 32 else None


def _sorted_places(c: Call, rows: Value, descending: bool) -> Value:
    """The position in its row of the element that comes first, second..., as i64."""
    bits = _key_bits(element_of(rows))
    assert bits is not None
    wide = i64 if bits == 32 else i32
    key = c.cast(_key(c, rows), wide)
    if descending:
        key = c.pointwise("sub", c.full(-1, key), key)
    last = rank_of(rows) - 1
    above = c.pointwise("mul", key, c.full(1 << bits, key))
    packed = c.pointwise("add", above, c.iota(last, key, wide))
    ordered = c.emit(graph.Scan, packed, combiner="sort", dim=last)
    return c.cast(c.pointwise("and", ordered, c.full((1 << bits) - 1, ordered)), i64)


def _key(c: Call, rows: Value) -> Value:
    """Integers that order as the elements: floats by their bits, of which the negative ones are
    turned; both zeros are one, and NaN is above all."""
    element = element_of(rows)
    if not isinstance(element, FloatType):
        return rows
    whole = i16 if element.width == 16 else i32
    bits = c.emit_typed(graph.Bitcast, rows, tensor_type(rows).with_element(whole))
    bits = c.cast(bits, i32)
    top = (1 << (element.width - 1)) - 1
    turned = c.pointwise("xor", bits, c.full(top, bits))
    ordered = c.select(c.pointwise("lt", bits, c.full(0, bits)), turned, bits)
    # The turned bits of -0 are -1, those of 0 are 0.
    number = c.compute(rows)
    zero = c.pointwise("eq", number, c.full(0.0, number))
    ordered = c.select(zero, c.full(0, bits), ordered)
    return c.select(c.pointwise("isnan", number), c.full(top, bits), ordered)


def _picked(
    c: Call, rows: Value, index: Value, order: Sequence[int], dim: int
) -> Sequence[Value]:
    """The elements of rows at positions, and the positions, with the dimensions as they were."""
    value = c.emit(graph.Gather, rows, index, dim=len(order) - 1, check_bounds=False)
    back = [order.index(d) for d in range(len(order))]
    return [c.permute(value, back), c.permute(index, back)]


@converts("aten.topk.default")
def topk(c: Call) -> Sequence[Value]:
    """Rows of a few elements, as routers have: an element's rank is the number that go before it.

    NaN counts as the largest, as in ATen. Of equal elements the first goes first, which ATen
    leaves open; integers and floats of 16 bits, where this is common, stay ATen's. It leaves the
    order open, too, of rows that need not be sorted: they are here.
    """
    source, k, rank = c.arguments["self"], c.k, rank_of(c.arguments["self"])
    if rank and c.result.device != "cpu" and not _is_ranked(c, source):
        rows, order, dim = _rows_to_sort(c)
        size = shape_of(rows)[-1]
        if not isinstance(k, int) or not isinstance(size, int) or not 0 <= k <= size:
            decline(f"{k} elements of a row are ATen's to select")
        places = c.slice(_sorted_places(c, rows, bool(c.largest)), rank - 1, 0, k)
        return _picked(c, rows, places, order, dim)
    if not rank or element_of(source) not in (f32, f64):
        decline("only rows of wide floats are ranked")
    dim = normalized(c.dim, rank)
    size = shape_of(source)[dim]
    most = c.figures.ranked_row
    if not isinstance(size, int) or not isinstance(k, int) or not 0 < k <= size <= most:
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
    return _picked(c, rows, index, order, dim)


def _is_ranked(c: Call, source: Value) -> bool:
    """Whether rows are short enough to compare all pairs, on a GPU too."""
    size = shape_of(source)[normalized(c.dim, rank_of(source))]
    short = isinstance(size, int) and size <= c.figures.ranked_row
    return short and element_of(source) in (f32, f64)


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
