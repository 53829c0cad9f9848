"""Axes that tiles go over as one: the pixels of some images, the taps and channels of a window.

A run counts the points of its parts, the last of which is the fastest. Where a place moves evenly
along all of them it is written with the run's own name; elsewhere the parts are computed from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from irc.ir.core import Value
from irc.ir.symbols import Dim, coefficient, dim_product, maximum, substitute, symbol
from irc.passes.kernel.cpu.emit import Emitter, Scalar, VectorScope
from irc.passes.kernel.cpu.place import OUTER
from irc.passes.kernel.cpu.plan import Access, Axis


@attrs.define(eq=False)
class Stretch:
    """[lower, upper) of an axis, in loops that step over whole tiles from `lower` on."""

    lower: Scalar
    upper: Scalar


@attrs.define(eq=False)
class AxisRun:
    """`axis` counts the points of `parts`; it is the only one of them where there is one."""

    axis: Axis
    parts: list[Axis]

    @classmethod
    def of(cls, name: str, parts: Sequence[Axis]) -> AxisRun:
        """A run over axes, with a name of its own if these are several."""
        if len(parts) == 1:
            return cls(parts[0], list(parts))
        extent = dim_product([part.extent for part in parts])
        return cls(Axis(name, parts[0].kind, extent), list(parts))

    @property
    def inner(self) -> Axis:
        """The part that moves the fastest."""
        return self.parts[-1]

    def even(self, expression: Dim) -> Dim | None:
        """An expression over the run instead of its parts; None where it doesn't move evenly."""
        if len(self.parts) == 1:
            return expression
        steps = [coefficient(expression, part.name) for part in self.parts]
        for part, outer, inner in zip(self.parts[1:], steps, steps[1:], strict=False):
            if inner is None or outer != inner * part.extent:
                return None
        assert steps[-1] is not None
        rest = substitute(expression, {part.name: 0 for part in self.parts})
        return rest + steps[-1] * symbol(self.axis.name)

    def moved(self, access: Access) -> Access:
        """An access over the run, if it moves evenly, or itself."""
        expression = self.even(access.expression)
        if expression is None or len(self.parts) == 1:
            return access
        return attrs.evolve(access, expression=expression)

    def bind(self, emitter: Emitter, place: Scalar, scope: VectorScope) -> None:
        """Make the run's place, and what it is of each part, known in a scope."""
        scope.names[self.axis.name] = place
        self._bind(emitter, place, self.parts, scope)

    def _bind(
        self, emitter: Emitter, place: Scalar, parts: Sequence[Axis], scope: VectorScope
    ) -> None:
        for part in reversed(parts[1:]):
            extent = emitter.scalar(part.extent, scope)
            scope.names[part.name] = emitter.remainder(place, extent, True)
            place = emitter.quotient(place, extent, True)
        scope.names[parts[0].name] = place

    def over(
        self, emitter: Emitter, scope: VectorScope, stretch: Stretch, whole: bool,
        body: Callable[[VectorScope, Stretch], None],
    ) -> None:  # fmt: skip
        """Run `body` for each stretch of the inner part that [stretch) is made of, with the other
        parts' places known. whole: it ends nowhere within the inner part."""
        if len(self.parts) == 1:
            body(scope, stretch)
            return
        size = emitter.scalar(self.inner.extent, scope)
        # Sizes of 0 have no points, and nothing is divided by them.
        divisor = emitter.scalar(maximum(self.inner.extent, 1), scope)
        first = emitter.quotient(stretch.lower, divisor, True)
        above = emitter.minus(emitter.plus(stretch.upper, divisor), 1)

        def at(line: Scalar, _: Sequence[Value]) -> list[Value]:
            inner = scope.child(OUTER)
            self._bind(emitter, line, self.parts[:-1], inner)
            if whole:
                body(inner, Stretch(0, size))
                return []
            begin = emitter.times(line, size)
            lower = emitter.most(emitter.minus(stretch.lower, begin), 0)
            upper = emitter.least(emitter.minus(stretch.upper, begin), size)
            body(inner, Stretch(lower, upper))
            return []

        emitter.for_loop(first, emitter.quotient(above, divisor, True), 1, (), at)
