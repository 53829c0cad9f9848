"""The pass `split-scans`."""

from __future__ import annotations

from collections.abc import Sequence

from irc.analysis.loop import estimate, points
from irc.dialects import layout, loop, sym
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import Operation, Value
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.symbols import Dim, ceildiv, floordiv, mod
from irc.ir.types import FloatType, TensorType, contiguous_strides
from irc.passes.common.bodies import Body, Transplant, axes_of, axis, axis_name, make_compute
from irc.passes.kernel.cpu.reduce import combining_op
from irc.passes.loop.identities import identity
from irc.target import Target, target_of

_SPLITTABLE = frozenset(("sum", "prod", "min", "max"))


@register_pass
class SplitScans(Pass):
    """Makes parts of a long scan with few rows, which run in parallel on a GPU.

    A program instance walks over the row that it scans, so that few rows leave most of a GPU idle.
    Each part is reduced, what the parts give is scanned, and each part is scanned beginning with
    what the parts before it give. Rows of `least_points` are split, into parts of `part_points` to
    `most_points`, of which there are as many as keep the GPU busy a few times.

    Before:
        %y = loop.compute scan(i0: 100000) -> scan(sum, f32) { ... loop.read %x[i0] ... }
    After:
        %t = loop.compute par(i0: 625) red(i1: 160) -> reduce(sum, f32) {
          ... loop.read %x[i0*160 + i1] ... }
        %s = loop.compute scan(i0: 625) -> scan(sum, f32) { ... loop.read %t[i0] ... }
        %z = loop.compute par(i0: 625) scan(i1: 160) -> scan(sum, f32) {
          ... loop.read %x[i0*160 + i1] ..., at i1 = 0 with loop.read %s[i0 - 1] }
        %y = layout.view %z ...
    """

    name = "split-scans"
    summary = "make parallel parts of long scans with few rows"
    anchor = "func.func"
    preserves = "real"
    asks_target = True
    least_points: int = 8192
    part_points: int = 128
    most_points: int = 4096

    def run(self, op: Operation, context: PassContext) -> None:
        target = target_of(context)
        if not target.is_gpu:
            return
        left = [o for o in op.regions[0].blocks[0].ops if isinstance(o, loop.ComputeOp)]
        while left:
            compute = left.pop()
            at = _scanned(compute)
            size = None if at is None else self.part_size(compute, at, target)
            if at is None or size is None or not context.spend("split-scans", compute):
                continue
            left.append(_ScanSplit(compute, at, size).write())
            context.count("split")

    def part_size(self, op: loop.ComputeOp, at: int, target: Target) -> int | None:
        """Points of a part of the axis at a position; None where it stays whole."""
        extent = op.axis_list[at].extent
        if not isinstance(extent, int) or extent < self.least_points:
            return None
        rows = points(a.extent for k, a in enumerate(op.axis_list) if k != at)
        strides = op.results[0].type.strides  # type: ignore[attr-defined]
        if strides[at] != 1:
            rows = -(-rows // target.gpu.warp)
        if not rows or not target.idles(rows):
            return None
        parts = -(-4 * target.gpu.parallel // rows)
        size = max(self.part_points, min(self.most_points, estimate(extent) // parts))
        # Parts that all have as many points need no copy.
        even = (n for n in range(size, self.part_points - 1, -1) if extent % n == 0)
        chosen = next(even, size)
        return chosen if 2 * chosen >= size else size


def _scanned(op: loop.ComputeOp) -> int | None:
    """The number of the axis that a compute scans, if it does nothing else and can be split."""
    kinds = [a.kind for a in op.axis_list]
    if op.schedule is not None or op.operands or sym.range_entry(op) or len(op.output_list) != 1:
        return None
    (output,), (value,) = op.output_list, op.yield_op.values
    if output.kind != "scan" or output.combiner not in _SPLITTABLE or kinds.count("scan") != 1:
        return None
    if "red" in kinds or len(op.results) != 1 or getattr(output.accumulator, "unsigned", False):
        return None
    widens = isinstance(value.type, FloatType) and isinstance(output.accumulator, FloatType)
    return kinds.index("scan") if widens or value.type is output.accumulator else None


class _ScanSplit:
    """A scan whose axis at a position becomes parts of `size` points."""

    def __init__(self, op: loop.ComputeOp, at: int, size: int) -> None:
        self.op, self.at, self.size = op, at, size
        self.extents = [a.extent for a in op.axis_list]
        self.extent = self.extents[at]
        self.parts = ceildiv(self.extent, size)
        (self.output,) = op.output_list
        assert self.output.accumulator is not None
        self.accumulator = self.output.accumulator
        self.builder = Builder.before(op)

    def write(self) -> loop.ComputeOp:
        """Put the parts in its place; gives the scan of what they give."""
        extents = [*self.before, self.parts, *self.behind]
        type_ = self.type_of(extents)
        totals = self.compute("reduce", type_)
        body = Body()
        body.location = self.op.location
        body.finish([body.read(totals.results[0], axes_of(len(extents)))])
        axes = self.axes(extents, {self.at: "scan"})
        sums = make_compute(self.builder, axes, [self.output], [type_], body, (), self.op)
        self.replace(self.compute("scan", self.scanned_type(), sums.results[0]))
        return sums

    @property
    def before(self) -> list[Dim]:
        """The extents of the axes around the scanned one."""
        return self.extents[: self.at]

    @property
    def behind(self) -> list[Dim]:
        """The extents of the axes inside of it."""
        return self.extents[self.at + 1 :]

    @property
    def is_even(self) -> bool:
        """Whether all parts have as many points."""
        return bool(self.parts * self.size == self.extent)

    def type_of(self, sizes: Sequence[Dim]) -> TensorType:
        """An array of combined values."""
        device = self.op.results[0].type.device  # type: ignore[attr-defined]
        return TensorType(tuple(sizes), self.accumulator, contiguous_strides(sizes), device)

    def scanned_type(self) -> TensorType:
        """The array of the scanned parts: the result's memory, if the parts fill it."""
        type_ = self.op.results[0].type
        assert isinstance(type_, TensorType) and type_.strides is not None
        sizes = (*self.before, self.parts, self.size, *self.behind)
        strides = list(type_.strides)
        strides[self.at : self.at + 1] = [strides[self.at] * self.size, strides[self.at]]
        if not self.is_even:
            strides = list(contiguous_strides(sizes))
        return TensorType(sizes, type_.element, tuple(strides), type_.device)

    def axes(self, extents: Sequence[Dim], kinds: dict[int, str]) -> A.ArrayAttr:
        """Axes i0, i1, ..., parallel but for those of other kinds."""
        return A.ArrayAttr(
            [loop.AxisAttr(axis_name(k), kinds.get(k, "par"), n) for k, n in enumerate(extents)]
        )

    def compute(
        self, combining: str, type_: TensorType, sums: Value | None = None
    ) -> loop.ComputeOp:
        """The parts, by `combining` "reduce", or "scan", beginning with `sums` of those before."""
        at, output = self.at, self.output
        extents = [*self.before, self.parts, self.size, *self.behind]
        names = {axis_name(k): n for k, n in enumerate(extents)}
        place = axis(at) * self.size + axis(at + 1)
        others = [axis(k if k < at else k + 1) for k in range(len(self.extents))]
        mapping = {a.name: others[k] for k, a in enumerate(self.op.axis_list)}
        mapping[self.op.axis_list[at].name] = place
        body = Body()
        body.location = self.op.location
        mask: Value | None = None
        if not self.is_even:
            mask = body.compare("slt", body.index(place), body.index(self.extent))
        copier = Transplant(body, mapping, names, (), mask)
        copier.copy_body(self.op)
        (value,) = self.op.yield_op.values
        value = copier.values.get(value, value)
        if mask is not None:
            nothing = identity(body, output.combiner, value.type, output.accumulator)
            value = body.select(mask, value, nothing)
        if sums is not None:
            value = self.begun(body, value, sums)
        body.finish([value])
        result = loop.ResultAttr(combining, output.combiner, self.accumulator, None)
        kinds = {at + 1: "red" if combining == "reduce" else "scan"}
        return make_compute(
            self.builder, self.axes(extents, kinds), [result], [type_], body, (), self.op
        )

    def begun(self, body: Body, value: Value, sums: Value) -> Value:
        """A value of a part, the first of which is combined with what the parts before give."""
        at, combiner = self.at, self.output.combiner
        if value.type is not self.accumulator:
            value = body.op("arith.extf", value, type=self.accumulator)
        first = body.compare("eq", body.index(axis(at + 1)), body.index(0))
        later = body.compare("sgt", body.index(axis(at)), body.index(0))
        mask = body.both(first, later)
        assert mask is not None
        others = [axis(k if k < at else k + 1) for k in range(len(self.extents))]
        others[at] = axis(at) - 1
        nothing = identity(body, combiner, self.accumulator, self.accumulator)
        before = body.read(sums, others, (), mask, nothing)
        # Where nothing is added -0.0 would become 0.0.
        combining = combining_op(combiner, self.accumulator)
        combined = body.add(combining, [before, value], self.accumulator)
        return body.select(mask, combined, value)

    def replace(self, scanned: loop.ComputeOp) -> None:
        """Have all read the scanned parts in the place of the scan."""
        (old,), (new,) = self.op.results, scanned.results
        if self.is_even:
            whole = self.builder.value(layout.ViewOp, new, offset=0, result_types=old.type)
        else:
            indices = list(axes_of(len(self.extents)))
            place = indices[self.at]
            indices[self.at : self.at + 1] = [floordiv(place, self.size), mod(place, self.size)]
            body = Body()
            body.location = self.op.location
            body.finish([body.read(new, indices)])
            axes = self.axes(self.extents, {})
            copy = make_compute(self.builder, axes, [loop.MAP], [old.type], body, (), self.op)
            whole = copy.results[0]
        old.replace_all_uses_with(whole)
        self.op.erase()


__all__ = ["SplitScans"]
