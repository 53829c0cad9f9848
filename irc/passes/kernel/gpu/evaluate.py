"""Evaluating the scalar bodies of computes on tiles, at points given by index expressions.

A read of an array that the kernel computes itself becomes the value in registers where the point
is the tile's own, or the producer's body evaluated anew at the point read (a map), or a loop over
the combined axes (a reduction that no tile holds).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from irc.dialects import arith, loop
from irc.dialects import math as math_ops
from irc.ir import attributes as A
from irc.ir.core import Operation, Value
from irc.ir.diagnostics import InvalidIR
from irc.ir.symbols import Dim, dim_product, provable_le, substitute
from irc.ir.types import f32
from irc.passes.kernel.gpu.combine import Reduction, convert
from irc.passes.kernel.gpu.plan import GpuMember, GpuPlan, Origin, offset_of
from irc.passes.kernel.gpu.rough_powers import inverse_of, one_more, zero_of
from irc.passes.kernel.gpu.scaled_powers import Below, gaps_below_maxima
from irc.passes.kernel.gpu.summed_powers import SummedPowers, summed_powers
from irc.passes.kernel.gpu.tiles import Tile, TileBuilder, union


@attrs.frozen(eq=False)
class Point:
    """Where a body is evaluated: an index expression per axis name, only under `mask`."""

    axes: Mapping[str, Dim]
    mask: Tile | None = None

    @property
    def key(self) -> Any:
        """Equal for equal points."""
        return (tuple(self.axes.items()), None if self.mask is None else self.mask.value)


class Evaluator:
    """Computes values of members' bodies, each once per point."""

    def __init__(self, b: TileBuilder, plan: GpuPlan, pointers: Mapping[Value, Value]) -> None:
        self.b = b
        self.plan = plan
        self.pointers = pointers
        self.serial_loops = 0
        self.rough: frozenset[Operation] = frozenset()
        self.gaps: dict[Operation, Operation] = {}
        self.powers = summed_powers(plan)

    # -- values inside a body

    def value(self, member: GpuMember, root: Value, point: Point) -> Tile:
        """The tile of a value of the member's body at a point."""
        evaluated = self.b.find((root, point.key))
        if evaluated is not None:
            return evaluated
        pending = [root]
        while pending:
            value = pending[-1]
            if self.b.find((value, point.key)) is not None:
                pending.pop()
                continue
            op: Any = value.defining_op
            if op is None:
                raise InvalidIR("a body uses a scalar from outside", op=member.compute)
            sources = op.operands[1:] if isinstance(op, loop.ReadOp) else op.operands
            function = self._shortened(op)
            if function is not None:
                sources = function.operands
            missing = [s for s in sources if self.b.find((s, point.key)) is None]
            if missing:
                pending.extend(missing)
                continue
            pending.pop()
            tile = self._operation(member, op, point)
            self.b.remember((value, point.key), tile, tile.level)
        return self.b.find((root, point.key))

    def yielded(self, member: GpuMember, output: int, point: Point) -> Tile:
        """The value that a member yields for an output."""
        return self.value(member, member.compute.yield_op.values[output], point)

    def take(self, value: Value, point: Point, tile: Tile) -> None:
        """Let a value be a tile at a point."""
        self.b.remember((value, point.key), tile, tile.level)

    def be_rough(self, operations: frozenset[Operation]) -> None:
        """Let operations be made by the machine's own functions."""
        self.rough, self.gaps = operations, gaps_below_maxima(self.plan, operations)

    def powers_of(self, total: Origin) -> SummedPowers | None:
        """What a sum is of, if that is powers below the maximum of its row."""
        for powers in self.powers:
            if powers.total.is_output(total.member, total.output):
                return powers
        return None

    def _operation(self, member: GpuMember, op: Any, point: Point) -> Tile:
        self.b.location = op.location
        if isinstance(op, loop.ReadOp):
            return self._read(op, point)
        if isinstance(op, loop.IndexOp):
            return self.b.index(self.expressions((op.expression,), op.positions, point)[0])
        function = self._shortened(op)
        if isinstance(function, arith.SubFOp):
            return self._power_below(op, function, point)
        if function is not None:
            return self._one_more(function, self.b.find((function.operands[0], point.key)))
        operands = [self.b.find((o, point.key)) for o in op.operands]
        settled = _settled(op, operands)
        if settled is not None:
            return settled
        if isinstance(op, arith.DivFOp):
            return self._division(member, op, *operands)
        if op in self.rough:
            zero = zero_of(op)
            if zero is not None:
                return operands[1 - zero]
            return self.b.like(op, operands, rough=A.UNIT)
        return self.b.like(op, operands)

    def _shortened(self, op: Operation) -> Operation | None:
        """The operation that a rough one is made together with, of what that is made of."""
        if op not in self.rough:
            return None
        return one_more(op) or self.gaps.get(op)

    def _power_below(self, op: Operation, gap: Operation, point: Point) -> Tile:
        """exp(x - m) of a row's maximum."""
        element, top = (self.b.find((value, point.key)) for value in gap.operands)
        if len(top.dims) < len(element.dims):
            return Below.of(self.b, top).power(self.b, element)
        return self.b.like(op, [self.b.like(gap, [element, top])], rough=A.UNIT)

    def _division(self, member: GpuMember, op: Operation, top: Tile, bottom: Tile) -> Tile:
        """A quotient; of many tops to a bottom as a product with its inverse."""
        inverse = inverse_of(op) if op in self.rough else None
        if inverse is not None:
            return self.b.op("arith.mulf", top, self.b.constant(inverse, top.element))
        shared = len(bottom.dims) < len(union(top, bottom)) and bottom.element is f32
        if not shared or self.plan.has_steps_behind(member, op):
            return self.b.like(op, [top, bottom])
        read = op.operands[1].defining_op
        origin = self.plan.origin(read.source) if isinstance(read, loop.ReadOp) else None
        if origin is None or self.powers_of(origin) is None:
            return self._quotient(top, bottom)
        one = self.b.expand(self.b.constant(1.0, f32), bottom.dims)
        # A single one a program instance is no work.
        rough = {"rough": A.UNIT} if op in self.rough and bottom.dims else {}
        (part,) = self.b.make(arith.DivFOp, [one, bottom], [(bottom.dims, f32)], rough)
        return self.b.op("arith.mulf", top, part)

    def _one_more(self, function: Operation, x: Tile) -> Tile:
        """1 + tanh(x) as 2 sigmoid(2x), 1 + erf(x) as erfc(-x), as rough as 16 bits may be."""
        b, rough = self.b, {"rough": A.UNIT}
        if isinstance(function, math_ops.ErfOp):
            x = b.op("arith.negf", x)
            return b.make(math_ops.ErfcOp, [x], [(x.dims, f32)], rough)[0]
        x = b.op("arith.addf", x, x)
        half = b.make(math_ops.SigmoidOp, [x], [(x.dims, f32)], rough)[0]
        return b.op("arith.addf", half, half)

    def _quotient(self, top: Tile, bottom: Tile) -> Tile:
        """top / bottom, many tops to a bottom, as a product with its inverse: within 2 ulp.

        The bottom is brought near 1 first where its inverse would not be a normal number.
        """
        b = self.b
        size = b.op("math.absf", bottom)
        small = b.compare("olt", size, b.constant(2.0**-64, f32))
        large = b.compare("ogt", size, b.constant(2.0**64, f32))
        scale = b.select(small, b.constant(2.0**96, f32), b.constant(1.0, f32))
        scale = b.select(large, b.constant(2.0**-64, f32), scale)
        one = b.constant(1.0, f32)
        inverse = b.op("arith.divf", one, b.op("arith.mulf", bottom, scale))
        return b.op("arith.mulf", b.op("arith.mulf", top, inverse), scale)

    def expressions(
        self, dims: Sequence[Any], positions: Sequence[Value], point: Point
    ) -> list[Dim]:
        """Index expressions of a body over the kernel's own symbols."""
        mapping: dict[str, Dim] = dict(point.axes)
        for number, position in enumerate(positions):
            tile: Tile = self.b.find((position, point.key))
            mapping[loop.placeholder(number)] = self.b.symbol_of(tile)
        return [self.b.simplified(substitute(d, mapping)) for d in dims]

    def _read(self, op: loop.ReadOp, point: Point) -> Tile:
        b = self.b
        indices = self.expressions(op.indices, op.positions, point)
        own = None if op.mask is None else b.find((op.mask, point.key))
        other = None if op.other is None else b.find((op.other, point.key))
        mask = b.both(point.mask, own)
        origin = self.plan.origin(op.source)
        element = op.value.type
        if origin is None:
            offset = b.simplified(offset_of(indices, op.source.type))
            if mask is not None and self._is_narrower(offset, indices, op.source.type, mask):
                tile = b.load(self.pointers[op.source], offset, element, None, None)
                return tile if own is None else self._where(own, tile, other)
            return b.load(self.pointers[op.source], offset, element, mask, other)
        tile = convert(b, self.element(origin, indices, mask), element)
        return tile if own is None else self._where(own, tile, other)

    def _where(self, mask: Tile, tile: Tile, other: Tile | None) -> Tile:
        return self.b.select(
            mask, tile, self.b.constant(0, tile.element) if other is None else other
        )

    def _is_narrower(self, offset: Dim, indices: Sequence[Dim], source: Any, mask: Tile) -> bool:
        """Whether a place has fewer dimensions than the mask of its read, and is always inside of
        the array: one element a row, say, is then read once, whatever the mask says."""
        b = self.b
        if set(mask.dims) <= set(b.index(offset).dims):
            return False
        return all(
            provable_le(0, i, b.ranges, b.extents) and provable_le(i + 1, n, b.ranges, b.extents)
            for i, n in zip(indices, source.shape, strict=True)
        )

    # -- elements of local arrays

    def element(self, origin: Origin, indices: Sequence[Dim], mask: Tile | None) -> Tile:
        """The element of an array that the kernel computes, at index expressions."""
        attr, member = origin.attr, origin.member
        kept = [a for a in member.compute.axis_list if attr.kind != "reduce" or a.kind != "red"]
        point = {a.name: d for a, d in zip(kept, indices, strict=True)}
        if attr.kind == "map":
            return self.yielded(member, origin.output, Point(point, mask))
        known = self.b.find(("array", member, origin.output, tuple(indices)))
        if known is not None:
            return known[origin.part]
        if attr.kind == "reduce":
            return self._serial(origin, point, mask)[origin.part]
        raise InvalidIR(
            f"a {attr.kind} result is read at another point than where it is made; store it "
            "outside the group",
            op=self.plan.op,
        )

    def keep(
        self, member: GpuMember, output: int, indices: Sequence[Dim], results: list[Tile]
    ) -> None:
        """Let later reads at these indices find the results of a reduce or scan."""
        level = max(t.level for t in results)
        self.b.remember(("array", member, output, tuple(indices)), results, level)

    def _serial(self, origin: Origin, point: Mapping[str, Dim], mask: Tile | None) -> list[Tile]:
        """A reduction at one point: a loop over the combined axes, one point a turn."""
        b, member = self.b, origin.member
        red = [a for a in member.compute.axis_list if a.kind == "red"]
        total = dim_product([a.extent for a in red])
        element = member.compute.yield_op.values[origin.output].type
        reduction = Reduction(b, origin.attr, element, self._dims_of(point, mask), None, total)
        with b.loop(total, 1, reduction.start()) as (position, carried, following, final):
            inner = self._serial_point(red, position, total, point, mask)
            content = self.yielded(member, origin.output, inner)
            following += reduction.step(carried, content, position, position)
        return reduction.finish(final)

    def _serial_point(
        self,
        red: Sequence[loop.AxisAttr],
        position: Tile,
        total: Dim,
        point: Mapping[str, Dim],
        mask: Tile | None,
    ) -> Point:
        self.serial_loops += 1
        at = self.b.bind(f"serial_{self.serial_loops}", position, total)
        axes = {**point, **decomposed(self.b, at, red)}
        return Point(axes, mask)

    def _dims_of(self, point: Mapping[str, Dim], mask: Tile | None) -> Any:
        tiles = [self.b.index(d) for d in point.values()]
        return union(*tiles, *([] if mask is None else [mask]))


