"""Powers of e below a row's maximum, of elements of 16 bits, by one operation and a power of two.

    exp(x - m) -> exp2(x * log2(e) - m * log2(e))

The product with the maximum is a row's, so that a point takes one fused multiplication where it
took a subtraction and a multiplication. What that product is rounded by is a factor of all of the
row's powers, so that quotients don't see it, and it is near 1 as long as the maximum is no larger
than 2^16. Elements of 16 bits as large as that are 512 apart: powers are 0 or 1, without log2(e),
too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import attrs

from irc.dialects import arith, loop
from irc.dialects import math as math_ops
from irc.ir import attributes as A
from irc.ir.core import Operation
from irc.ir.types import FloatType, f32
from irc.passes.kernel.gpu.plan import GpuPlan, Origin
from irc.passes.kernel.gpu.tiles import Tile, TileBuilder

LARGE = 2.0**16
"""Of 16-bit elements as large as that, different ones are so far apart that no power but that of
the greatest is anything."""


def narrow_source(b: TileBuilder, tile: Tile) -> Tile | None:
    """The tile of 16-bit floats that a tile of f32 was made of; None if it wasn't."""
    maker = tile.value.defining_op
    if tile.element is not f32 or not isinstance(maker, arith.ExtFOp):
        return None
    source = Tile(maker.operands[0], tile.dims, tile.level)
    return source if isinstance(source.element, FloatType) and source.element.width == 16 else None


def gaps_below_maxima(plan: GpuPlan, rough: Iterable[Operation]) -> dict[Operation, Operation]:
    """For powers among rough operations that are of what 16 bits were widened to less a row's
    maximum: that subtraction. Where something else needs such differences they are none."""
    gaps: dict[Operation, Origin] = {
        op: maximum
        for member in plan.members
        for op in member.compute.block.ops
        if isinstance(op, arith.SubFOp) and (maximum := _maximum_below(op, plan)) is not None
    }
    needed = {
        (maximum.member.compute, maximum.output)
        for gap, maximum in gaps.items()
        if not all(isinstance(user, math_ops.ExpOp) for user in gap.results[0].users)
    }
    below: dict[Operation, Operation] = {}
    for op in rough:
        gap = op.operands[0].defining_op if isinstance(op, math_ops.ExpOp) else None
        maximum = None if gap is None else gaps.get(gap)
        if gap is None or maximum is None:
            continue
        if (maximum.member.compute, maximum.output) not in needed:
            below[op] = gap
    return below


def _maximum_below(gap: Operation, plan: GpuPlan) -> Origin | None:
    """The maximum of rows that is subtracted from what 16 bits were widened to."""
    element, read = (operand.defining_op for operand in gap.operands)
    if not isinstance(element, arith.ExtFOp) or element.operands[0].type.width != 16:  # type: ignore[attr-defined]
        return None
    if gap.results[0].type is not f32 or not isinstance(read, loop.ReadOp) or read.mask is not None:
        return None
    origin = plan.origin(read.source)
    if origin is None or (origin.attr.kind, origin.attr.combiner) != ("reduce", "max"):
        return None
    return origin


@attrs.frozen
class Below:
    """Powers below a tile of maxima: what they are scaled by, and the scaled maxima's negatives."""

    scale: Tile
    negative: Tile

    @staticmethod
    def of(b: TileBuilder, top: Tile, large: float = LARGE) -> Below:
        """Those below `top`. large: from which size on a difference of elements is 0, or so large
        that its power is as good as another base's."""
        size = b.op("math.absf", top)
        far = b.compare("oge", size, b.constant(large, f32))
        scale = b.select(far, b.constant(1.0, f32), b.constant(math.log2(math.e), f32))
        return Below(scale, b.op("arith.negf", b.op("arith.mulf", top, scale)))

    def times(self, b: TileBuilder, factor: float) -> Below:
        """Those of elements that are to be multiplied with a factor."""
        if factor == 1.0:
            return self
        return Below(b.op("arith.mulf", self.scale, b.constant(factor, f32)), self.negative)

    def power(self, b: TileBuilder, x: Tile) -> Tile:
        """exp(x - top)."""
        exponent = b.op("math.fma", x, self.scale, self.negative)
        return b.make(math_ops.Exp2Op, [exponent], [(exponent.dims, f32)], {"rough": A.UNIT})[0]


__all__ = ["Below", "gaps_below_maxima", "narrow_source"]
