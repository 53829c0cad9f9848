"""What the products of a walk over a stream multiply: rows, laid out before it, and a step's part
of the stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from irc.analysis.contraction import Contraction
from irc.dialects import loop
from irc.ir.core import Value
from irc.ir.symbols import Dim, known_divisible
from irc.passes.common.bodies import Body
from irc.passes.kernel.gpu.plan import GpuMember
from irc.passes.loop.stream_lanes import ColumnLanes
from irc.passes.loop.stream_panels import ELEMENT, PanelMaker
from irc.passes.loop.stream_points import COLUMN, Axes, array

if TYPE_CHECKING:
    from irc.passes.loop.stream_walk import StreamWalk


class StreamFactors:
    """The factors of a walk's products. panels: of what they read of the stream, where registers of
    whole tiles multiply."""

    def __init__(self, walk: StreamWalk) -> None:
        self.walk, at = walk, walk.at
        self.at = at
        self.panels = PanelMaker(at, at.dot) if isinstance(at, ColumnLanes) else None

    def rows(self, member: GpuMember, contraction: Contraction) -> Value:
        """The rows of a product's first factor."""
        body = Body()
        depth = self.at.depth_of(contraction)
        self.at.extents |= {place.name: size for place, size in depth}
        mask = self.at.row_mask(body)
        own = {axis.name: place for axis, (place, _) in zip(contraction.depth, depth, strict=True)}
        mask = body.both(mask, self._inside(body, contraction.depth, depth))
        value = self.walk.copier(member, body, own, mask).value(self.at.factor(contraction.left))
        if mask is not None:
            value = body.select(mask, value, body.zero(value.type))
        return self.at.map(self.walk.builder, self.at.row_axes(*depth), [value], body)[0]

    def column(
        self, body: Body, member: GpuMember, contraction: Contraction,
        axes: Sequence[loop.AxisAttr], across: Axes,
    ) -> Value:  # fmt: skip
        """What a product has of the stream at a column, and at places of other axes: read where it
        lies, or from an array of the step's, where it is computed, widened or looked up."""
        own = {axis.name: place for axis, (place, _) in zip(axes, across, strict=True)}
        places = self.walk.streamed(member) | own
        factor = self.at.factor(contraction.right)
        read = contraction.right.plain
        if read is not None and self.panels is not None:
            scores = any(score is member for score, _ in self.walk.space.scores)
            element = self._panel_element(body, member, read, places, across[0], scores)
            if element is not None:
                return element
        whole = known_divisible(self.at.stream[-1], self.at.columns) and self.walk.begin is None
        if read is not None and read.value.type is factor.type and not read.positions and whole:
            return self.walk.copier(member, body, places, None).value(read.value)
        inside = Body()
        mask = self.walk.column_mask(inside)
        there = inside.both(mask, self._inside(inside, axes, across))
        value = self.walk.copier(member, inside, places, there).value(factor)
        if there is not None and not contraction.right.reads_zero:
            value = inside.select(there, value, inside.zero(value.type))
        inside.finish([value])
        own_axes = self.at.axes((COLUMN, self.at.columns), *across, stepped=True)
        type_ = array(value.type, [axis.extent for axis in own_axes])
        names = ["column", *(place.name for place, _ in across)]
        schedule = self.at.vectors(names[-1], names)
        tile = self.at.compute(self.walk.builder, own_axes, [loop.MAP], [type_], inside, schedule)
        other = [place for place, _ in across]
        return body.read(tile.results[0], [*self.at.stepped, COLUMN, *other])

    def _panel_element(
        self, body: Body, member: GpuMember, read: loop.ReadOp, places: Mapping[str, Dim],
        across: tuple[Any, Dim], scores: bool,
    ) -> Value | None:  # fmt: skip
        """An element of a step's panels: where they lie, or, where lists say which these are or
        nobody knows where a walk begins, of a copy. None where there are none."""
        if self.panels is None or self.walk.plan.origin(read.source) is not None:
            return None
        inside = Body()
        copier = self.walk.copier(member, inside, places, None)
        for position in read.positions:
            copier.value(position)
        place, positions = copier.expressions(read.indices, read.positions)
        panels = self.panels.of(read.source, place, *across, scores)
        if panels is None:
            return None
        if not positions:
            return body.read(panels.value, [*panels.place, *panels.inside])
        at, count = self.at, panels.elements
        inside.finish([inside.read(panels.value, [*panels.place, *panels.unfolded], positions)])
        at.extents[ELEMENT.name] = count
        axes = at.axes((ELEMENT, count), stepped=True)
        type_ = array(read.value.type, [axis.extent for axis in axes])
        schedule = at.vectors(ELEMENT.name, [ELEMENT.name])
        part = at.compute(self.walk.builder, axes, [loop.MAP], [type_], inside, schedule)
        return body.read(part.results[0], [*at.stepped, panels.number])

    @staticmethod
    def _inside(body: Body, axes: Sequence[loop.AxisAttr], places: Axes) -> Value | None:
        """Whether places are within the extents of axes; None where all are."""
        mask = None
        for axis, (place, size) in zip(axes, places, strict=True):
            if size != axis.extent:
                inside = body.compare("slt", body.index(place), body.index(axis.extent))
                mask = body.both(mask, inside)
        return mask


__all__ = ["StreamFactors"]
