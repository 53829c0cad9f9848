"""Forming a gpu kernel from a top-level `loop.compute` or `loop.group`.

Rows are tiled over program instances. A member's own axes are one tile dimension, held whole
(persistent) or walked by a loop; a loop carries accumulators of tile shape, and walks backwards
where the one before it walked forwards, so that it begins with what the caches still hold. Values
of the group stay in registers where the tile is the same, and are computed anew in later loops.
Scatter outputs are combined into memory that already holds the initial array: `initialized` lists
the pair (input, output) as an obligation of the caller, and `inplace` allows to share the memory.

Before:
    %y = loop.compute {axes = [#loop.axis<i, par, 8>, #loop.axis<j, red, 64>], ...} ...
After:
    kernel.func @k(%x: !kernel.ptr<f32>, %y: !kernel.ptr<f32>) { ... kernel.reduce ... }
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from irc.dialects import kernel, loop
from irc.ir.core import Operation, Value
from irc.ir.diagnostics import InvalidIR
from irc.ir.symbols import Dim, Range, ceildiv, dim_product
from irc.ir.types import f32, i1, index
from irc.passes.kernel.gpu.combine import TURNS_MATTER, Reduction, convert
from irc.passes.kernel.gpu.contraction import form_contraction, has_contraction
from irc.passes.kernel.gpu.early_reads import read_early
from irc.passes.kernel.gpu.evaluate import Point, decomposed
from irc.passes.kernel.gpu.frame import KernelFrame
from irc.passes.kernel.gpu.loop_parts import LoopPart, loop_parts, peeled_parts
from irc.passes.kernel.gpu.odd_rows import OddRows, row_group
from irc.passes.kernel.gpu.own_points import ordered_axes
from irc.passes.kernel.gpu.plan import GpuMember, Origin, accesses, plan_for_gpu
from irc.passes.kernel.gpu.rough_powers import rough_powers
from irc.passes.kernel.gpu.scans import Scans
from irc.passes.kernel.gpu.schedule import default_schedule, power_of_two
from irc.passes.kernel.gpu.streamed import form_streamed, is_streamed
from irc.passes.kernel.gpu.summed_powers import SummedPowers, walk_together
from irc.passes.kernel.gpu.tiles import Tile, TileDim
from irc.passes.kernel.plan.plan import Plan, flatten

ENDS_ORDER = 1000
"""The place of the dimension of rows' ends in a tile's shape: behind all others."""


def kernel_inputs(op: Operation) -> list[Value]:
    """The arrays that the kernel of `op` takes as inputs, in the order of its arguments."""
    return flatten(op).inputs


def kernel_outputs(op: Operation) -> list[Value]:
    """The results of `op` that the kernel writes, in the order of its arguments."""
    return [result for result, _ in flatten(op).outputs]


def form_gpu_kernel(
    op: Operation,
    schedule: loop.ScheduleAttr | None = None,
    name: str = "kernel",
    *,
    flat: Plan | None = None,
    ranges: Mapping[str, Range] | None = None,
) -> kernel.KernelFuncOp:
    """The kernel of a compute or group by a schedule, by default the default one.

    Arguments: `kernel_inputs(op)`, `kernel_outputs(op)`, then the symbols by name. `flat`: the
    plan, where it is known. `ranges` bounds symbols. Raises InvalidIR for what has no gpu code.
    """
    plan = plan_for_gpu(flatten(op) if flat is None else flat)
    if schedule is None:
        schedule = default_schedule(op, plan, ranges=ranges)
    if not schedule.is_gpu:
        raise InvalidIR(f"the schedule is for a {schedule.target}, not a gpu", op=op)
    frame = KernelFrame(plan, schedule.entries.as_dict(), name)
    if is_streamed(schedule):
        return form_streamed(frame)
    if has_contraction(schedule):
        return form_contraction(frame)
    return _GpuKernel(frame).form()


@attrs.frozen(eq=False)
class _Walk:
    """What a loop over the tiles of rows of `points` does: reductions (member, output, how), scans
    (member, output), and what members store. `held`: its parts are a turn each, without a loop."""

    members: list[GpuMember]
    reductions: list[tuple[GpuMember, int, Reduction]]
    scans: list[tuple[GpuMember, int]]
    dim: TileDim
    points: Dim
    parts: list[LoopPart]
    held: bool


class _GpuKernel:
    """Builds one kernel."""

    def __init__(self, frame: KernelFrame) -> None:
        self.frame, self.plan = frame, frame.plan
        self.b, self.evaluator = frame.b, frame.evaluator
        self.scans = Scans(self.b, self.plan, self.evaluator)
        self.row_point: list[Dim] = []
        self.row_dims: tuple[TileDim, ...] = ()
        self.whole_tiles: dict[Dim, tuple[TileDim, Dim]] = {}
        self.loop_dims: dict[Dim, TileDim] = {}
        self.loops = 0
        self.backwards = self.held = False
        self.odd: OddRows | None = None
        self.ordered = ordered_axes(self.plan)
        self.ends: tuple[TileDim, Dim] | None = None
        self.together: list[SummedPowers] = []

    # -- the frame of the kernel

    def form(self) -> kernel.KernelFuncOp:
        """The kernel, complete."""
        self.b.edge_bytes = self.frame.setting("edge_bytes")
        if self.frame.entry("rough_powers").value:
            self.evaluator.be_rough(rough_powers(self.plan))
        if self.frame.setting("index_bits") == 64:
            self.b.largest_index = (1 << 62) - 1
        if self.frame.entry("online").value:
            self.together = walk_together(self.plan)
        axes = self.frame.entry("tile_axes").values
        if axes and self.frame.setting("programs"):
            raise InvalidIR("program instances walk over tiles of rows, not over tiles of axes",
                            op=self.plan.op)  # fmt: skip
        if axes:
            grid = self._tile_axes(axes)
            self._phases()
        else:
            grid = self._tiles_of_rows()
        block = self.frame.func.block
        block.append(kernel.KernelReturnOp())
        if self.frame.entry("early_reads").value or self.held:
            loops = (op for op in block.ops if isinstance(op, kernel.ForOp))
            rows = next(loops).block if self.frame.setting("programs") else block
            read_early(rows, apart=self.held)
        return self.frame.finished(grid)

    def _tile(self, name: str, start: Tile | None, total: Dim, order: int, block: int) -> Any:
        """A dimension of `block` points from `start` on in [0, total): (dim, expression)."""
        dim = TileDim(order, block)
        return dim, self.frame.place(name, dim, start, total)

    def _reach(self, points: Dim) -> Dim:
        """How far the tiles of rows of so many points reach."""
        return points if self.odd is None else self.odd.reach

    def _own_place(
        self, name: str, dim: TileDim, start: Tile | None, points: Dim, whole: int = 0
    ) -> Dim:
        """The position in a row of the lanes from `start` on of what covers it; whole: all are
        inside of rows of whole multiples of so many points (0: of the tile's)."""
        if self.odd is None:
            return self.frame.place(name, dim, start, points, whole)
        return self.odd.place(name, dim, start, whole == 1)

    def _tiles_of_rows(self) -> Dim:
        """A program instance for each `x_block` rows, or `programs` that walk over these tiles;
        gives the grid."""
        count = ceildiv(dim_product(self.plan.rows), self.frame.setting("x_block"))
        programs = self.frame.setting("programs")
        if not programs:
            self._tile_rows(self.frame.program())
            self._phases()
            return count
        if not isinstance(count, int):
            raise InvalidIR("program instances that walk over rows need a number of rows that is "
                            "known", op=self.plan.op)  # fmt: skip
        programs = max(1, min(programs, count))
        stages = self.frame.setting("num_stages")
        with self.b.loop(count, programs, [], self.frame.program(), stages) as (tile, _, _, _):
            self._tile_rows(tile)
            self._phases()
        return programs

    def _tile_rows(self, tile: Tile) -> None:
        """Tile number `tile` of `x_block` rows."""
        b, block = self.b, self.frame.setting("x_block")
        extents = self.plan.rows
        total = dim_product(extents)
        b.row = "x"
        if block == 1:
            linear: Dim = b.bind("x", tile, total)
        else:
            start = b.op("arith.muli", tile, b.index(block))
            dim, linear = self._tile("x", start, total, 0, block)
            self.row_dims = (dim,)
        positions = self.frame.entry("order").values
        if sorted(positions) != list(range(len(extents))):
            raise InvalidIR(f"the schedule's order {positions} is not of the {len(extents)} row "
                            "axes", op=self.plan.op)  # fmt: skip
        self._cover_rows(linear)
        places = self._decompose(linear, [extents[k] for k in positions])
        self.row_point = [places[list(positions).index(k)] for k in range(len(extents))]

    def _decompose(self, linear: Dim, extents: Sequence[Dim]) -> list[Dim]:
        axes = [loop.AxisAttr(f"a{k}", "par", e) for k, e in enumerate(extents)]
        return list(decomposed(self.b, linear, axes).values())

    def _tile_axes(self, axes: Sequence[int]) -> Dim:
        """Tiles over one or two edges; the other row axes are scalars of the program."""
        b, extents = self.b, self.plan.rows
        blocks = [self.frame.setting("x_block")]
        if len(axes) > 1:
            blocks.insert(0, self.frame.setting("y_block"))
        runs = self._edges(axes)
        others = [k for k in range(len(extents)) if not any(k in run for run in runs)]
        sizes = [dim_product([extents[k] for k in run]) for run in runs]
        tiles = [ceildiv(size, block) for size, block in zip(sizes, blocks, strict=True)]
        outer, inner = dim_product([extents[k] for k in others]), dim_product(tiles)
        whole = b.bind("program", self.frame.program(), outer * inner)
        starts = [whole // dim_product(tiles[k + 1 :]) % t for k, t in enumerate(tiles)]
        places: list[Dim] = [0] * len(extents)
        dims = []
        for order, (run, start, block) in enumerate(zip(runs, starts, blocks, strict=True)):
            first = b.index(b.simplified(start) * block)
            dim, place = self._tile(f"tile_{order}", first, sizes[order], order, block)
            dims.append(dim)
            self._put(places, run, place)
        rest = b.bind("outer", b.index(b.simplified(whole // inner)), outer)
        self._put(places, others, rest)
        self.row_dims = tuple(dims)
        self.row_point = places
        return outer * inner

    def _put(self, places: list[Dim], axes: Sequence[int], place: Dim) -> None:
        """Note where `place`, a position in the points of some axes, is along each of them."""
        extents = [self.plan.rows[k] for k in axes]
        for axis, own in zip(axes, self._decompose(place, extents), strict=True):
            places[axis] = own

    def _edges(self, axes: Sequence[int]) -> list[list[int]]:
        """The axes that each of `axes` stands for, outermost first."""
        collapsed = self.frame.entry("collapse").values if len(axes) > 1 else ()
        runs: dict[int, list[int]] = {}
        for first, last in zip(collapsed[::2], collapsed[1::2], strict=True):
            runs[last] = [*runs.pop(first, [first]), last]
        edges = [runs.get(axis, [axis]) for axis in axes]
        every = [axis for run in edges for axis in run]
        if len(edges) > 2 or len(set(every)) < len(every) or max(every) >= len(self.plan.rows):
            raise InvalidIR(f"the edges {edges} of its tiles are not two of different axes among "
                            f"{len(self.plan.rows)}", op=self.plan.op)  # fmt: skip
        return edges

    def _cover_rows(self, linear: Dim) -> None:
        """Let tiles of rows begin at groups of elements, if the schedule says so."""
        group = self.frame.setting("row_group")
        if group == 1 or not any(m.own for m in self.plan.members):
            return
        if row_group(self.plan) % group:
            raise InvalidIR(f"its rows can't be covered by groups of {group}", op=self.plan.op)
        points = next(m.points for m in self.plan.members if m.own)
        assert isinstance(points, int)
        self.odd = OddRows(self.b, linear * points, points, group)

    # -- phases

    def _phases(self) -> None:
        """All members, in their order."""
        walked = sorted({m.phase for m in self.plan.members if m.own and self._has_roots(m)})
        whole = self.frame.setting("r_block") == 0 or self.frame.entry("persistent").value
        told = not whole and self.frame.entry("cached_reads").value and len(walked) > 1
        for phase in range(max(m.phase for m in self.plan.members) + 1):
            if told:
                self.b.cache = "drop" if phase >= walked[-1] else "keep"
            self._phase([m for m in self.plan.members if m.phase == phase])

    def _phase(self, members: list[GpuMember]) -> None:
        spaces: dict[Dim, list[GpuMember]] = {}
        for member in members:
            if member.own and self._has_roots(member):
                spaces.setdefault(member.points, []).append(member)
        for points, inside in spaces.items():
            if self.frame.entry("unrolled").value:
                self._unrolled(points, inside)
                continue
            # A tile has at least one lane: a loop is right where there is no point at all.
            if self.frame.entry("persistent").value and points != 0:
                self._whole(points, inside)
            else:
                self._looped(points, inside)
        for member in members:
            if not member.own:
                self._finish_rows(member)

    def _has_roots(self, member: GpuMember) -> bool:
        """Whether the member must be run: it stores, or combines for others."""
        stored = {value for _, value in self.plan.outputs}
        if any(r in stored for r in member.compute.results):
            return True
        return member.tiled is member.own and any(
            o.kind == "reduce" for o in member.compute.output_list
        )

    def _point(self, member: GpuMember, linear: Dim | None) -> Point:
        axes = dict(zip(member.rows, self.row_point, strict=False))
        if member.folded:
            axes.update(decomposed(self.b, self.row_point[-1], member.folded))
        if linear is not None:
            axes.update(decomposed(self.b, linear, [member.tiled[k] for k in self._own(member)]))
        return Point(axes)

    def _own(self, member: GpuMember) -> Sequence[int]:
        """The order of a member's own axes."""
        own = range(len(member.tiled))
        if not self.ordered:
            return own
        order = self.frame.entry("own_order").values
        if sorted(order) != list(own):
            text = f"own axes can't have the order {order} of the schedule"
            raise InvalidIR(text, op=self.plan.op)
        return order

    def _finish_rows(self, member: GpuMember) -> None:
        """Stores of a member without own axes."""
        point = self._point(member, None)
        for number, output in enumerate(member.compute.output_list):
            if output.kind in ("reduce", "scan"):
                content = self.evaluator.yielded(member, number, point)
                self.frame.record(member, number, point, self._single(output, content))
            self.frame.store(member, number, point)

    def _single(self, output: loop.ResultAttr, content: Tile) -> list[Tile]:
        """The results of combining one point."""
        b = self.b
        content = convert(b, content, loop.signless(output.accumulator or content.element))
        if output.combiner == "moments":
            return [content, b.constant(0, content.element)]
        if output.combiner == "logsumexp":
            gap = b.op("arith.subf", content, content)
            return [content, b.op("math.exp", gap)]
        if output.combiner in ("argmin", "argmax"):
            return [b.constant(0, index)]
        return [content]

    def _whole(self, points: Dim, members: list[GpuMember]) -> None:
        """Members whose own points one tile holds."""
        whole = self.whole_tiles.get(points)
        if whole is None:
            block, held = self.frame.setting("r_block"), self._reach(points)
            if not isinstance(held, int) or held > block:
                raise InvalidIR(f"a tile of {block} can't hold {held} points", op=self.plan.op)
            dim = TileDim(2 + len(self.whole_tiles), min(block, power_of_two(held)))
            linear = self._own_place(f"r{len(self.whole_tiles)}", dim, None, points)
            whole = self.whole_tiles[points] = dim, linear
        dim, linear = whole
        for member, number in self.scans.needed(members):
            self._scan(member, number, linear, dim, None)
        for member in members:
            point = self._point(member, linear)
            for number, output in enumerate(member.compute.output_list):
                if output.kind == "reduce" and member.tiled is member.own:
                    reduction = self._reduction(member, number, dim)
                    filled = self._fill_powers(member, number, linear, dim)
                    content = self.evaluator.yielded(member, number, point)
                    position = self.b.index(self._combined_position(member, point))
                    results = reduction.whole(content, position, filled)
                    self.frame.record(member, number, point, results)
                self.frame.store(member, number, point)
            self._store_ends(member)

    def _fill_powers(self, member: GpuMember, number: int, linear: Dim, dim: TileDim) -> bool:
        """Let powers below a row's maximum be made of -inf in the lanes outside, as the maximum is,
        if that makes them 0; they are NaN where the row's sum is NaN anyway.

        Not of f32: what is read is then the -inf, too, and the assembler waits for the first
        elements before it asks for all (5 of 15 reads of a row of 30,523 elements, sm_90)."""
        powers = self.evaluator.powers_of(Origin(member, number, 0))
        if powers is None or self.odd is None or member not in [m for m, _ in powers.elements]:
            return False
        if any(size > 2 for _, _, size, stored in accesses(self.plan) if not stored):
            return False
        top, evaluator = powers.maximum, self.evaluator
        content = evaluator.yielded(top.member, top.output, self._point(top.member, linear))
        filled = self._reduction(top.member, top.output, dim).filled(content)
        for other, value in powers.elements:
            evaluator.take(value, self._point(other, linear), filled)
        return True

    def _reduction(
        self, member: GpuMember, number: int, dim: TileDim, held: bool = False
    ) -> Reduction:
        output = member.compute.output_list[number]
        element = member.compute.yield_op.values[number].type
        dims = tuple(sorted([*self.row_dims, dim], key=lambda d: d.order))
        if (powers := self._powers_above(member, number)) is not None:
            rough = powers.power in self.evaluator.rough
            return Reduction(self.b, output, element, dims, dim, member.points, "logsumexp", rough)
        return Reduction(self.b, output, element, dims, dim, member.points, held=held)

    def _powers_above(self, member: GpuMember, number: int) -> SummedPowers | None:
        """The sum of powers that is walked along with a maximum."""
        return next((p for p in self.together if p.maximum.is_output(member, number)), None)

    def _is_walked_along(self, member: GpuMember, number: int) -> bool:
        """Whether it is a sum of powers that comes with its maximum."""
        return any(p.total.is_output(member, number) for p in self.together)

    def _finished(
        self, member: GpuMember, number: int, results: list[Tile]
    ) -> Iterator[tuple[Origin, list[Tile]]]:
        """The results of a loop by what they are of; a sum below what is infinite is NaN."""
        powers = self._powers_above(member, number)
        if powers is None:
            yield Origin(member, number, 0), results
            return
        b, (top, total) = self.b, results
        infinite = b.op("math.isinf", top, element=i1)
        yield powers.maximum, [top]
        yield powers.total, [b.select(infinite, b.constant(math.nan, f32), total)]

    def _combined_position(self, member: GpuMember, point: Point) -> Dim:
        """The row-major position over the red axes."""
        position: Dim = 0
        for axis in member.compute.axis_list:
            if axis.kind == "red":
                position = position * axis.extent + point.axes[axis.name]
        return self.b.simplified(position)

    def _unrolled(self, points: Dim, members: list[GpuMember]) -> None:
        """Members whose own points are combined one after the other."""
        if not isinstance(points, int) or self.odd or self.scans.needed(members):
            raise InvalidIR("rows of so many points, of scans and odd ones can't be unrolled",
                            op=self.plan.op)  # fmt: skip
        b = self.b
        reductions = []
        for member in members:
            element = [v.type for v in member.compute.yield_op.values]
            for number, output in enumerate(member.compute.output_list):
                if output.kind == "reduce" and member.tiled is member.own:
                    reductions.append((member, number, Reduction(
                        b, output, element[number], self.row_dims, None, points)))  # fmt: skip
        states = [reduction.start() for _, _, reduction in reductions]
        for at in range(points):
            for k, (member, number, reduction) in enumerate(reductions):
                point = self._point(member, at)
                content = self.evaluator.yielded(member, number, point)
                place = b.index(self._combined_position(member, point))
                states[k] = reduction.step(states[k], content, place, b.index(at))
            for member in members:
                self._store_tiles(member, self._point(member, at))
        for (member, number, reduction), state in zip(reductions, states, strict=True):
            point = self._point(member, None)
            self.frame.record(member, number, point, reduction.finish(state))
            self.frame.store(member, number, point)

    # -- loops over tiles

    def _looped(self, points: Dim, members: list[GpuMember]) -> None:
        b, block = self.b, self.frame.setting("r_block")
        scans = self.scans.needed(members)
        parts = self._parts(points, block, bool(scans))
        # What has no loop has the same tiles in each walk, and what was read is still there.
        held = self.frame.setting("abreast") > 1 and all(p.count == p.abreast for p in parts)
        held &= bool(parts)
        self.held |= held
        if self.odd and not held and any("moments" in _combiners(m) for m in members):
            raise InvalidIR("moments of a loop can't be of rows that begin anywhere",
                            op=self.plan.op)  # fmt: skip
        dim = self.loop_dims.setdefault(points, TileDim(2, block))
        reductions = [
            (m, k, self._reduction(m, k, dim, held))
            for m in members
            for k, output in enumerate(m.compute.output_list)
            if output.kind == "reduce" and m.tiled is m.own and not self._is_walked_along(m, k)
        ]
        starts = [r.start() for _, _, r in reductions]
        carried_scans = [b.expand(self.scans.start(m, k), self.row_dims) for m, k in scans]
        flat = [t for s in starts for t in s] + carried_scans
        self.loops += 1
        # What the last loop read last is read first: the caches may still hold it.
        turns_matter = scans or any(r.combiner in TURNS_MATTER for _, _, r in reductions)
        turns = self.frame.entry("turns").value and not turns_matter
        self.backwards = self.loops > 1 and not self.backwards and turns
        walk = _Walk(members, reductions, scans, dim, points, parts, held)
        final = self._walk(walk, flat)
        dim.mask = dim.cover = None
        done = list(final)
        for (member, number, reduction), start in zip(reductions, starts, strict=True):
            own = [done.pop(0) for _ in start]
            for origin, results in self._finished(member, number, reduction.finish(own)):
                point = self._point(origin.member, None)
                self.frame.record(origin.member, origin.output, point, results)
                self.frame.store(origin.member, origin.output, point)
        for member in members:
            self._store_ends(member)

    def _walk(self, walk: _Walk, state: list[Tile]) -> list[Tile]:
        """All turns of a loop over tiles, with those whose lanes may be outside before and behind
        it if the schedule says so; gives what they carry at the end."""
        b, block, reach = self.b, self.frame.setting("r_block"), self._reach(walk.points)
        parts = walk.parts
        for number, part in enumerate(parts[::-1] if self.backwards else parts):
            name, first, count = f"r{self.loops}_{number}", part.first, part.count
            if (walk.held or len(parts) > 1) and count == part.abreast:
                state = self._turn(walk, name, b.index(first * block), state, part)
                continue
            lower = b.index(first * block) if first != 0 else None
            upper = reach if len(parts) == 1 else (first + count) * block
            step = part.abreast * block
            with b.loop(upper, step, state, lower) as (position, carried, following, final):
                if self.backwards:
                    last = b.index((first + first + count - part.abreast) * block)
                    position = b.op("arith.subi", last, position)
                following += self._turn(walk, name, position, carried, part)
                if part.abreast > 1:
                    read_early(b.scopes[-1].block, apart=True)
            state = list(final)
        return state

    def _parts(self, points: Dim, block: int, scanned: bool) -> list[LoopPart]:
        """The tiles of a loop over rows of so many points, in order."""
        reach = self._reach(points)
        if scanned:
            return loop_parts(reach, block, 1)
        abreast = self.frame.setting("abreast")
        if not self.frame.entry("peeled").value:
            return loop_parts(reach, block, abreast)
        if not isinstance(points, int) or not isinstance(reach, int):
            raise InvalidIR("only loops over a number of points that is known can be peeled",
                            op=self.plan.op)  # fmt: skip
        return peeled_parts(points, reach, block, abreast)

    def _turn(
        self, walk: _Walk, name: str, position: Tile, state: Sequence[Tile], part: LoopPart
    ) -> list[Tile]:
        """What is carried after a turn of a loop's part, whose first tile is at a position."""
        b, dim, block = self.b, walk.dim, self.frame.setting("r_block")
        states, left = [], list(state)
        for _, _, reduction in walk.reductions:
            states.append([left.pop(0) for _ in reduction.start()])
        together: dict[int, list[Tile]] = {}
        for number in range(part.abreast):
            if number:
                position = b.op("arith.addi", position, b.index(block))
            dim.mask = dim.cover = None
            at = f"{name}_{number}" if number else name
            linear = self._own_place(at, dim, position, walk.points, part.whole(block))
            left = [
                self._scan(m, k, linear, dim, total)
                for (m, k), total in zip(walk.scans, left, strict=True)
            ]
            for k, (member, output, reduction) in enumerate(walk.reductions):
                point = self._point(member, linear)
                content = self.evaluator.yielded(member, output, point)
                if part.abreast > 1 and reduction.taken_together:
                    together.setdefault(k, []).append(reduction.filled(content, narrow=True))
                    continue
                place = b.index(self._combined_position(member, point))
                states[k] = reduction.step(states[k], content, place, position)
            for member in walk.members:
                self._store_tiles(member, self._point(member, linear))
        for k, contents in together.items():
            states[k] = walk.reductions[k][2].step_together(states[k], contents)
        return [tile for each in states for tile in each] + left

    def _store_tiles(self, member: GpuMember, point: Point) -> None:
        """The stores of a member inside its loop: all but the results of its reductions."""
        for number, output in enumerate(member.compute.output_list):
            if output.kind != "reduce" or member.tiled is not member.own:
                self.frame.store(member, number, point)

    def _scan(
        self, member: GpuMember, number: int, linear: Dim, dim: TileDim, total: Tile | None
    ) -> Tile:
        """Scan a tile after `total` (of the tiles before); gives the total after it."""
        dims = tuple(sorted([*self.row_dims, dim], key=lambda d: d.order))
        point = self._point(member, linear)
        scanned, following = self.scans.scan(member, number, point, dims, dim, total)
        self.frame.record(member, number, point, [scanned])
        return following

    # -- stores

    def _store_ends(self, member: GpuMember) -> None:
        """The stores of maps at the ends of rows that share a group with others."""
        if self.odd is None:
            return
        if self.ends is None:
            dim = TileDim(ENDS_ORDER, 2 * self.odd.group)
            self.ends = dim, self.odd.ends("ends", dim)
        for number, output in enumerate(member.compute.output_list):
            if output.kind == "map":
                self.frame.store(member, number, self._point(member, self.ends[1]))


def _combiners(member: GpuMember) -> list[str]:
    return [output.combiner for output in member.compute.output_list]


__all__ = ["form_gpu_kernel", "kernel_inputs", "kernel_outputs"]
