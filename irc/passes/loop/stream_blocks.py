"""Streams that go over listed blocks alone.

A block mask says for each block of rows which blocks of the stream are looked at: tables of
booleans, which computes make of lists and of how many of each list count. Where all scores outside
of these blocks are -inf, the stream is these blocks, one after the other, by the lists:

    x = select(table[m // 128, n // 128] and mask, s, -inf)     over n
    x = select(j < counts[m // 128] and mask, s, -inf)          over j, t;  n = lists[m // 128, j] * 128 + t

Rows are then an axis of blocks and one of rows in a block, so that each product stays a
contraction: what the stream reads depends on the block of rows, not on the row.
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from irc.dialects import arith, graph, layout, loop
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import Block, Operation, Region, Value
from irc.ir.symbols import (
    Dim,
    FloorQuotient,
    ceildiv,
    free_symbols,
    known_divisible,
    substitute,
    symbol,
)
from irc.ir.types import TensorType, contiguous_strides, i32, index
from irc.passes.common.bodies import (
    SEGMENTS,
    Body,
    Transplant,
    axes_of,
    axis,
    axis_name,
    make_compute,
)
from irc.passes.kernel.gpu.plan import GpuMember, GpuPlan
from irc.passes.kernel.gpu.stream_space import StreamSpace, made_in, unchanged

CASTS = (arith.IndexCastOp, arith.TruncIOp, arith.ExtSIOp)


@attrs.frozen
class BlockTable:
    """A table of listed blocks: the lists and how many of each count, where the batch is looked up
    in both, and the rows and columns of a block. turned: its lists are of the stream's blocks."""

    source: Value
    counts: Value
    lists: Value
    batch: tuple[Dim, ...]
    rows: int
    columns: int
    turned: bool = False


def stream_blocks(
    group: loop.GroupOp, plan: GpuPlan, space: StreamSpace
) -> loop.GroupOp | str:
    """A group of streamed products that goes over listed blocks, if it has any, itself if not; or
    why it can't."""
    tables = _tables(plan, space)
    if not tables:
        return group
    first = next(iter(tables.values()))
    kinds = {(t.rows, t.columns, t.batch, t.turned) for t in tables.values()}
    if len(kinds) > 1 or len({t.source for t in tables.values()}) > 2 or len(space.stream) > 1:
        return "its blocks are of several sizes"
    if not _are_outside(plan, space, tables):
        return "scores outside of the blocks aren't known to be -inf"
    whole = known_divisible(group.axis_list[-1].extent, _rows_of(group, first))
    if not whole and not _are_lone_maps(plan):
        return "what it stores of rows that are no whole blocks is more than maps"
    return _Blocks(group, plan, space, tables).run()


def _rows_of(group: loop.GroupOp, table: BlockTable) -> int:
    """How many rows the blocks of a group have: those that there are, if these are fewer."""
    rows = group.axis_list[-1].extent
    return min(rows, table.rows) if isinstance(rows, int) and rows else table.rows


def _are_lone_maps(plan: GpuPlan) -> bool:
    """Whether all that is stored are maps that nothing else reads, each the only result of a
    member."""
    for _, value in plan.outputs:
        origin = plan.origin(value)
        if origin is None or len(origin.member.compute.results) > 1 or origin.attr.kind != "map":
            return False
        if any(isinstance(user, loop.ReadOp) for user in value.users):
            return False
    return True


def _tables(plan: GpuPlan, space: StreamSpace) -> dict[loop.ReadOp, BlockTable]:
    """What a stream's members read of tables of listed blocks, at the blocks of their points."""
    tables: dict[loop.ReadOp, BlockTable] = {}
    row = plan.flat.axes[-1]
    for member in plan.members:
        stream = [axis_.name for axis_ in space.axes_of(member)]
        for read in member.compute.reads if len(stream) == 1 else ():
            table = _table(read, row, stream[0])
            if table is not None:
                tables[read] = table
    return tables


