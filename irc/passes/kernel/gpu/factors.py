"""Tiles of factors, and their products."""

from __future__ import annotations

from collections.abc import Sequence

from irc.analysis.contraction import Side
from irc.dialects import kernel
from irc.dialects.kernel.dots import Dot
from irc.ir import attributes as A
from irc.ir.types import f32
from irc.passes.kernel.gpu.combine import convert
from irc.passes.kernel.gpu.evaluate import Evaluator, Point
from irc.passes.kernel.gpu.plan import GpuMember
from irc.passes.kernel.gpu.tiles import Tile, TileBuilder, TileDim


def factor_tile(
    evaluator: Evaluator, member: GpuMember, side: Side, dot: Dot, point: Point,
    dims: tuple[TileDim, ...], along: TileDim,
) -> Tile:  # fmt: skip
    """A factor's tile at a point, over `dims`: zeros beyond the depth, which `along` goes over."""
    b = evaluator.b
    value = side.narrow
    if value.type is not dot.element:
        value = side.value
    tile = convert(b, evaluator.value(member, value, point), dot.element)
    # What a mask leaves out of one read is zero already.
    if along.mask is not None and not (side.reads_zero and along in tile.dims):
        tile = b.select(along.mask, tile, b.constant(0, dot.element))
    return b.expand(tile, dims)


def multiplied(
    b: TileBuilder, dot: Dot, factors: Sequence[Tile], total: Tile, precision: str
) -> Tile:
    """The product of two tiles, added to sums."""
    attributes: dict[str, A.Attribute] = {}
    if dot.element is f32:
        attributes["precision"] = A.StringAttr(precision)
    results = [(total.dims, dot.accumulator)]
    return b.make(kernel.DotOp, [*factors, total], results, attributes)[0]


__all__ = ["factor_tile", "multiplied"]
