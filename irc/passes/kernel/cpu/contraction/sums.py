"""Arithmetic of sums of products: what is multiplied and added up, of floats and of integers.

Vectors of groups may take the factor with the rows as unsigned alone. Of signed ones, `offset` is
added to it then, and what that adds to each sum, `offset` times the sum of the other factor's
terms, is summed up beside the sums of a tile and taken off at last; sums of integers wrap around.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from irc.dialects import arith, kernel, math
from irc.ir import attributes as A
from irc.ir.core import Value
from irc.ir.types import FloatType
from irc.passes.kernel.cpu.contraction.tiling import Tiling
from irc.passes.kernel.cpu.emit import Emitter


@attrs.frozen(eq=False)
class SumArithmetic:
    """How vectors of sums are computed; a vector of factors has a group of terms for each lane."""

    emitter: Emitter
    tiling: Tiling

    @property
    def lanes(self) -> int:
        """Sums in a vector."""
        return self.tiling.schedule.lanes

    @property
    def several(self) -> int:
        """Terms in a vector."""
        return self.lanes * self.tiling.group

    @property
    def zero(self) -> float | int:
        """The sum of nothing."""
        return 0.0 if isinstance(self.tiling.element, FloatType) else 0

    @property
    def offset(self) -> int:
        """What the factor with the rows is made unsigned by; 0: nothing."""
        return self.tiling.schedule.offset if self.tiling.group > 1 else 0

    def initial(self, count: int) -> list[Value]:
        """So many vectors of sums of nothing."""
        return [self.emitter.number(self.zero, self.tiling.element, self.lanes)] * count

    def offset_vector(self) -> Value:
        """The offset in each term of a vector, as its element holds it."""
        element = self.tiling.factor_element
        width: int = element.width  # type: ignore[attr-defined]
        return self.emitter.number(self.offset - (1 << width), element, self.several)

    def unsigned(self, factor: Value) -> Value:
        """The factor with the rows, with the offset if there is one."""
        if not self.offset:
            return factor
        return self.emitter.add(arith.AddIOp, (factor, self.offset_vector()), factor.type)

    def add_product(self, left: Value, right: Value, total: Value) -> Value:
        """total + left * right, of vectors whose left one is `unsigned`."""
        if self.tiling.group > 1:
            more: dict[str, A.Attribute] = {}
            if self.offset:
                more["unsigned_left"] = A.BoolAttr(True)
            return self.emitter.add(kernel.DotLanesOp, (left, right, total), total.type, more)
        if isinstance(self.tiling.element, FloatType):
            return self.emitter.add(math.FmaOp, (left, right, total), total.type)
        product = self.emitter.add(arith.MulIOp, (left, right), total.type)
        return self.add(product, total)

    def add(self, first: Value, second: Value) -> Value:
        """The sum of two vectors of sums."""
        cls = arith.AddFOp if isinstance(self.tiling.element, FloatType) else arith.AddIOp
        return self.emitter.add(cls, (first, second), first.type)

    # What the offset adds is summed up in vectors of its own, one for each vector of columns.

    def beside(self, columns: int) -> list[Value]:
        """The vectors beside a tile's sums, of nothing so far."""
        return self.initial(columns if self.offset else 0)

    def add_beside(self, columns: Sequence[Value], sums: Sequence[Value]) -> list[Value]:
        """What factors with the columns add to the vectors beside the sums."""
        if not self.offset:
            return []
        one = self.offset_vector()
        return [self.add_product(one, c, total) for c, total in zip(columns, sums, strict=True)]

    def without(self, sums: Sequence[Value], beside: Sequence[Value]) -> list[Value]:
        """A tile's sums, row after row, without what the offset added."""
        if not self.offset:
            return list(sums)
        return [
            self.emitter.add(arith.SubIOp, (total, beside[k % len(beside)]), total.type)
            for k, total in enumerate(sums)
        ]


__all__ = ["SumArithmetic"]
