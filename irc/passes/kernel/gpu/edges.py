"""Masks whose bound is no multiple of what a thread moves at once.

Triton gives a thread neighbouring lanes by what pointers promise, and then moves them one by one
where a mask may split them: rows of 30,523 elements in aligned memory are read by 2 bytes at steps
of 16. So an access under such a mask is made as two: the lanes below the last whole group, whose
mask splits none, and the few above. In a loop that reads ahead the few are read one by one, as
scalars where the rest of a tile is: a read of a whole tile under their mask would have all lanes
change threads through shared memory, and what waits for another read is not read ahead.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import attrs

from irc.dialects import arith, kernel
from irc.ir import attributes as A
from irc.ir.core import Value
from irc.ir.symbols import Dim, coefficient, free_symbols, known_divisor, symbol

if TYPE_CHECKING:
    from irc.passes.kernel.gpu.tiles import Tile, TileBuilder


@attrs.frozen
class Edge:
    """The masks of an access made as two: of the lanes in whole groups, and of those above.

    lanes: the positions along `name` that they are about, of which `few` are above. rest: what
    else holds where something is accessed.
    """

    below: Tile
    above: Tile
    name: str
    lanes: Tile
    few: range
    rest: tuple[Tile, ...]


def edge_of(b: TileBuilder, offset: Dim, mask: Tile | None, bytes_each: int) -> Edge | None:
    """How an access of elements of `bytes_each` bytes at `offset` under `mask` is made as two;
    None where one is as good: no bound in the mask splits a group that the memory promises."""
    if mask is None or b.edge_bytes < bytes_each:
        return None
    group = b.edge_bytes // bytes_each
    for name in free_symbols(offset):
        tile = b.symbols.get(name)
        if tile is None or not tile.dims or coefficient(offset, name) != 1:
            continue
        if known_divisor(offset - symbol(name)) % group:
            continue
        conditions = list(_conditions(mask))
        bounds = [_bound_on(c.value, tile.value) for c in conditions]
        bound = min((n for n in bounds if n is not None), default=0)
        last = bound // group * group
        if last in (0, bound):
            continue
        whole = b.index(last)
        # What holds below the whole groups of the least bound needs no bound of these lanes.
        below = b.compare("slt", tile, whole)
        rest = tuple(c for c, own in zip(conditions, bounds, strict=True) if own is None)
        for condition in rest:
            below = b.op("arith.andi", below, condition)
        above = b.op("arith.andi", mask, b.compare("sge", tile, whole))
        return Edge(below, above, name, tile, range(last, bound), rest)
    return None


def _bound_on(condition: Value, lanes: Value) -> int | None:
    """n, if a condition is `lanes < n` for a constant n."""
    maker: Any = condition.defining_op
    if not isinstance(maker, arith.CmpIOp) or maker.predicate != "slt":
        return None
    left, right = maker.operands
    if isinstance(right.defining_op, kernel.SplatOp):
        right = right.defining_op.scalar
    constant: Any = right.defining_op
    if left is not lanes or not isinstance(constant, arith.ConstantOp):
        return None
    content = constant.attributes["value"]
    return content.value if isinstance(content, A.IntegerAttr) else None


def _conditions(mask: Tile) -> Iterator[Tile]:
    """The conditions that a mask is the conjunction of, as they were before being repeated."""
    maker: Any = mask.value.defining_op
    if isinstance(maker, kernel.SplatOp):
        yield from _conditions(attrs.evolve(mask, value=maker.scalar, dims=()))
    elif isinstance(maker, kernel.ExpandOp):
        dims = tuple(mask.dims[k] for k in maker.dims)
        yield from _conditions(attrs.evolve(mask, value=maker.source, dims=dims))
    elif isinstance(maker, arith.AndIOp):
        for operand in maker.operands:
            yield from _conditions(attrs.evolve(mask, value=operand))
    else:
        yield mask