def _table(read: loop.ReadOp, rows: loop.AxisAttr, column: str) -> BlockTable | None:
    """The table of listed blocks that is read at the block of a row and a column."""
    if len(read.indices) < 2 or read.mask is not None or read.positions:
        return None
    *batch, high, wide = read.indices
    row, few = rows.name, isinstance(rows.extent, int) and rows.extent > 0
    turned = _block_of(wide, column) is None
    if turned:
        high, wide = wide, high
    # Rows that are fewer than a block's are of the first one.
    whole = rows.extent if few and high == 0 else _block_of(high, row)
    sizes = [whole, _block_of(wide, column)]
    maker = read.source.defining_op
    if None in sizes or not isinstance(maker, loop.ComputeOp):
        return None
    lists = _lists_of(maker)
    if lists is None or any({row, column} & free_symbols(dim) for dim in batch):
        return None
    return BlockTable(read.source, *lists, tuple(batch), sizes[0], sizes[1], turned)  # type: ignore[arg-type]


def _block_of(dim: Dim, name: str) -> int | None:
    """The size of the blocks of an axis by whose number an index is."""
    if not isinstance(dim, FloorQuotient) or dim.arguments[0] != symbol(name):
        return None
    size = dim.arguments[1]
    return size if isinstance(size, int) and size > 1 else None


def _lists_of(maker: loop.ComputeOp) -> tuple[Value, Value] | None:
    """The counts and lists of a table: whether any of a list's first places is a column."""
    outputs = maker.output_list
    if len(outputs) != 1 or (outputs[0].kind, outputs[0].combiner) != ("reduce", "any"):
        return None
    axes: list[Dim] = [_place(a) for a in maker.axis_list if a.kind != "red"]
    red = [_place(a) for a in maker.axis_list if a.kind == "red"]
    if len(red) != 1 or len(axes) < 2:
        return None
    *batch, column = axes
    both = maker.yield_op.values[0].defining_op
    if not isinstance(both, arith.AndIOp):
        return None
    for equal, counted in (both.operands, both.operands[::-1]):
        lists = _compared(equal, "eq", [*batch, *red], column, read_first=True)
        counts = _compared(counted, "slt", batch, red[0], read_first=False)
        if lists is not None and counts is not None:
            return counts, lists
    return None


def _place(axis_: loop.AxisAttr) -> Dim:
    """The places of an axis, as indices have them."""
    return 0 if axis_.extent == 1 else symbol(axis_.name)


def _compared(
    value: Value, predicate: str, indices: Sequence[Dim], place: Dim, read_first: bool
) -> Value | None:
    """The array whose element at indices is compared with a place."""
    op = value.defining_op
    if not isinstance(op, arith.CmpIOp) or op.predicate != predicate:
        return None
    read, number = (_uncast(operand) for operand in (op.operands if read_first else op.operands[::-1]))  # noqa: E501  # fmt: skip
    if not isinstance(read, loop.ReadOp) or not isinstance(number, loop.IndexOp):
        return None
    plain = read.mask is None and not read.positions and not number.positions
    same = list(read.indices) == list(indices) and number.expression == place
    return read.source if plain and same else None


def _uncast(value: Value) -> Any:
    maker = value.defining_op
    while isinstance(maker, CASTS):
        maker = maker.operands[0].defining_op
    return maker


def _are_outside(plan: GpuPlan, space: StreamSpace, tables: dict[loop.ReadOp, BlockTable]) -> bool:
    """Whether nothing outside of the tables' blocks is in anything that is combined."""
    return all(
        unchanged(plan, each, lambda member, condition: _asks(plan, member, condition, tables))
        for each in space.combined
    )


def _asks(
    plan: GpuPlan, member: GpuMember, condition: Value, tables: dict[loop.ReadOp, BlockTable]
) -> bool | None:
    """True for a condition that holds at listed blocks alone, None for another one."""
    member, op = made_in(plan, member, condition)
    if op in tables:
        return True
    if isinstance(op, arith.AndIOp | arith.OrIOp):
        either = any if isinstance(op, arith.AndIOp) else all
        return either(_asks(plan, member, each, tables) for each in op.operands) or None
    return None


