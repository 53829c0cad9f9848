"""The pass `split-extremes`."""

from __future__ import annotations

import itertools

import attrs

from irc.analysis.contraction import tiled
from irc.analysis.loop import array_bytes, estimate, points
from irc.dialects import func, loop, sym
from irc.ir.attributes import Type
from irc.ir.builder import Builder
from irc.ir.core import Operation, Value
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.symbols import Dim, dim_product, symbol
from irc.ir.types import TensorType, contiguous_strides, index
from irc.passes.common.bodies import (
    Body,
    Transplant,
    axes_of,
    axis,
    axis_name,
    make_axes,
    make_compute,
)
from irc.passes.loop.group_computes import GroupComputes, group_with_readers
from irc.passes.loop.identities import identity
from irc.passes.loop.localize import localize_block
from irc.passes.loop.row_groups import type_of
from irc.passes.loop.split_reductions import SPLITTABLE, lies_across, ungrouped
from irc.target import Target, target_of
from irc.target.costs import Cost

_EXTREMES = {"argmax": "max", "argmin": "min"}


@register_pass
class SplitExtremes(Pass):
    """Makes parts of long rows that are asked where their extreme is, as the next token is found.

    On a GPU a program instance goes over a row, so that few long rows leave most of it idle. Each
    part gives its extreme and where in it that is; of all parts the first with the greatest (or
    least) extreme is taken, with the place that it has. NaN is beyond all numbers, and the first
    of several that are alike is taken, as without parts. What else the compute reduces is split
    along. Parts are of the outermost axis that is reduced, of at least `part_points`, and as many
    as keep the GPU busy; they are made where a row takes its program instance longer than one
    launch more. Remarks: how a compute is split, with both times, or why it isn't.

    Before:
        %y = loop.compute par(i0: 2) red(i1: 100000) -> reduce(argmax, f32) {
          ... loop.read %x[i0, i1] }
    After:
        %p, %m = loop.compute par(i0: 2, i1: 16) red(i2: 6250) -> reduce(argmax, f32),
          reduce(max, f32) { ... loop.read %x[i0, i1*6250 + i2] }
        %y = loop.group (i0: 2) {
          %k = loop.compute par(i0: 2) red(i1: 16) -> reduce(argmax, f32) { ... %m[i0, i1] }
          %z = loop.compute par(i0: 2) -> map { ... %p[i0, %k] + %k * 6250 } }
    """

    name = "split-extremes"
    summary = "make parts of long rows that are asked where their extreme is, on a GPU"
    anchor = "func.func"
    asks_target = True
    part_points: int = 1024

    def run(self, op: func.FuncOp, context: PassContext) -> None:  # type: ignore[override]
        target = target_of(context)
        if not target.is_gpu:
            return
        parts: list[Operation] = []
        for each in list(op.block.ops):
            members = _asked(each)
            for compute in members:
                split = _split(compute, target, self.part_points)
                if isinstance(split, str):
                    context.remark(f"is not split: {split}", compute)
                elif context.spend("split-extremes", compute):
                    text = f"{split.parts} parts of {split.size} points of {axis_name(split.at)}"
                    context.remark(f"is split into {text}: {split.times(target)}", compute)
                    context.count("split")
                    if isinstance(each, loop.GroupOp) and each.parent is not None:
                        ungrouped(each)
                    parts += split.write()
        if parts and group_with_readers(op.block, parts, GroupComputes(), context):
            localize_block(op.block)


def _asked(op: Operation) -> list[loop.ComputeOp]:
    """The computes that are asked for places, alone or in a group of what has a value a row."""
    members = [op] if isinstance(op, loop.ComputeOp) else []
    if isinstance(op, loop.GroupOp):
        inner = [m for m in op.block.ops if not isinstance(m, loop.YieldOp)]
        members = [m for m in inner if isinstance(m, loop.ComputeOp)]
        if len(members) < len(inner) or any(map(op.is_once, members)):
            return []
        shared = len(op.axis_list)
        maps = (m for m in members if m.axis_list[shared:] and not _asks(m))
        if any(a.extent != 1 for m in maps for a in m.axis_list[shared:]):
            return []
    return [m for m in members if _asks(m)]


