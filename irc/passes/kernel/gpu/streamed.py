"""Forming a gpu kernel of streamed products: rows that walk over a stream of columns once.

A program instance has a tile of rows, and walks over the stream in steps of `stream_n`: tiles of
scores are multiplied, what is made of them is computed in registers, and goes into sums over the
stream, by itself or multiplied with something else that is streamed. Sums of powers below a row's
maximum are those below the greatest element so far: where a greater one comes, they are multiplied
with the power of the gap. What follows is computed of the sums behind the loop.

Before:
    %y = loop.group (b: 4, m: 512) { %s = ... sum of q * k; %t = ... max of %s;
      %l = ... sum of exp(%s - %t); %o = ... sum of exp(%s - %t) * v; %y = ... %o / %l }
After:
    kernel.func @k(...) { ... kernel.for { kernel.dot ... kernel.reduce ... kernel.dot } ... }
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence

from irc.analysis.contraction import Contraction
from irc.analysis.streams import FEWEST, LONGEST
from irc.dialects import arith, kernel, loop
from irc.dialects import math as math_ops
from irc.dialects.kernel.dots import Dot
from irc.dialects.loop.schedule import STREAM_KEYS
from irc.ir import attributes as A
from irc.ir.core import Operation, Value
from irc.ir.diagnostics import InvalidIR
from irc.ir.symbols import (
    Dim,
    ceildiv,
    dim_product,
    free_symbols,
    known_positive,
    substitute,
    symbol,
)
from irc.ir.types import f32, i1
from irc.passes.kernel.gpu.combine import Reduction, combine, convert, identity, largest
from irc.passes.kernel.gpu.contraction_space import factor_of
from irc.passes.kernel.gpu.evaluate import Point, decomposed
from irc.passes.kernel.gpu.factors import factor_tile, multiplied
from irc.passes.kernel.gpu.frame import KernelFrame
from irc.passes.kernel.gpu.plan import GpuMember, Origin, offset_of
from irc.passes.kernel.gpu.rough_powers import rough_powers
from irc.passes.kernel.gpu.rough_scores import differences, rough_scores
from irc.passes.kernel.gpu.scaled_powers import Below
from irc.passes.kernel.gpu.stream_space import (
    Power,
    Streamed,
    StreamSpace,
    is_number,
    limit_of,
    lookups,
    made_in,
    positive,
    stream_space,
    tiled_rows,
)
from irc.passes.kernel.gpu.tiles import Tile, TileDim

ROWS, DEPTH, STREAM, COLUMNS = 0, 1, 2, 3
"""The order of the dimensions of tiles: [rows, depth] x [depth, stream], [rows, stream] x [stream,
columns]."""

LARGE = 2.0**24
"""Scores as large as that are rounded by 1 where they are summed up, whatever their powers are."""


Always = Sequence[tuple[GpuMember, arith.SelectOp]]
"""Scalars of members that are their first choice in some turns."""


def is_streamed(schedule: loop.ScheduleAttr) -> bool:
    """Whether a schedule is of streamed products."""
    return any(key in STREAM_KEYS for key, _ in schedule.entries.items)


def form_streamed(frame: KernelFrame) -> kernel.KernelFuncOp:
    """The kernel of a frame whose schedule is of streamed products. Raises InvalidIR."""
    space = stream_space(frame.plan)
    if isinstance(space, str):
        raise InvalidIR(f"its schedule is of streamed products, and {space}", op=frame.plan.op)
    return _StreamKernel(frame, space).form()


class _StreamKernel:
    """Builds one kernel."""

    def __init__(self, frame: KernelFrame, space: StreamSpace) -> None:
        self.frame, self.space = frame, space
        self.plan, self.b, self.evaluator = frame.plan, frame.b, frame.evaluator
        self.precision = str(frame.entry("precision").value)
        self.rows = TileDim(ROWS, frame.setting("stream_m"))
        self.stream = TileDim(STREAM, frame.setting("stream_n"))
        if min(self.rows.block, self.stream.block) < FEWEST:
            raise InvalidIR(f"tiles of streamed products have at least {FEWEST} rows and columns",
                            op=self.plan.op)  # fmt: skip
        self.row_axes: dict[str, Dim] = {}
        self.wholes: dict[tuple[int, Dim], tuple[TileDim, Dim]] = {}
        self.limit = limit_of(self.plan, space)
        self.factors: dict[tuple[GpuMember, int], Tile] = {}
        self.rough: frozenset[Operation] = frozenset()
        self.gaps: list[tuple[GpuMember, Operation, Operation]] = []
        self.read: dict[Hashable, Tile] = {}
        #: Comparisons that end a stream, by whether they are what ends the first of two walks.
        self.ends: dict[Operation, bool] = {}
        self.lookups: list[tuple[GpuMember, loop.ReadOp]] = []

    def form(self) -> kernel.KernelFuncOp:
        """The kernel, complete."""
        frame, b, plan = self.frame, self.b, self.plan
        if frame.setting("index_bits") == 64:
            b.largest_index = (1 << 62) - 1
        if frame.entry("rough_powers").value:
            self.rough = rough_powers(plan)
            more = rough_scores(plan, self.space, self.rough)
            self.gaps = differences(plan, more)
            self.evaluator.be_rough(self.rough | more)
        own = tiled_rows(plan, self.space, self.rows.block)
        batch = plan.flat.axes[: -len(own)]
        self.lookups = lookups(plan, self.space, len(batch))
        rows = dim_product([axis.extent for axis in own])
        tiles = ceildiv(rows, self.rows.block)
        batches = dim_product([axis.extent for axis in batch])
        # Without a row there is no program instance, but code for one.
        count = 1 if tiles == 0 else tiles
        whole = b.bind("tile", frame.program(), (1 if batches == 0 else batches) * count)
        line = b.bind("batch", b.index(b.simplified(whole // count)), batches)
        turn = b.bind("turn", b.index(b.simplified(self._place_of(whole % count, count))), count)
        start = b.index(b.simplified(turn * self.rows.block))
        self.row_axes = decomposed(b, line, batch)
        place = frame.place("m", self.rows, start, rows)
        # What is looked up for an axis of one point is the same for all lanes.
        self.row_axes |= {axis.name: 0 for axis in own if axis.extent == 1}
        self.row_axes |= decomposed(b, place, [axis for axis in own if axis.extent != 1])
        self._walk()
        self._finish()
        frame.func.block.append(kernel.KernelReturnOp())
        return frame.finished(dim_product([batches, tiles]))

    def _place_of(self, number: Dim, count: Dim) -> Dim:
        """The place along the rows of the tile with a number: those that see the most of the
        stream come first."""
        if self.limit is None or not self.frame.entry("last_first").value:
            return number
        return count - 1 - number

    # -- places

    def _point(self, member: GpuMember, *own: Mapping[str, Dim]) -> Point:
        """A point of a member's: the kernel's rows, and places of its own axes."""
        axes = {name: self.row_axes[axis.name]
                for name, axis in zip(member.rows, self.plan.flat.axes, strict=True)}  # fmt: skip
        for each in own:
            axes |= each
        return Point(axes)

    def _whole(
        self, order: int, axes: Sequence[loop.AxisAttr]
    ) -> tuple[TileDim, dict[str, Dim]]:
        """A dimension with all points of some axes, and these axes' places. Raises InvalidIR."""
        points = dim_product([axis.extent for axis in axes])
        known = self.wholes.get((order, points))
        if known is None:
            if not isinstance(points, int) or points > LONGEST:
                raise InvalidIR(f"a tile of streamed products has no room for {points} points",
                                op=self.plan.op)  # fmt: skip
            dim = TileDim(order, max(FEWEST, 1 << max(points - 1, 0).bit_length()))
            place = self.frame.place(f"whole_{len(self.wholes)}", dim, None, points)
            known = self.wholes[order, points] = dim, place
        return known[0], decomposed(self.b, known[1], axes)

    def _streamed(self, member: GpuMember, places: Sequence[Dim]) -> dict[str, Dim]:
        """The places of the stream's axes, by a member's own names."""
        axes = self.space.axes_of(member)
        return {axis.name: place for axis, place in zip(axes, places, strict=True)}

    # -- the walk

    def _walk(self) -> None:
        """Everything that is combined over the stream, where readers find it."""
        states = [self._start(each) for each in self.space.combined]
        ends, always = self._ends()
        lower = None
        for number, end in enumerate(ends):
            last = number == len(ends) - 1
            states = self._turns(number, lower, end, states, () if last else always)
            lower = end
        for each, total in zip(self.space.combined, states, strict=True):
            self._record(each, self._end(each, total))

    def _end(self, each: Streamed, total: Tile) -> Tile:
        """What something combined is at the end: -inf for the maximum of no greater element."""
        b = self.b
        if each.origin.attr.combiner != "max":
            return total
        none = b.compare("oeq", total, b.constant(-largest(total.element), total.element))
        return b.select(none, b.constant(-math.inf, total.element), total)

    def _ends(self) -> tuple[list[Dim], Always]:
        """Up to which places of its outermost axis the stream is walked over, one after the other,
        and the scalars that are scores before the first of two, whatever else."""
        b, limit = self.b, self.limit
        if limit is None:
            return [self.space.stream[0]], ()
        tiles: dict[Operation, Tile] = {}
        for member, end in limit.ends:
            tiles[end] = self.evaluator.value(member, end.operands[1], self._point(member))
        distinct = {tile.value: tile for tile in tiles.values()}
        last, *others = distinct.values()
        for tile in others:
            last = b.op("arith.maxsi", last, tile)
        first = {tiles[end].value: tiles[end] for _, _, end in limit.chosen}
        if len(first) != 1:
            if not others:
                self.ends = dict.fromkeys(tiles, False)
            return [b.symbol_of(last)], ()
        (tile,) = first.values()
        if len(distinct) == 2:
            self.ends = {end: each is tile for end, each in tiles.items()}
        always = tuple((member, op) for member, op, _ in limit.chosen)
        return [b.symbol_of(tile), b.symbol_of(last)], always

    def _turns(
        self, number: int, lower: Dim | None, end: Dim, states: list[Tile], always: Always
    ) -> list[Tile]:
        """What is combined after the turns from a place of the outermost axis up to another one.
        always: what are scores in all of these."""
        b, wide, (*outer, inner) = self.b, self.stream.block, self.space.stream
        each_turn: Dim = ceildiv(inner, wide)
        step, around = (1, dim_product([*outer[1:], each_turn])) if outer else (wide, 1)
        first = None if lower is None else b.index(b.simplified(lower * around))
        upper = b.simplified(end * around)
        count = len(states)
        # Lists of places are read a turn before what is at them.
        looks_up = bool(self.lookups) and known_positive(dim_product(outer), b.ranges)
        if looks_up:
            start = b.index(0) if first is None else first
            outermost, _ = self._places(f"first{number}", self._kept(start, each_turn), each_turn)
            states = [*states, *self._looked_up(outermost)]
        with b.loop(upper, step, states, first, safe=True) as (at, carried, after, final):
            places: list[Dim] = []
            start = at
            if outer:
                places, start = self._places(f"step{number}", at, each_turn)
            if looks_up:
                known = zip(self._lookups(places), carried[count:], strict=True)
                for (read, offset), tile in known:
                    b.hold(self.evaluator.pointers[read.source], offset, tile)
                following = b.op("arith.addi", at, b.index(1))
                following = self._kept(following, each_turn)
                ahead, _ = self._places(f"next{number}", following, each_turn)
            self.stream.mask = None
            self.read.clear()
            places.append(self.frame.place(f"n{number}", self.stream, start, inner))
            for member, contraction in self.space.scores:
                self._score(member, contraction, places)
            # Before anything that is made of them is looked at.
            self._take_differences(places, always)
            for member, op in always:
                point = self._point(member, self._streamed(member, places))
                score = self.evaluator.value(member, op.operands[1], point)
                self.evaluator.take(op.results[0], point, score)
            if not always:
                self._take_outcomes(places, lower is not None)
            after += self._combined(carried[:count], places, always)
            after += self._looked_up(ahead) if looks_up else []
        self.stream.mask = None
        return list(final[:count])

    def _places(self, name: str, at: Tile, each_turn: Dim) -> tuple[list[Dim], Tile]:
        """The places of the stream's outer axes in a turn, and where the inner one begins."""
        b, (*outer, _) = self.b, self.space.stream
        turn = b.bind(name, at, dim_product([*outer, each_turn]))
        line = b.index(b.simplified(turn // each_turn))
        axes = [loop.AxisAttr(f"o{k}", "par", size) for k, size in enumerate(outer)]
        place = b.bind(f"{name}_line", line, dim_product(outer))
        start = b.index(b.simplified(turn % each_turn * self.stream.block))
        return list(decomposed(b, place, axes).values()), start

    def _kept(self, turn: Tile, each_turn: Dim) -> Tile:
        """A turn, if there is one; else the last one."""
        turns = dim_product([*self.space.stream[:-1], each_turn])
        return self.b.op("arith.minsi", turn, self.b.index(self.b.simplified(turns - 1)))

    def _lookups(self, outer: Sequence[Dim]) -> list[tuple[loop.ReadOp, Dim]]:
        """What members look up at places of the stream's outer axes, and where, each once."""
        places = dict[Hashable, tuple[loop.ReadOp, Dim]]()
        for member, read in self.lookups:
            axes = self.space.axes_of(member)[:-1]
            own = {axis.name: place for axis, place in zip(axes, outer, strict=True)}
            indices = self.evaluator.expressions(read.indices, (), self._point(member, own))
            offset = self.b.simplified(offset_of(indices, read.source.type))
            places.setdefault((read.source, offset), (read, offset))
        return list(places.values())

    def _looked_up(self, outer: Sequence[Dim]) -> list[Tile]:
        """What they look up there."""
        pointers = self.evaluator.pointers
        return [self.b.load(pointers[read.source], offset, read.value.type, None, None)
                for read, offset in self._lookups(outer)]  # fmt: skip

    def _take_outcomes(self, places: Sequence[Dim], behind: bool) -> None:
        """Let comparisons with ends be what they are in a walk up to the last end, which may be
        behind the first one."""
        for member in self.plan.members:
            if member in self.space.behind:
                continue
            own = self._streamed(member, places)
            for op in member.compute.block.ops:
                end = self._end_of(op)
                if end is None or self.ends[end] and not behind:
                    continue
                is_before = (op.predicate == "slt") is not self.ends[end]  # type: ignore[attr-defined]
                outcome = self.b.constant(is_before, i1)
                self.evaluator.take(op.results[0], self._point(member, own), outcome)

    def _end_of(self, op: Operation) -> Operation | None:
        """The comparison with an end that an operation is, or is the opposite of."""
        if not isinstance(op, arith.CmpIOp) or op.predicate not in ("slt", "sge"):
            return None
        return next((end for end in self.ends if end.operands == op.operands), None)

    def _start(self, each: Streamed) -> Tile:
        """What something combined over the stream is before it; a maximum is finite, so that gaps
        from it are numbers."""
        b, output = self.b, each.origin.attr
        element = loop.signless(output.accumulator or f32)
        dims: tuple[TileDim, ...] = (self.rows,)
        if each.contraction is not None:
            dims = (self.rows, self._columns(each)[0])
        number = identity(output.combiner, element)
        if output.combiner == "max":
            number = -largest(element)
        return b.expand(b.constant(number, element), dims)

    def _columns(self, each: Streamed) -> tuple[TileDim, dict[str, Dim]]:
        member = each.origin.member
        return self._whole(COLUMNS, [a for a in member.own if a.kind == "par"])

    def _dot(self, contraction: Contraction) -> Dot:
        dot = factor_of(contraction, self.precision)
        if isinstance(dot, str):
            raise InvalidIR(dot, op=self.plan.op)
        return dot

    def _score(
        self, member: GpuMember, contraction: Contraction, places: Sequence[Dim]
    ) -> None:
        """A tile of scores."""
        b, dot = self.b, self._dot(contraction)
        along, depth = self._whole(DEPTH, contraction.depth)
        point = self._point(member, self._streamed(member, places), depth)
        left = factor_tile(self.evaluator, member, contraction.left, dot, point,
                           (self.rows, along), along)  # fmt: skip
        right = factor_tile(self.evaluator, member, contraction.right, dot, point,
                            (along, self.stream), along)  # fmt: skip
        key = self._what(member, contraction, dot, DEPTH, contraction.depth, point)
        if key is not None:
            self.read.setdefault(key, right)
        zero = b.expand(b.constant(0, dot.accumulator), (self.rows, self.stream))
        total = multiplied(b, dot, [left, right], zero, self.precision)
        self.frame.record(member, 0, point, [total])

    def _combined(
        self, carried: Sequence[Tile], places: Sequence[Dim], always: Always
    ) -> list[Tile]:
        """What is carried after a step."""
        b, following = self.b, list[Tile]()
        for each, total in zip(self.space.combined, carried, strict=True):
            member, number, output = each.origin.member, each.origin.output, each.origin.attr
            if each.power is not None:
                self._take_power(each.power, places, always)
                total = b.op("arith.mulf", total, self.factors[_key(each.power.maximum)])
            own = self._streamed(member, places)
            if each.contraction is not None:
                following.append(self._product(each, each.contraction, own, total))
                continue
            point, factor = self._point(member, own), 1.0
            value = member.compute.yield_op.values[number]
            if output.combiner == "max":
                content, factor = self._unscaled(member, value, places, always)
            else:
                content = self.evaluator.value(member, value, point)
            dims = (self.rows, self.stream)
            reduction = Reduction(b, output, content.element, dims, self.stream, self.space.points)
            (part,) = reduction.whole(content, b.index(0))
            part = convert(b, part, total.element)
            if factor != 1.0:
                part = b.op("arith.mulf", part, b.constant(factor, total.element))
            after = combine(b, output.combiner, total, part)
            if output.combiner == "max":
                self._record(each, after)
                gap = b.op("arith.subf", total, after)
                self.factors[_key(each.origin)] = self._power(gap)
            following.append(after)
        return following

    def _power(self, gap: Tile) -> Tile:
        """exp of what is at most 0, of rows."""
        rough = {"rough": A.UNIT} if self.rough else {}
        return self.b.make(math_ops.ExpOp, [gap], [(gap.dims, gap.element)], rough)[0]

    def _take_power(self, power: Power, places: Sequence[Dim], always: Always) -> None:
        """Let a power below the maximum so far, which is finite, be one of two of one operation:
        exp(x * c - m) is exp2(x * (c * log2(e)) - m * log2(e)). The last product is a row's, and
        what it is rounded by is a factor of all of the row's powers, so that quotients don't see
        it. Scores of `LARGE` are sums of products that are rounded by more than 1."""
        b, member = self.b, power.member
        point = self._point(member, self._streamed(member, places))
        top = self.evaluator.element(power.maximum, self._row_places(power.maximum), None)
        self.evaluator.take(power.top.results[0], point, top)
        if power.exp not in self.rough:
            return
        score, factor = self._unscaled(member, power.element, places, always)
        below = Below.of(b, top, LARGE).times(b, factor)
        self.evaluator.take(power.exp.results[0], point, below.power(b, score))

    def _take_differences(self, places: Sequence[Dim], always: Always) -> None:
        """Let rough powers of a score less something of its row, or of its column, be of one
        operation, too."""
        b = self.b
        for member, power, gap in self.gaps:
            point = self._point(member, self._streamed(member, places))
            less = self.evaluator.value(member, gap.operands[1], point)
            if len(less.dims) > 1:
                continue
            score, factor = self._unscaled(member, gap.operands[0], places, always)
            scale = b.constant(math.log2(math.e), f32)
            below = Below(scale, b.op("arith.negf", b.op("arith.mulf", less, scale)))
            self.evaluator.take(power.results[0], point, below.times(b, factor).power(b, score))

    def _row_places(self, origin: Origin) -> list[Dim]:
        point = self._point(origin.member)
        return [point.axes[name] for name in origin.member.rows]

    def _unscaled(
        self, member: GpuMember, value: Value, places: Sequence[Dim], always: Always
    ) -> tuple[Tile, float]:
        """What is multiplied with a positive number to get a score, and that number: the greatest
        of products is that of the greatest factor, also where others are -inf."""
        b = self.b
        member, maker = made_in(self.plan, member, value)
        point = self._point(member, self._streamed(member, places))
        if any(maker is op for _, op in always):
            return self._unscaled(member, maker.operands[1], places, always)
        if isinstance(maker, arith.MulFOp):
            for factor, other in (maker.operands, maker.operands[::-1]):
                times = positive(factor.defining_op)
                if times is not None:
                    return self.evaluator.value(member, other, point), times
        if isinstance(maker, arith.SelectOp) and is_number(maker.operands[2], -math.inf):
            score, number = self._unscaled(member, maker.operands[1], places, always)
            if number != 1.0:
                condition = self.evaluator.value(member, maker.operands[0], point)
                lowest = b.constant(-math.inf, score.element)
                return b.select(condition, score, lowest), number
        if maker is None:
            return self.evaluator.value(member, value, point), 1.0
        return self.evaluator.value(member, maker.results[0], point), 1.0

    def _product(
        self, each: Streamed, contraction: Contraction, own: Mapping[str, Dim], total: Tile
    ) -> Tile:
        """Sums over the stream after a step of it."""
        member, dot = each.origin.member, self._dot(contraction)
        columns, place = self._columns(each)
        point = self._point(member, own, place)
        left = factor_tile(self.evaluator, member, contraction.left, dot, point,
                           (self.rows, self.stream), self.stream)  # fmt: skip
        own_axes = [a for a in member.own if a.kind == "par"]
        key = self._what(member, contraction, dot, COLUMNS, own_axes, point)
        known = None if key is None else self.read.get(key)
        if known is not None and known.dims[0].block == columns.block:
            turned = [((self.stream, columns), dot.element)]
            (right,) = self.b.make(kernel.TransposeOp, [known], turned)
        else:
            right = factor_tile(self.evaluator, member, contraction.right, dot, point,
                                (self.stream, columns), self.stream)  # fmt: skip
        return multiplied(self.b, dot, [left, right], total, self.precision)

    def _what(
        self, member: GpuMember, contraction: Contraction, dot: Dot, order: int,
        axes: Sequence[loop.AxisAttr], point: Point,
    ) -> Hashable | None:  # fmt: skip
        """What a tile of a right factor is of memory, whichever of its dimensions comes first; None
        for one that is computed. As gradients have it, it is multiplied both ways."""
        read = contraction.right.narrow.defining_op
        if not isinstance(read, loop.ReadOp) or read.mask is not None:
            return None
        if read.value.type is not dot.element:
            return None
        for position in read.positions:
            self.evaluator.value(member, position, point)
        indices = self.evaluator.expressions(list(read.indices), read.positions, point)
        offset = self.b.simplified(offset_of(indices, read.source.type))
        place = self.wholes[order, dim_product([axis.extent for axis in axes])][1]
        (name,) = free_symbols(place)
        return read.source, substitute(offset, {name: symbol("whole")})

    def _record(self, each: Streamed, total: Tile) -> None:
        """Let readers find what is combined, so far or at the end."""
        place = {} if each.contraction is None else self._columns(each)[1]
        point = self._point(each.origin.member, place)
        self.frame.record(each.origin.member, each.origin.output, point, [total])

    # -- what follows

    def _finish(self) -> None:
        """What is computed behind the walk, and stored."""
        self.b.edge_bytes = self.frame.setting("edge_bytes")
        for each in self.space.combined:
            place = {} if each.contraction is None else self._columns(each)[1]
            point = self._point(each.origin.member, place)
            self.frame.store(each.origin.member, each.origin.output, point)
        for member in self.space.behind:
            place = self._whole(COLUMNS, member.own)[1] if member.own else {}
            point = self._point(member, place)
            for number in range(len(member.compute.output_list)):
                self.frame.store(member, number, point)


def _key(origin: Origin) -> tuple[GpuMember, int]:
    """What an output is known by."""
    return origin.member, origin.output


__all__ = ["form_streamed", "is_streamed"]
