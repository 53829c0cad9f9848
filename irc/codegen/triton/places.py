"""Places in memory as what a whole tile has in common and what its lanes add.

A program instance's tile begins somewhere, and its lanes are a few constants further. Added to the
pointer first, the beginning is one address for all accesses, with the constants as part of the
instructions; added to each lane, every access of a thread computes an address of its own (of
softmax over rows of 197 elements, bf16, 80 of 516 instructions, sm_90). In a loop the compiler
steps each lane's address from turn to turn by itself, and is the slower for it where the tile's
beginning is an address of its own (sums of columns of 8192x8192 bf16: 37.0 us of an H200, 39.2 so).
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

    def __init__(self, ref: Callable[[Value], str], named: Callable[[str], str]) -> None:
        """`ref`: the name of a value; `named`: writes a statement, and gives the name that it
        defines."""
        self._ref, self._named = ref, named
        self._known: dict[Value, SplitPlace] = {}

    def inner(self) -> Places:
        """Those of a block inside, whose names nothing outside can use."""
        places = Places(self._ref, self._named)
        places._known = dict(self._known)
        return places

    def of(self, offsets: Value) -> SplitPlace:
        """The place that offsets are."""
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