def _asks(op: loop.ComputeOp) -> bool:
    return any(output.combiner in _EXTREMES for output in op.output_list)


def _split(op: loop.ComputeOp, target: Target, least: int) -> _ExtremeSplit | str:
    """How a compute is split; a text says why it isn't."""
    kinds = {o.kind for o in op.output_list}
    combiners = {o.combiner for o in op.output_list}
    if kinds != {"reduce"} or combiners - SPLITTABLE - _EXTREMES.keys():
        return "parts of what is computed beside it don't combine"
    if op.schedule is not None or tiled(op, target) is not None or sym.range_entry(op):
        return "it has a schedule, or a range of sizes"
    axes = op.axis_list
    if any(a.name != axis_name(k) for k, a in enumerate(axes)):
        return "its axes have names of their own"
    if not all(isinstance(a.extent, int) and a.extent for a in axes):
        return "sizes aren't known"
    if lies_across(op):
        return "its results lie side by side in what it reads"
    rows = points(a.extent for a in axes if a.kind == "par")
    if not target.idles(rows):
        return f"{rows} rows keep a GPU busy"
    at = next(k for k, a in enumerate(axes) if a.kind == "red" and a.extent != 1)
    extent, total = estimate(axes[at].extent), points(a.extent for a in axes if a.kind == "red")
    parts = min(-(-target.gpu.parallel // rows), total // least, extent)
    if parts < target.gpu.least_parts:
        return f"{total} points are no {target.gpu.least_parts} parts of {least}"
    even = [n for n in range(parts // 2, 2 * parts + 1) if n > 1 and extent % n == 0]
    parts = min(even, key=lambda n: abs(n - parts), default=parts)
    split = _ExtremeSplit(op, at, parts, -(-extent // parts))
    return split if split.pays(target) else split.times(target)


@attrs.frozen(eq=False)
class _ExtremeSplit:
    """A compute whose axis `at` becomes parts of `size` points, the last perhaps shorter."""

    op: loop.ComputeOp
    at: int
    parts: int
    size: int

    def femtoseconds(self, target: Target) -> tuple[int, int]:
        """What it takes with a program instance for each row, and in parts, in femtoseconds."""
        axes, gpu = self.op.axis_list, target.gpu
        row = points(a.extent for a in axes if a.kind == "red")
        waves = -(-points(a.extent for a in axes if a.kind == "par") // gpu.processors)
        far = sum(array_bytes(source.type) for source in {r.source for r in self.op.reads})
        whole = waves * row * 10**9 // gpu.instance_points
        return whole, target.time(Cost(far=far, launches=1))

    def pays(self, target: Target) -> bool:
        """Whether parts take less time."""
        whole, parts = self.femtoseconds(target)
        return parts < whole

    def times(self, target: Target) -> str:
        """Both times, for people."""
        whole, parts = self.femtoseconds(target)
        return f"{whole / 1e9:.3g} us -> {parts / 1e9:.3g} us"

    @property
    def results(self) -> list[Dim]:
        """The sizes of the axes that results have."""
        return [a.extent for a in self.op.axis_list if a.kind == "par"]

    def write(self) -> list[Operation]:
        """Put the parts and what combines them in its place; gives what combines them."""
        builder = Builder.before(self.op)
        partial, extremes = self.partial(builder)
        values = self.combined(builder, partial, extremes)
        for old, new in zip(self.op.results, values, strict=True):
            new.name_hint = old.name_hint
            old.replace_all_uses_with(new)
        self.op.erase()
        return list({op: None for value in values if (op := value.defining_op) is not None})

    def partial(self, builder: Builder) -> tuple[list[Value], dict[int, Value]]:
        """What parts give of each output, and by its number the extreme that is asked for."""
        op, at = self.op, self.at
        sizes: list[Dim] = [a.extent for a in op.axis_list]
        sizes[at : at + 1] = [self.parts, self.size]
        names = {axis_name(k): n for k, n in enumerate(sizes)}
        whole = axis(at) * self.size + axis(at + 1)
        mapping = {a.name: axis(k if k < at else k + 1) for k, a in enumerate(op.axis_list)}
        mapping[axis_name(at)] = whole
        body, mask = Body(), None
        body.location = op.location
        extent = op.axis_list[at].extent
        if self.parts * self.size != extent:
            mask = body.compare("slt", body.index(whole), body.index(extent))
        copier = Transplant(body, mapping, names, (), mask)
        copier.copy_body(op)
        red = [k if k < at else k + 1 for k, a in enumerate(op.axis_list) if a.kind == "red"]
        shape = tuple(n for k, n in enumerate(sizes) if k not in red)
        values, outputs, types = list[Value](), list[loop.ResultAttr](), list[Type]()

        def add(number: int, output: loop.ResultAttr, element: Type) -> None:
            value = op.yield_op.values[number]
            value = copier.values.get(value, value)
            if mask is not None:
                combiner = _EXTREMES.get(output.combiner, output.combiner)
                nothing = identity(body, combiner, value.type, output.accumulator)
                value = body.select(mask, value, nothing)
            values.append(value)
            outputs.append(output)
            device = type_of(op.results[number]).device
            types.append(TensorType(shape, element, contiguous_strides(shape), device))

        places: dict[int, int] = {}
        for number, output in enumerate(op.output_list):
            assert output.accumulator is not None
            told = output.combiner in _EXTREMES
            element = type_of(op.results[number]).element if told else output.accumulator
            add(number, output, element)
        for number, output in enumerate(op.output_list):
            if output.combiner in _EXTREMES:
                assert output.accumulator is not None
                places[number] = len(values)
                combiner = _EXTREMES[output.combiner]
                extreme = loop.ResultAttr("reduce", combiner, output.accumulator, None)
                add(number, extreme, output.accumulator)
        body.finish(values)
        parts = make_compute(builder, make_axes(sizes, red), outputs, types, body, (), op)
        results: list[Value] = list(parts.results)
        return results, {number: results[place] for number, place in places.items()}

    def combined(
        self, builder: Builder, partial: list[Value], extremes: dict[int, Value]
    ) -> list[Value]:
        """What all parts give together, of each output."""
        op, count = self.op, len(self.results)
        body = Body()
        body.location = op.location
        place = self.place(axis(count))
        sources = [extremes.get(k, partial[k]) for k in range(len(op.output_list))]
        body.finish([body.read(source, place) for source in sources])
        axes = make_axes([*self.results, self.parts], [count])
        types = [result.type for result in op.results]
        whole = make_compute(builder, axes, op.output_list, types, body, (), op)
        values: list[Value] = list(whole.results)
        for number in extremes:
            values[number] = self.place_of(builder, values[number], partial[number])
        return values

    def place(self, part: Dim) -> list[Dim]:
        """Where in what parts give a part of a row lies; results come first elsewhere."""
        before = sum(a.kind == "par" for a in self.op.axis_list[: self.at])
        indices: list[Dim] = list(axes_of(len(self.results)))
        return [*indices[:before], part, *indices[before:]]

    def place_of(self, builder: Builder, part: Value, places: Value) -> Value:
        """Where in a row an extreme is, by the part that has it and where in that it is."""
        body, type_ = Body(), type_of(part)
        body.location = self.op.location
        number = body.read(part, axes_of(len(self.results)))
        position = body.op("arith.index_cast", number, type=index)
        inside = body.read(places, self.place(symbol(loop.placeholder(0))), [position])
        inner = [a.extent for k, a in enumerate(self.op.axis_list) if k > self.at]
        red = [a.kind == "red" for a in self.op.axis_list[self.at + 1 :]]
        each = self.size * dim_product(itertools.compress(inner, red))
        before = body.op("arith.muli", number, body.constant(each, number.type))
        body.finish([body.op("arith.addi", before, inside)])
        axes = make_axes(self.results)
        (result,) = make_compute(builder, axes, [loop.MAP], [type_], body, (), self.op).results
        return result


__all__ = ["SplitExtremes"]
