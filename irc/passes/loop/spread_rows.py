"""The pass `spread-rows`."""

from __future__ import annotations

from irc.analysis.loop import read_offset
from irc.dialects import func, loop
from irc.ir.core import Operation
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.symbols import coefficient
from irc.ir.types import element_bytes
from irc.passes.loop.localize import localize_block
from irc.passes.loop.row_groups import GroupRows, is_reduction, rows_of, type_of
from irc.passes.loop.row_parts import Spread
from irc.target import Target, target_of
from irc.target.gpu import GpuFeatures


@register_pass
class SpreadRows(Pass):
    """Spreads a few long rows over a GPU: a softmax of one row of logits, a group norm of an image.

    A group of reductions and what is done to their results has a program instance for each row, so
    that few rows leave most of a GPU idle, however long they are; and one that stores them along
    another axis than it reads them along moves little at once. Where that takes longer than to go
    through memory once for each reduction that needs another one's result, and once more, rows are
    cut into parts. A kernel reduces each part; the next one combines what the parts gave, in
    every program instance anew, and goes on with its part; those behind it read what it combined.
    What is stored along rows is computed so, too, where parts are equal and it lies in memory as
    what is read does; otherwise in a kernel of its own. Parts have `part_points` to `most_points`,
    and are as many as keep the GPU busy, at most `most_parts`, which a program instance combines.
    Where few points of a row lie side by side, as a group's channels where these are innermost,
    each of them is reduced by itself, with those of the rows beside it. Remarks: how rows are
    spread, with both times, or why they are not.

    Before:
        %y = loop.group (i0: 4) {
          %m = loop.compute par(i0: 4) red(i1: 65536) -> reduce(max, f32) {
            ... loop.read %x[i0, i1] }
          %d = loop.compute par(i0: 4, i1: 65536) -> map { ... %x[i0, i1] ... %m[i0] } }
    After:
        %p = loop.compute par(i0: 4, i1: 64) red(i2: 1024) -> reduce(max, f32) {
          ... loop.read %x[i0, i1*1024 + i2] }
        %z = loop.group (i0: 4, i1: 64) {
          %m = loop.compute par(i0: 4, i1: 64) red(i2: 64) -> reduce(max, f32) { ... %p[i0, i2] }
          %d = loop.compute par(i0: 4, i1: 64, i2: 1024) -> map {
            ... %x[i0, i1*1024 + i2] ... %m[i0, i1] } }
        %y = layout.view %z ...
    """

    name = "spread-rows"
    summary = "spread few long rows over a GPU"
    anchor = "func.func"
    preserves = "real"
    asks_target = True
    part_points: int = 1024
    most_points: int = 8192
    most_parts: int = 1024

    def run(self, op: Operation, context: PassContext) -> None:
        assert isinstance(op, func.FuncOp)
        target = target_of(context)
        if not target.is_gpu:
            return
        for group in [each for each in op.block.ops if isinstance(each, loop.GroupOp)]:
            rows = rows_of(group, target)
            if isinstance(rows, str):
                context.remark(f"rows are not spread: {rows}", group)
                continue
            if not target.idles(rows.count) and not rows.crosses():
                context.remark(f"rows are not spread: {rows.count} keep a GPU busy", group)
                continue
            spread = self.spread(rows, target)
            if isinstance(spread, str):
                context.remark(f"rows are not spread: {spread}", group)
                continue
            apart, together = target.time(spread.cost()), rows.time(target)
            text = f"{_microseconds(together)} -> {_microseconds(apart)}"
            if together <= apart:
                context.remark(f"rows are not spread: {text}", group)
            elif context.spend("spread-rows", group):
                context.remark(f"rows are spread in {spread.count} parts: {text}", group)
                context.count("spread")
                spread.write()
        if context.statistics["spread-rows", "spread"]:
            localize_block(op.block)

    def spread(self, rows: GroupRows, target: Target) -> Spread | str:
        """How rows are cut into parts; a text says why they can't be."""
        gpu, narrow = target.gpu, _narrow_axis(rows, target.gpu)
        columns = 1 if narrow is None else rows.own[narrow]
        points, count = rows.points // columns, -(-gpu.parallel // rows.count)
        least, most = self.part_points, self.most_points
        if narrow is not None:
            # A program instance has several columns, of which it holds none.
            count = -(-count * gpu.narrow_columns // columns)
            least, most = (max(1, n // gpu.narrow_columns) for n in (least, 4 * most))
        count = min(max(count, points // most), self.most_parts, points // least)
        if count < gpu.least_parts:
            return f"{points} points are no {gpu.least_parts} parts of {least}"
        parts = _parts(rows, count, narrow)
        even = all(size % n == 0 for size, n in zip(rows.own, parts, strict=True))
        along = list(rows.along())
        if not even and any(o.combiner == "moments" for m in along for o in m.output_list):
            return f"no parts of {rows.own} are equal, as those of moments must be"
        if not even and any(_combines_members(rows, member) for member in along):
            return "its parts aren't equal, and members combine others' values along rows"
        apart = not even or narrow is not None or rows.crosses()
        return Spread(rows, tuple(parts), apart, narrow)


def _microseconds(femtoseconds: int) -> str:
    return f"{femtoseconds / 1e9:.3g} us"


def _narrow_axis(rows: GroupRows, gpu: GpuFeatures) -> int | None:
    """The own axis along which few points of a row lie side by side, followed by those of the next
    rows, as the channels of a group do where channels are innermost."""
    narrow = set[int | None]()
    for member in rows.along():
        own = member.axis_list[rows.shared :]
        for source, reads in rows.sources(member).items():
            offset = read_offset(reads[0])
            along = [k for k, a in enumerate(own) if coefficient(offset, a.name) == 1
                     and a.extent != 1]  # fmt: skip
            size = element_bytes(type_of(source).element)
            next_to = along and any(
                coefficient(offset, a.name) == rows.own[along[0]]
                for a in member.axis_list[: rows.shared] if a.extent != 1
            )
            few = bool(next_to) and rows.own[along[0]] * size < gpu.narrow_bytes
            narrow.add(along[0] if few else None)
    return narrow.pop() if len(narrow) == 1 else None


def _parts(rows: GroupRows, count: int, narrow: int | None) -> list[int]:
    """In how many parts each own axis is cut: the narrow one and the outermost in memory are parts
    themselves, the next one is cut into equal ones if there are about as many."""
    parts, left = [1] * len(rows.own), count
    if narrow is not None:
        parts[narrow] = rows.own[narrow]
    for k in [k for k in _outermost_first(rows) if k != narrow]:
        extent = rows.own[k]
        if extent > left:
            near = [n for n in range(max(2, -(-left // 2)), 2 * left + 1) if extent % n == 0]
            parts[k] = min(near, key=lambda n: abs(n - left), default=left)
            break
        parts[k], left = extent, -(-left // extent)
        if left == 1:
            break
    return parts


def _outermost_first(rows: GroupRows) -> list[int]:
    """The own axes by how far steps go in what is read."""
    steps = [0] * len(rows.own)
    for member in rows.along():
        for reads in rows.sources(member).values():
            for k, a in enumerate(member.axis_list[rows.shared :]):
                step = coefficient(read_offset(reads[0]), a.name)
                if isinstance(step, int):
                    steps[k] = max(steps[k], abs(step))
    return sorted(range(len(steps)), key=lambda k: -steps[k])


def _combines_members(rows: GroupRows, member: loop.ComputeOp) -> bool:
    """Whether a member combines what another one has for each point of a row."""
    inside = [read.source for read in member.reads if rows.has(read.source)]
    return is_reduction(member) and not all(map(rows.is_of_rows, inside))


__all__ = ["SpreadRows"]