def _settled(op: Operation, operands: Sequence[Tile]) -> Tile | None:
    """What a conjunction, disjunction or choice is where a condition is known."""
    if isinstance(op, arith.SelectOp):
        known = _outcome(operands[0])
        return None if known is None else operands[1 if known else 2]
    if isinstance(op, arith.AndIOp | arith.OrIOp):
        for one, other in (operands, operands[::-1]):
            known = _outcome(one)
            if known is not None:
                return other if known is isinstance(op, arith.AndIOp) else one
    return None


def _outcome(tile: Tile) -> bool | None:
    """The condition that a tile is everywhere, if that is known."""
    maker = tile.value.defining_op
    content = maker.value if isinstance(maker, arith.ConstantOp) else None
    return content.value if isinstance(content, A.BoolAttr) else None


def decomposed(b: TileBuilder, linear: Dim, axes: Sequence[loop.AxisAttr]) -> dict[str, Dim]:
    """The axes' indices at position `linear` of their row-major space."""
    if any(axis.extent == 0 for axis in axes):
        return dict.fromkeys([a.name for a in axes], 0)  # there is no point
    places: dict[str, Dim] = {}
    inner: Dim = 1
    for number, axis in enumerate(reversed(axes)):
        place = linear // inner if inner != 1 else linear
        outermost = number == len(axes) - 1
        places[axis.name] = b.simplified(place if outermost else place % axis.extent)
        inner = inner * axis.extent
    return {a.name: places[a.name] for a in axes}


__all__ = ["Evaluator", "Point", "decomposed"]