class _Blocks:
    """Makes one group of listed blocks."""

    def __init__(
        self, group: loop.GroupOp, plan: GpuPlan, space: StreamSpace,
        tables: dict[loop.ReadOp, BlockTable],
    ) -> None:  # fmt: skip
        self.group, self.plan, self.space, self.tables = group, plan, space, tables
        self.kinds = list({table.source: table for table in self._ordered()}.values())
        self.rows, self.columns = _rows_of(group, self.kinds[0]), self.kinds[0].columns
        self.turned = self.kinds[0].turned
        table: Any = self.kinds[0].source.type
        self.count = table.shape[-2 if self.turned else -1]
        #: How many rows, and columns of the stream, there are, where they are no whole blocks.
        row, column = group.axis_list[-1].extent, space.stream[0]
        self.row_end = None if known_divisible(row, self.rows) else row
        self.column_end = None if known_divisible(column, self.columns) else column
        self.counts = [each.counts for each in self.kinds]
        #: How many axes the rows have, which are blocks and rows of a block behind.
        self.shared = len(group.axis_list) + 1
        self.batch = tuple(
            substitute(dim, dict(zip(group.local_symbols(), axes_of(self.shared - 1), strict=True)))
            for dim in self.kinds[0].batch
        )
        self.new: dict[Value, Value] = {}

    def _ordered(self) -> list[BlockTable]:
        """The tables, those first whose blocks have no other condition."""
        alone = [read for read in self.tables
                 if all(isinstance(u, arith.OrIOp) for u in read.results[0].users)]  # fmt: skip
        return [self.tables[r] for r in sorted(self.tables, key=lambda r: r not in alone)]

    def run(self) -> loop.GroupOp:
        group, outer, inside = self.group, Builder.before(self.group), Block()
        self.places = self._turned_places(outer) if self.turned else self._places(outer)
        builder = Builder.at_end(inside)
        for member in self.plan.members:
            self._member(builder, member)
        yielded = [self.new[value] for value in group.yield_op.values]
        segments = {SEGMENTS: A.DenseIntsAttr((len(yielded), 0, 0))}
        inside.append(loop.YieldOp(yielded, (), segments, (), group.location))
        axes = self._rows()
        entries = {**group.attributes, "axes": A.ArrayAttr(axes)}
        types = [value.type for value in yielded]
        blocked = loop.GroupOp((), types, entries, (Region([inside]),), group.location)
        outer.insert(blocked)
        for old, result in zip(group.results, blocked.results, strict=True):
            view: Value = result
            if result.type is not old.type:
                start = A.DimAttr(0)
                view = outer.value(layout.ViewOp, result, offset=start, result_types=old.type)
            view.name_hint = old.name_hint
            old.replace_all_uses_with(view)
        group.erase()
        return blocked

    def _rows(self) -> list[loop.AxisAttr]:
        *batch, row = self.group.axis_list
        extents = [a.extent for a in batch] + [ceildiv(row.extent, self.rows), self.rows]
        return [loop.AxisAttr(axis_name(k), "par", size) for k, size in enumerate(extents)]

    def _places(self, builder: Builder) -> Value:
        """The numbers of the blocks that are looked at, one list after the other; 0 behind them."""
        body, kinds, (first, *others) = Body(), self.kinds, self.kinds
        lists: Any = first.lists.type
        *batch, high, place = axes_of(lists.rank)
        number = body.op("arith.index_cast", body.index(place), type=i32)
        zero = body.constant(0, i32)
        count = self._number(body, first.counts, [*batch, high])
        value = self._number(body, first.lists, [*batch, high, place])
        if others:
            (second,) = others
            behind = body.op("arith.subi", number, count)
            inside = body.compare("sge", behind, zero)
            position = body.op("arith.index_cast", behind, type=index)
            named = symbol(loop.placeholder(0))
            rest = body.read(second.lists, [*batch, high, named], [position], inside,
                             body.constant(0, second.lists.type.element))  # type: ignore[attr-defined]  # fmt: skip
            value = body.select(inside, self._as_i32(body, rest), value)
            count = body.op("arith.addi", count, self._number(body, second.counts, [*batch, high]))
        body.finish([body.select(body.compare("slt", number, count), value, zero)])
        type_ = TensorType(lists.shape, i32, contiguous_strides(lists.shape), lists.device)
        axes = [loop.AxisAttr(axis_name(k), "par", n) for k, n in enumerate(lists.shape)]
        assert len(kinds) <= 2
        compute = make_compute(builder, A.ArrayAttr(axes), [loop.MAP], [type_], body)
        return compute.results[0]

    def _turned_places(self, builder: Builder) -> Value:
        """The same of lists of the stream's blocks, which are turned round: a block is in the list
        of a block of rows at the place that as many before it have."""
        type_: Any = self.kinds[0].source.type
        *batch, high, wide = type_.shape
        device, rank = type_.device, len(batch)
        sources = [each.source for each in self.kinds]

        def array(sizes: list[Dim], red: Dim, make: Any) -> Value:
            """Sums of numbers over one more axis."""
            body = Body()
            names = axes_of(len(sizes) + 1)
            body.finish([make(body, *names[rank:])])
            axes = [loop.AxisAttr(axis_name(k), "par", n) for k, n in enumerate(sizes)]
            axes.append(loop.AxisAttr(axis_name(len(sizes)), "red", red))
            result = TensorType(tuple(sizes), i32, contiguous_strides(sizes), device)
            output = loop.ResultAttr("reduce", "sum", i32, None)
            return make_compute(builder, A.ArrayAttr(axes), [output], [result], body).results[0]

        def flag(body: Body, condition: Value) -> Value:
            return body.select(condition, body.constant(1, i32), body.constant(0, i32))

        def there(body: Body, k: int, block: Dim, row: Dim) -> Value:
            return body.read(sources[k], [*axes_of(rank), block, row])

        def number(body: Body, place: Dim) -> Value:
            return body.op("arith.index_cast", body.index(place), type=i32)

        def counted(k: int) -> Any:
            return lambda body, row, block: flag(body, there(body, k, block, row))

        def before(k: int) -> Any:
            def make(body: Body, block: Dim, row: Dim, other: Dim) -> Value:
                earlier = body.compare("slt", number(body, other), number(body, block))
                return flag(body, body.op("arith.andi", earlier, there(body, k, other, row)))
            return make

        kinds = range(len(sources))
        self.counts = [array([*batch, wide], high, counted(k)) for k in kinds]
        earlier = [array([*batch, high, wide], high, before(k)) for k in kinds]

        def listed(body: Body, row: Dim, turn: Dim, block: Dim) -> Value:
            total, shift = body.constant(0, i32), body.constant(0, i32)
            for k in kinds:
                place = body.read(earlier[k], [*axes_of(rank), block, row])
                place = body.op("arith.addi", place, shift)
                here = body.compare("eq", place, number(body, turn))
                here = body.op("arith.andi", here, there(body, k, block, row))
                own = body.select(here, number(body, block), body.constant(0, i32))
                total = body.op("arith.maxsi", total, own)
                count = body.read(self.counts[k], [*axes_of(rank), row])
                shift = body.op("arith.addi", shift, count)
            return total

        return array([*batch, wide, high], high, listed)

    def _last_block(self, body: Body) -> Value:
        """The number of the stream's last block."""
        last = ceildiv(self.space.stream[0], self.columns) - 1
        if isinstance(last, int):
            return body.constant(last, i32)
        return body.op("arith.index_cast", body.index(last), type=i32)

    def _number(self, body: Body, array: Value, indices: Sequence[Dim]) -> Value:
        return self._as_i32(body, body.read(array, indices))

    def _as_i32(self, body: Body, value: Value) -> Value:
        if value.type is i32:
            return value
        return body.op("arith.trunci", value, type=i32)

    def _member(self, builder: Builder, member: GpuMember) -> None:
        """A member over the new axes."""
        shared, compute = self.shared, member.compute
        stream = [axis_.name for axis_ in self.space.axes_of(member)]
        row = self.group.axis_list[-1].name
        mapping: dict[str, Dim] = {a.name: axis(k) for k, a in enumerate(self.group.axis_list)}
        mapping[row] = axis(shared - 2) * self.rows + axis(shared - 1)
        axes, split = self._rows(), dict[str, tuple[Dim, ...]]()
        split[row] = axis(shared - 2), axis(shared - 1)
        for own in compute.axis_list[shared - 1 :]:
            sizes = [self.count, self.columns] if own.name in stream else [own.extent]
            names = tuple(axis(len(axes) + k) for k in range(len(sizes)))
            axes += [loop.AxisAttr(axis_name(len(axes) + k), own.kind, size)
                     for k, size in enumerate(sizes)]  # fmt: skip
            split[own.name] = names
            mapping[own.name] = names[0]
        body, positions = Body(), list[Value]()
        body.location = compute.location
        turn: Dim = 0
        if stream:
            turn, within = split[stream[0]]
            mapping[stream[0]] = symbol(loop.placeholder(0)) * self.columns + within
            if self.column_end is not None or self._asks_place(compute, stream[0]):
                read = body.read(self.places, [*self.batch, axis(shared - 2), turn])
                # What is in bounds is known to be, whatever a list says.
                read = body.op("arith.maxsi", read, body.constant(0, i32))
                read = body.op("arith.minsi", read, self._last_block(body))
                positions.append(body.op("arith.index_cast", read, type=index))
        ends = {row: self.row_end} | dict.fromkeys(stream, self.column_end)
        inside = {
            name: body.compare("slt", body.index(mapping[name], positions), body.index(end))
            for name, end in ends.items() if end is not None
        }  # fmt: skip
        copier = Transplant(body, mapping, {a.name: a.extent for a in axes}, positions)
        for op in compute.block.ops:
            if op is compute.yield_op:
                continue
            copier.mask = None
            if isinstance(op, loop.ReadOp) and op in self.tables:
                copier.values[op.results[0]] = self._listed(body, self.tables[op], turn)
            elif isinstance(op, loop.ReadOp) and op.source in self.new:
                indices = [part for dim in op.indices for part in self._split(dim, split, mapping)]
                copier.values[op.results[0]] = body.read(self.new[op.source], indices)
            elif isinstance(op, loop.ReadOp) and inside:
                copier.values[op.results[0]] = self._read_inside(body, copier, op, inside)
            else:
                copier.copy(op)
                self._choose_inside(body, copier, op, member, inside, stream)
        new = self._finished(builder, compute, axes, body, copier, inside.get(row))
        if compute.schedule is not None:
            new.attributes["schedule"] = compute.schedule
        for old, result in zip(compute.results, new.results, strict=True):
            self.new[old] = result

    def _read_inside(
        self, body: Body, copier: Transplant, op: loop.ReadOp, inside: Mapping[str, Value]
    ) -> Value:
        """What is read, where its indices, or the data that they come of, are inside; else 0."""
        names = {name for dim in op.indices for name in free_symbols(dim)}
        mask = None if op.mask is None else copier.values[op.mask]
        for name, condition in inside.items():
            if name in names or op.positions:
                mask = body.both(condition, mask)
        other = None if op.other is None else copier.values[op.other]
        if mask is not None and other is None:
            other = body.zero(op.results[0].type)
        dims, positions = copier.expressions(op.indices, op.positions)
        return body.read(op.source, dims, positions, mask, other)

    def _choose_inside(
        self, body: Body, copier: Transplant, op: Operation, member: GpuMember,
        inside: Mapping[str, Value], stream: Sequence[str],
    ) -> None:  # fmt: skip
        """Let what is chosen at listed blocks alone be so inside of the stream alone, too."""
        condition = inside.get(stream[0]) if stream else None
        if condition is None or not isinstance(op, arith.SelectOp):
            return
        if _asks(self.plan, member, op.operands[0], self.tables):
            value, outside = (copier.values[each] for each in (op.results[0], op.operands[2]))
            copier.values[op.results[0]] = body.select(condition, value, outside)

    def _finished(
        self, builder: Builder, compute: loop.ComputeOp, axes: Sequence[loop.AxisAttr], body: Body,
        copier: Transplant, inside: Value | None,
    ) -> loop.ComputeOp:  # fmt: skip
        """The compute of a body. What is stored of rows that are no whole blocks is put where the
        rows are."""
        values = [copier.values.get(value, value) for value in compute.yield_op.values]
        (stored,) = compute.results[:1]
        if inside is None or stored not in self.group.yield_op.values:
            body.finish(values)
            count = len(compute.output_list)
            types = [self._type(compute, number, axes) for number in range(count)]
            return make_compute(
                builder, A.ArrayAttr(axes), compute.output_list, types, body, (), compute
            )
        body.finish(values, masks=[inside])
        place = [copier.mapping[a.name] for a in compute.axis_list]
        output = loop.ResultAttr("scatter", "set", None, A.DimsAttr(place))
        result = graph.Undefined((), (stored.type,), {}, (), compute.location)
        assert self.group.parent is not None
        self.group.parent.insert_before(result, self.group)
        return make_compute(
            builder, A.ArrayAttr(axes), [output], [stored.type], body, result.results, compute
        )

    def _asks_place(self, compute: loop.ComputeOp, name: str) -> bool:
        """Whether a body needs the number of a column in all of the stream."""
        for op in compute.block.ops:
            if isinstance(op, loop.ReadOp) and op not in self.tables and op.source not in self.new:
                if any(name in free_symbols(dim) for dim in op.indices):
                    return True
            if isinstance(op, loop.IndexOp) and name in free_symbols(op.expression):
                return True
        return False

    @staticmethod
    def _split(
        dim: Dim, split: dict[str, tuple[Dim, ...]], mapping: dict[str, Dim]
    ) -> tuple[Dim, ...]:
        """An index of a member's array, over the new axes."""
        for name, parts in split.items():
            if dim == symbol(name):
                return parts
        return (substitute(dim, mapping),)

    def _listed(self, body: Body, table: BlockTable, turn: Dim) -> Value:
        """Whether a turn is of a table's blocks."""
        place = [*self.batch, axis(self.shared - 2)]
        number = body.op("arith.index_cast", body.index(turn), type=i32)
        count = self._number(body, self.counts[0], place)
        if table.source is self.kinds[0].source:
            return body.compare("slt", number, count)
        total = body.op("arith.addi", count, self._number(body, self.counts[1], place))
        after = body.compare("sge", number, count)
        return body.op("arith.andi", after, body.compare("slt", number, total))

    def _type(
        self, compute: loop.ComputeOp, number: int, axes: Sequence[loop.AxisAttr]
    ) -> TensorType:
        """The type of an output over the new axes; what is stored lies as it did."""
        output = compute.output_list[number]
        (old,) = compute.results_of(number)
        kept = [a for a in axes if output.kind == "map" or a.kind == "par"]
        shape = [a.extent for a in kept]
        type_: Any = old.type
        strides = list(contiguous_strides(shape))
        if old in self.group.yield_op.values:
            place = self.shared - 2
            row = type_.strides[place]
            strides = [*type_.strides[:place], row * self.rows, row, *type_.strides[place + 1 :]]
        return TensorType(shape, type_.element, tuple(strides), type_.device)


__all__ = ["stream_blocks"]
