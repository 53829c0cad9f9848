"""The pass `cut-rows`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import attrs

from irc.analysis.contraction import Contraction, contraction_of
from irc.analysis.loop import points
from irc.dialects import layout, loop
from irc.dialects.kernel.dots import Rows, split_rows_of
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import Operation, Region, Value
from irc.ir.equality import structurally_equal
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.symbols import Dim, dim_product, dim_sum, free_symbols, simplify, symbol
from irc.ir.types import TensorType, contiguous_strides, element_bytes, i1
from irc.passes.common.bodies import (
    Body,
    Transplant,
    axis,
    clean_block,
    extents_of,
    make_axes,
    make_compute,
)
from irc.passes.kernel.cpu.contraction.split import cut
from irc.target import Target, target_of


@register_pass
class CutRows(Pass):
    """Cuts the rows that registers of whole tiles multiply in parts (`products = "bf16x6"`) once,
    in a compute of its own.

    Without it every kernel cuts the rows of its products for itself. A compute of its own is fused
    with what makes the rows, and serves all products that multiply them. That is done where several
    do, and meet the rows with many columns (`cut_columns`): one product alone is faster with rows
    that its kernel packs, too. Three arrays of bf16 whose sum the rows are lie in one, those of a
    row side by side. What symbolic sizes give a schedule for each range of (`variants`) is left
    alone, as are rows whose terms don't lie side by side, and windows, each element of which is in
    several rows.

    Before:
        %y = loop.compute par(m, n) red(k) -> reduce(sum, f32) schedule #loop.schedule<cpu,
            products = "bf16x6"> { %a = loop.read %x[m, k] ... arith.mulf %a, %b ... }
        %z = ... the same of %x and another array
    After:
        %p0, %p1, %p2 = loop.compute par(m, k) -> map, map, map { %a = loop.read %x[m, k] ... }
        %p = layout.join %p0, %p1, %p2 {dim = 1 : i64} : ... -> tensor<[m, 3, k] x bf16, ...>
        %y = loop.compute par(m, n) red(k) -> reduce(sum, f32) schedule #loop.schedule<cpu,
            products = "bf16x6"> { %a0 = loop.read %p[m, 0, k] ... %a = the sum of three ... }
        %z = ...
    """

    name = "cut-rows"
    summary = "cut rows into parts for registers of whole tiles once for all products"
    anchor = "func.func"
    preserves = "real"
    asks_target = True

    def run(self, op: Operation, context: PassContext) -> None:
        target = target_of(context)
        cuts = list[_SharedCut]()
        for compute in op.regions[0].blocks[0].ops:
            rows = _rows_of(compute, target) if isinstance(compute, loop.ComputeOp) else None
            if rows is None:
                continue
            same = next((each for each in cuts if each.readers[0].are_those_of(rows)), None)
            if same is None:
                cuts.append(_SharedCut(rows))
            else:
                same.readers.append(rows)
        for each in cuts:
            first = each.readers[0].compute
            if not each.pays(target):
                reason = "one product multiplies them, or few columns meet them"
                context.remark(f"its kernel cuts its rows: {reason}", first)
            elif context.spend("cut-rows", first):
                each.write(target)
                context.count("rows cut", 1)
                context.count("products of cut rows", len(each.readers))


@attrs.define(eq=False)
class _RowsToCut:
    """The rows of a contraction that are to be cut.

    dot: how registers multiply them. source: the array with an element for each row and term;
    sizes: its own; indices: where the contraction reads it. axes: those of the contraction in terms
    of the array's, i0, i1, ...
    """

    contraction: Contraction
    dot: Rows
    source: Value
    sizes: tuple[int, ...]
    indices: tuple[Dim, ...]
    axes: Mapping[str, Dim]

    @property
    def compute(self) -> loop.ComputeOp:
        """The contraction."""
        return self.contraction.compute

    def values(self) -> tuple[Body, Value]:
        """The numbers, one for each element of the array, in a body over the array's axes."""
        body = Body()
        copier = Transplant(body, self.axes, {f"i{k}": n for k, n in enumerate(self.sizes)})
        for op in self.contraction.left.ops:
            copier.copy(op)
        return body, copier.values[self.contraction.left.value]

    def are_those_of(self, other: _RowsToCut) -> bool:
        """Whether two contractions multiply the same rows."""
        if self.source is not other.source or self.sizes != other.sizes:
            return False
        samples = [_compute_of(rows) for rows in (self, other)]
        equal = structurally_equal(*samples)
        for sample in samples:
            sample.drop_all_references()
        return equal


def _compute_of(rows: _RowsToCut) -> loop.ComputeOp:
    """The numbers as a compute that stands nowhere."""
    body, value = rows.values()
    body.finish([value])
    entries = {"axes": make_axes(rows.sizes), "outputs": A.ArrayAttr([loop.MAP])}
    type_ = TensorType(rows.sizes, value.type, contiguous_strides(rows.sizes))
    return loop.ComputeOp((), (type_,), entries, (Region([body.block]),))


def _rows_of(compute: loop.ComputeOp, target: Target) -> _RowsToCut | None:
    """The rows of a product that may be cut apart; None for any other compute."""
    if target.is_gpu or not _is_split(compute):
        return None
    contraction = contraction_of(compute)
    if isinstance(contraction, str) or len(contraction.depth) != 1:
        return None
    left, right = contraction.left, contraction.right
    dot = split_rows_of(left.value.type)
    if dot is None or left.parts:
        return None
    if right.plain is None and not right.parts:
        return None  # registers don't take it then
    par = [a for a in compute.axis_list if a.kind == "par"]
    if not contraction.columns or contraction.columns[-1] is not par[-1]:
        return None  # the other factor has the rows
    return _in_array(contraction, dot)


