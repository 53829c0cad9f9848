"""Places in memory as what a whole tile has in common and what its lanes add.

A program instance's tile begins somewhere, and its lanes are a few constants further. Added to the
pointer first, the beginning is one address for all accesses, with the constants as part of the
instructions; added to each lane, every access of a thread computes an address of its own (of
softmax over rows of 197 elements, bf16, 80 of 516 instructions, sm_90). In a loop the compiler
steps each lane's address from turn to turn by itself, and is the slower for it where the tile's
beginning is an address of its own (sums of columns of 8192x8192 bf16: 37.0 us of an H200, 39.2 so).

A place of 32 bits may be a sum whose terms are too large for them, one of them below 0 (where tiles
go over rows of a large image whose channels lie innermost): they are right only as a sum, and such
a place stays whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from irc.dialects import arith, kernel
from irc.ir.core import Value
from irc.ir.types import VectorType


@attrs.frozen
class SplitPlace:
    """Offsets as text: `common` to all lanes (a scalar; "": nothing), and the `lanes`' own ("":
    nothing)."""

    common: str
    lanes: str


class Places:
    """The places of a kernel's accesses, each text written once in its block."""

    def __init__(
        self,
        ref: Callable[[Value], str],
        named: Callable[[str], str],
        bits: int = 64,
        programs: int | None = None,
    ) -> None:
        """`ref`: the name of a value; `named`: writes a statement, and gives the name that it
        defines. bits: of an index. programs: how many instances there are, if that is known."""
        self._ref, self._named, self._bits, self._programs = ref, named, bits, programs
        self._known: dict[Value, SplitPlace] = {}
        self._most: dict[Value, int | None] = {}
        self._signed: dict[Value, bool] = {}

    def inner(self) -> Places:
        """Those of a block inside, whose names nothing outside can use."""
        places = Places(self._ref, self._named, self._bits, self._programs)
        places._known = dict(self._known)
        return places

    def whole_or_split(self, offsets: Value) -> SplitPlace:
        """The place that offsets are: in parts only where none of its terms can be too large."""
        if self._bits == 32 and self._goes_back(offsets):
            most = self._bound(offsets)
            if most is None or most >= 1 << 31:
                return SplitPlace("", self._ref(offsets))
        return self.of(offsets)

    def _goes_back(self, value: Value) -> bool:
        """Whether a number below 0 is among the factors and terms of an offset: all others are then
        at most what it is."""
        known = self._signed.get(value)
        if known is None:
            maker: Any = value.defining_op
            if isinstance(maker, arith.ConstantOp):
                known = (_number(maker) or 0) < 0
            elif isinstance(maker, arith.AddIOp | arith.MulIOp | kernel.SplatOp | kernel.ExpandOp):
                known = any(map(self._goes_back, maker.operands))
            else:
                known = isinstance(maker, arith.SubIOp)
            self._signed[value] = known
        return known

    def _bound(self, value: Value) -> int | None:
        """What the terms of a value come to at most, whatever their signs; None: not known."""
        if value not in self._most:
            self._most[value] = self._bound_by(value.defining_op)
        return self._most[value]

    def _bound_by(self, maker: Any) -> int | None:
        if isinstance(maker, arith.ConstantOp):
            number = _number(maker)
            return None if number is None else abs(number)
        if isinstance(maker, kernel.ProgramIdOp):
            return None if self._programs is None else max(self._programs - 1, 0)
        if isinstance(maker, kernel.IotaOp):
            type_: Any = maker.results[0].type
            return max(type_.shape[0] - 1, 0)
        if maker is None or not maker.operands:
            return None
        bounds = [self._bound(operand) for operand in maker.operands]
        first, second = bounds[0], bounds[-1]
        if first is None or second is None:
            return None
        if isinstance(maker, kernel.SplatOp | kernel.ExpandOp | arith.IndexCastOp):
            return first
        if isinstance(maker, arith.AddIOp):
            return first + second
        if isinstance(maker, arith.MulIOp):
            return first * second
        if isinstance(maker, arith.DivUIOp | arith.DivSIOp | arith.FloorDivSIOp):
            return first // max(_least(maker.operands[1], second), 1) + 1
        if isinstance(maker, arith.RemUIOp | arith.RemSIOp):
            return min(first, second)
        return None

    def of(self, offsets: Value) -> SplitPlace:
        """The place that offsets are, in parts."""
        known = self._known.get(offsets)
        if known is None:
            known = self._known[offsets] = self._split(offsets)
        return known

    def _split(self, value: Value) -> SplitPlace:
        maker: Any = value.defining_op
        if isinstance(maker, kernel.SplatOp):
            scalar = maker.scalar
            if not isinstance(scalar.defining_op, arith.ConstantOp):
                return SplitPlace(self._ref(scalar), "")
        elif isinstance(maker, kernel.ExpandOp):
            inner = self.of(maker.source)
            if inner.common:
                return SplitPlace(inner.common, inner.lanes and self._expanded(maker, inner.lanes))
        elif isinstance(maker, arith.AddIOp):
            return self._sum(value, *[self.of(o) for o in maker.operands])
        elif isinstance(maker, arith.MulIOp):
            return self._product(value, maker.operands)
        return SplitPlace("", self._ref(value))

    def _sum(self, value: Value, left: SplitPlace, right: SplitPlace) -> SplitPlace:
        if not left.common and not right.common:
            return SplitPlace("", self._ref(value))
        return SplitPlace(self._joined(left.common, right.common),
                     self._joined(left.lanes, right.lanes))  # fmt: skip

    def _product(self, value: Value, factors: Sequence[Value]) -> SplitPlace:
        """A place times what is the same for all lanes."""
        for tile, scale in (factors, factors[::-1]):
            scalar = _scalar(scale)
            place = self.of(tile)
            if scalar is None or not place.common:
                continue
            lanes = place.lanes and self._named(f"{place.lanes} * {self._ref(scale)}")
            return SplitPlace(self._named(f"{place.common} * {self._ref(scalar)}"), lanes)
        return SplitPlace("", self._ref(value))

    def _joined(self, left: str, right: str) -> str:
        return self._named(f"{left} + {right}") if left and right else left or right

    def _expanded(self, op: kernel.ExpandOp, lanes: str) -> str:
        return self._named(expanded(op, lanes))


def _number(op: Any) -> int | None:
    """The number that a constant is, in all lanes."""
    value = op.attributes["value"]
    number = getattr(value, "value", None)
    return number if isinstance(number, int) else None


def _least(value: Value, most: int) -> int:
    """What a divisor is: a constant, or 1 at least."""
    maker: Any = value.defining_op
    while isinstance(maker, kernel.SplatOp | kernel.ExpandOp):
        maker = maker.operands[0].defining_op
    return most if isinstance(maker, arith.ConstantOp) else 1


def _scalar(value: Value) -> Value | None:
    """The scalar that all lanes are; None if they may differ."""
    maker: Any = value.defining_op
    if isinstance(maker, kernel.SplatOp):
        return maker.scalar
    return _scalar(maker.source) if isinstance(maker, kernel.ExpandOp) else None


def expanded(op: kernel.ExpandOp, source: str) -> str:
    """The text of a tile over more dimensions."""
    type_: Any = op.expanded.type
    assert isinstance(type_, VectorType)
    kept = len(op.dims) < len(type_.shape)
    axes = [":" if d in op.dims else "None" for d in range(len(type_.shape))]
    text = source + (f"[{', '.join(axes)}]" if kept else "")
    return f"tl.broadcast_to({text}, [{', '.join(map(str, type_.shape))}])"


__all__ = ["SplitPlace", "Places", "expanded"]
