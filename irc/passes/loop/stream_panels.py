"""What a stream's products read of it, in panels as registers of whole tiles take them, laid out
before a group for all of its points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from irc.dialects import loop
from irc.dialects.kernel.dots import Rows
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import Value
from irc.ir.symbols import (
    Dim,
    ceildiv,
    coefficient,
    floordiv,
    free_symbols,
    known_divisible,
    mod,
    substitute,
    symbol,
)
from irc.ir.types import TensorType
from irc.passes.common.bodies import Body, make_compute
from irc.passes.loop.stream_points import COLUMN, StreamPoints, array

ELEMENT = symbol("element")
_OWN = tuple(symbol(name) for name in ("chunk", "panel", "terms", "lane", "term"))


@attrs.frozen(eq=False)
class StreamPanels:
    """An array of panels: of each step's part of a stream the panels of a register's columns, in
    each of which groups of terms of a column are side by side. What is behind the last column or
    term is zero."""

    value: Value
    place: tuple[Dim, ...]
    columns: Dim
    terms: Dim
    dot: Rows

    @property
    def sizes(self) -> tuple[Any, ...]:
        """Of a step's part: panels, groups of terms, columns of a panel, terms of a group."""
        assert isinstance(self.value.type, TensorType)
        return self.value.type.shape[-4:]

    @property
    def elements(self) -> int:
        """Of a step's part."""
        panels, groups, width, group = self.sizes
        return int(panels * groups * width * group)

    @property
    def inside(self) -> list[Dim]:
        """Where a product reads a step's part."""
        width, group = self.dot.tile[1], self.dot.group
        column, term = self.columns, self.terms
        return [floordiv(column, width), floordiv(term, group), mod(column, width),
                mod(term, group)]  # fmt: skip

    @property
    def number(self) -> Dim:
        """The same as a number of an element."""
        number: Dim = 0
        for place, size in zip(self.inside, self.sizes, strict=True):
            number = number * size + place
        return number

    @property
    def unfolded(self) -> list[Dim]:
        """Where the element of a number is."""
        _, groups, width, group = self.sizes
        return [floordiv(ELEMENT, groups * width * group),
                mod(floordiv(ELEMENT, width * group), groups),
                mod(floordiv(ELEMENT, group), width), mod(ELEMENT, group)]  # fmt: skip


class PanelMaker:
    """Makes the panels of a group's streams, each once."""

    def __init__(self, at: StreamPoints, dot: Rows) -> None:
        self.at, self.dot = at, dot
        self._known = dict[tuple[Any, ...], Value]()

    def of(
        self, source: Value, place: Sequence[Dim], across: Any, size: Dim, scores: bool
    ) -> StreamPanels | None:
        """Panels of what is read at a place, which has the columns of a step in one dimension and
        another axis, of so many points of products, in another; None where a step's part is none
        of the array's. scores: the columns of the stream are those of products, else their
        terms."""
        stream = self._dimension(place, COLUMN)
        other = self._dimension(place, across)
        type_ = source.type
        if stream is None or other is None or stream == other or place[other] != across:
            return None
        assert isinstance(type_, TensorType)
        at, extent = self.at, type_.shape[stream]
        begin = substitute(place[stream], {COLUMN.name: 0})
        if not known_divisible(begin, at.columns):
            return None
        if not known_divisible(at.stream[-1], at.columns) and extent != at.stream[-1]:
            return None  # what is behind the last column is not zero
        key = source, stream, other, size, scores
        if key not in self._known:
            self._known[key] = self._laid_out(*key)
        outer = [dim for number, dim in enumerate(place) if number not in (stream, other)]
        place = (*outer, floordiv(begin, at.columns))
        if scores:
            return StreamPanels(self._known[key], place, COLUMN, across, self.dot)
        return StreamPanels(self._known[key], place, across, COLUMN, self.dot)

    @staticmethod
    def _dimension(place: Sequence[Dim], axis: Any) -> int | None:
        """The one dimension that moves along an axis, point by point."""
        moved = [n for n, dim in enumerate(place) if axis.name in free_symbols(dim)]
        if len(moved) != 1 or coefficient(place[moved[0]], axis.name) != 1:
            return None
        return moved[0]

    def _laid_out(
        self, source: Value, stream: int, other: int, size: Dim, scores: bool
    ) -> Value:
        type_ = source.type
        assert isinstance(type_, TensorType)
        (_, width, _), group, columns = self.dot.tile, self.dot.group, self.at.columns
        chunk, panel, terms, lane, term = _OWN
        pair = panel * width + lane, terms * group + term
        sizes = (columns, size) if scores else (size, columns)
        step, across = pair if scores else (pair[1], pair[0])
        outer = {n: symbol(f"outer{n}") for n in range(type_.rank) if n not in (stream, other)}
        place: list[Dim] = [outer.get(n, across) for n in range(type_.rank)]
        place[stream] = chunk * columns + step
        extents = [type_.shape[n] for n in outer]
        extents += [ceildiv(type_.shape[stream], columns), ceildiv(sizes[0], width),
                    ceildiv(sizes[1], group), width, group]  # fmt: skip
        names = [axis.name for axis in (*outer.values(), *_OWN)]
        body, mask = Body(), None
        covered = {stream: ceildiv(type_.shape[stream], columns) * columns, other: size}
        for number in (stream, other):
            if covered[number] != type_.shape[number]:
                inside = body.compare("slt", body.index(place[number]),
                                      body.index(type_.shape[number]))  # fmt: skip
                mask = body.both(mask, inside)
        zero = None if mask is None else body.zero(type_.element)
        body.finish([body.read(source, place, mask=mask, other=zero)])
        axes = [loop.AxisAttr(name, "par", extent)
                for name, extent in zip(names, extents, strict=True)]  # fmt: skip
        compute = make_compute(
            Builder.before(self.at.group), A.ArrayAttr(axes), [loop.MAP],
            [array(type_.element, extents)], body, (), self.at.group,
        )  # fmt: skip
        return compute.results[0]


__all__ = ["ELEMENT", "PanelMaker", "StreamPanels"]