def _is_split(compute: loop.ComputeOp) -> bool:
    """Whether it is multiplied in parts, and nothing else is said of its rows."""
    if compute.schedule is None:
        return False
    entries = compute.schedule.entries.as_dict()
    asked = entries.get("products") == A.StringAttr("bf16x6")
    return asked and not {"variants", "pack_left", "row_axis"} & entries.keys()


def _in_array(contraction: Contraction, dot: Rows) -> _RowsToCut | None:
    """The rows as elements of an array that is read for them, terms innermost, and with the most
    dimensions of such; None where there is none with an element for each."""
    extents, (depth,) = extents_of(contraction.compute), contraction.depth
    count = dim_product([extents[name] for name in contraction.left.axes])
    for read in sorted(contraction.left.reads, key=lambda read: -len(read.indices)):
        type_ = read.source.type
        if read.mask is not None or read.positions or not isinstance(type_, TensorType):
            continue
        sizes = tuple(n for n in type_.shape if isinstance(n, int))
        if len(sizes) != type_.rank or dim_product(sizes) != count:
            continue
        if sizes[-1] != depth.extent or read.indices[-1] != symbol(depth.name):
            continue
        axes = _axes_by_indices(read.indices, sizes, extents)
        if axes is not None:
            return _RowsToCut(contraction, dot, read.source, sizes, tuple(read.indices), axes)
    return None


def _axes_by_indices(
    indices: Sequence[Dim], sizes: Sequence[int], extents: Mapping[str, Dim]
) -> dict[str, Dim] | None:
    """The axes that indices mention in terms of the array's own, i0, i1, ..., where dimensions that
    follow each other are counted by one axis each; None for other indices."""
    axes, first = dict[str, Dim](), 0
    while first < len(indices):
        names = free_symbols(indices[first])
        if indices[first] == 0 and sizes[first] == 1:
            first += 1
            continue
        last = first + 1
        while last < len(indices) and free_symbols(indices[last]) == names:
            last += 1
        steps = contiguous_strides(sizes[first:last])
        place = dim_sum([i * s for i, s in zip(indices[first:last], steps, strict=True)])
        name = next(iter(names), "")
        if len(names) != 1 or name in axes or simplify(place, {}, extents) != symbol(name):
            return None
        if extents[name] != dim_product(sizes[first:last]):
            return None
        axes[name] = dim_sum([axis(first + k) * s for k, s in enumerate(steps)])
        first = last
    return axes


class _SharedCut:
    """Rows that are cut once, and the contractions that multiply them."""

    def __init__(self, rows: _RowsToCut) -> None:
        self.readers = [rows]

    def pays(self, target: Target) -> bool:
        """Whether cutting them apart is faster than in each kernel: with few columns what goes
        through memory takes longer than what is cut twice."""
        every = (points(a.extent for a in r.contraction.columns) for r in self.readers)
        return len(self.readers) > 1 and sum(every) >= target.features.cut_columns

    def write(self, target: Target) -> None:
        """Write the compute that cuts them before the first contraction, and have all read what
        that gives."""
        rows = self.readers[0]
        source, sizes, dot = rows.source.type, rows.sizes, rows.dot
        assert isinstance(source, TensorType)
        *outer, depth = sizes
        line = dot.parts * depth
        if line * element_bytes(dot.element) % (target.features.aliasing_bytes // 4) == 0:
            line += dot.tile[2]  # else rows fall on four sets of the cache, or fewer
        steps = [n * line for n in contiguous_strides(outer)]
        piece = TensorType(sizes, dot.element, (*steps, 1), source.device)
        whole = TensorType((*outer, dot.parts, depth), dot.element, (*steps, depth, 1),
                           source.device)  # fmt: skip
        builder, (body, value) = Builder.before(rows.compute), rows.values()
        body.finish(_parts_of(body, value))
        pieces = make_compute(
            builder, make_axes(sizes), [loop.MAP] * dot.parts, [piece] * dot.parts, body,
            stands_for=rows.compute,
        ).results  # fmt: skip
        entries = {"dim": A.IntegerAttr(len(sizes) - 1)}
        join = layout.JoinOp(pieces, (whole,), entries, (), rows.compute.location)
        builder.insert(join)
        for reader in self.readers:
            _read_parts(reader, join.array)


def _parts_of(body: Body, value: Value) -> list[Value]:
    """The parts of a number, whose sum it is, also of an infinity, which has no rest."""
    first, second, third = cut(body.add, value, lambda element: element)
    size = body.op("math.absf", value)
    infinite = body.op("arith.cmpf", size, body.constant(math.inf, value.type), type=i1,
                       predicate="oeq")  # fmt: skip
    zero = body.zero(second.type)
    return [first, body.select(infinite, zero, second), body.select(infinite, zero, third)]


def _read_parts(rows: _RowsToCut, parts: Value) -> None:
    """Have a contraction multiply the sum of the parts of its rows."""
    contraction, (*before, last) = rows.contraction, rows.indices
    body = Body(rows.compute.block, contraction.product)
    body.location = contraction.product.location
    total: Value | None = None
    for part in range(rows.dot.parts):
        wide = body.op("arith.extf", body.read(parts, [*before, part, last]),
                       type=contraction.accumulator)  # fmt: skip
        total = wide if total is None else body.op("arith.addf", total, wide)
    assert total is not None
    place = contraction.product.operands.index(contraction.left.value)
    contraction.product.set_operand(place, total)
    clean_block(rows.compute.block)


__all__ = ["CutRows"]
