"""Forming a gpu kernel of contractions: tiles of rows and columns, multiplied as matrices.

A program instance has a tile of rows by columns (or, with `programs`, one after the other), and
walks over the depth in steps of `tile_k`: tiles of both factors are computed, their prologues with
them, and multiplied into an accumulator that stays in registers (`kernel.dot`). What follows in the
group is computed on the accumulator. Sizes that are no multiples are masked: lanes beyond the depth
are zeros in both factors.

Before:
    %y = loop.compute par(m: 512, n: 768) red(k: 768) -> reduce(sum, f32) { ... }
After:
    kernel.func @k(...) { ... kernel.for ... { ... kernel.dot ... } ... kernel.scatter ... }

Where rows of the result have an odd length, a tile has rows that begin at the same place in a group
of elements (with `row_group = 8`: every 8th row, or every 4th of even ones), and columns from the
beginning of a group on: so all of its groups are groups in memory, and are stored as a whole. What
groups share with the rows beside is stored by itself, by the tiles at the ends of rows; where a
flat loop goes over the tiles, which Triton makes of no loop with a branch, by tiles of these
columns alone, that are multiplied again behind the loop.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from irc.analysis.contraction import Contraction, Side
from irc.analysis.tile_cost import FIRST, narrow_parts
from irc.dialects import kernel, loop
from irc.dialects.kernel.dots import Dot
from irc.dialects.loop.schedule import CONTRACTION_KEYS
from irc.ir import attributes as A
from irc.ir.diagnostics import InvalidIR
from irc.ir.symbols import (
    Dim,
    ceildiv,
    coefficient,
    dim_product,
    dim_sum,
    free_symbols,
    known_divisible,
    minimum,
    provable_le,
    symbol,
)
from irc.ir.types import element_bytes, f32, i1
from irc.passes.kernel.gpu.contraction_space import (
    ContractionSpace,
    contraction_space,
    factor_of,
    is_copied,
)
from irc.passes.kernel.gpu.cut_sums import CUT, added, summed
from irc.passes.kernel.gpu.evaluate import Point, decomposed
from irc.passes.kernel.gpu.factors import factor_tile, multiplied
from irc.passes.kernel.gpu.frame import KernelFrame
from irc.passes.kernel.gpu.odd_rows import OddRows, product_row_group
from irc.passes.kernel.gpu.plan import GpuMember, offset_of
from irc.passes.kernel.gpu.rough_powers import rough_powers
from irc.passes.kernel.gpu.tiles import Tile, TileDim

ROWS, DEPTH, COLUMNS = 0, 1, 2
"""The order of the dimensions of tiles: [rows, depth] times [depth, columns]."""


def has_contraction(schedule: loop.ScheduleAttr) -> bool:
    """Whether a schedule is of contractions."""
    return any(key in CONTRACTION_KEYS for key, _ in schedule.entries.items)


def form_contraction(frame: KernelFrame) -> kernel.KernelFuncOp:
    """The kernel of a frame whose schedule is of contractions. Raises InvalidIR."""
    space = contraction_space(frame.plan)
    if isinstance(space, str):
        raise InvalidIR(f"its schedule is of a contraction, and {space}", op=frame.plan.op)
    if "split_k" in frame.settings:
        raise InvalidIR("no kernel has parts of its depth: split-reductions makes these (split_k)",
                        op=frame.plan.op)  # fmt: skip
    return _DotKernel(frame, space).form()


@attrs.frozen(eq=False)
class _ColumnPart:
    """A tile's rows and a part of its columns: a point over both dimensions."""

    point: Point
    rows: TileDim
    columns: TileDim


class _DotKernel:
    """Builds one kernel."""

    def __init__(self, frame: KernelFrame, space: ContractionSpace) -> None:
        self.frame, self.space = frame, space
        self.plan, self.b, self.evaluator = frame.plan, frame.b, frame.evaluator
        self.precision = str(frame.entry("precision").value)
        self.swapped = frame.entry("products").value == "swapped"
        self.first, self.second = space.rows, space.columns
        self.blocks = frame.setting("tile_m"), frame.setting("tile_n")
        if self.swapped:
            self.first, self.second = self.second, self.first
            self.blocks = self.blocks[::-1]
        self.parts = frame.setting("column_parts")
        self.described = frame.entry("access").value == "descriptors"
        self.starts: dict[str, tuple[Tile, Dim]] = {}
        self.depths = 0
        self.group, self.turns = self._row_group()
        self._refuse_narrow_parts()
        self.flat = bool(frame.entry("flat").value)

    def form(self) -> kernel.KernelFuncOp:
        """The kernel, complete."""
        frame, b = self.frame, self.b
        if frame.setting("index_bits") == 64:
            b.largest_index = (1 << 62) - 1
        if frame.entry("rough_powers").value:
            self.evaluator.rough = rough_powers(self.plan)
        total, programs = dim_product(self._counts()), frame.setting("programs")
        grid: Dim = minimum(total, programs) if programs else total
        if not programs:
            if self.flat:
                raise InvalidIR("there is no loop over tiles that is flat: programs is 0",
                                op=self.plan.op)  # fmt: skip
            self._tile(frame.program())
        else:
            first = frame.program()
            with b.loop(total, programs, [], first, flat=self.flat) as (tile, _, _, _):
                self._tile(tile)
            if self.flat and self.group > 1:
                # The last program instances have the fewest tiles, so ends begin with them.
                batch, rows, _ = self._counts()
                last = b.index(b.simplified(grid - 1 - b.bind("program", first, grid)))
                with b.loop(batch * rows, programs, [], last) as (tile, _, _, _):
                    self._multiply_ends(tile)
        frame.func.block.append(kernel.KernelReturnOp())
        return frame.finished(grid)

    # -- where a tile is

    def _row_group(self) -> tuple[int, int]:
        """The group of elements at which a tile's rows begin alike, and after how many rows they
        do again; 1 and 1 where it doesn't matter. Raises InvalidIR."""
        group = self.frame.setting("row_group")
        if group == 1:
            return 1, 1
        if self.swapped or product_row_group(self.plan, self.space, group) != group:
            raise InvalidIR(f"its rows have no groups of {group} elements (row_group)",
                            op=self.plan.op)  # fmt: skip
        if any(width % group for width in self._widths(self.blocks[1])):
            raise InvalidIR(f"its tiles have no whole groups of {group} elements (row_group)",
                            op=self.plan.op)  # fmt: skip
        columns = _points(self.second)
        assert isinstance(columns, int)
        return group, group // math.gcd(columns, group)

    def _refuse_narrow_parts(self) -> None:
        """Raises InvalidIR for parts of columns that Triton would multiply wrongly."""
        if not narrow_parts(self.blocks[1]):
            return
        for _, contraction in self.space.contractions:
            dot, right = factor_of(contraction, self.precision), self._sides(contraction)[1]
            depth, step = _points(contraction.depth), self.frame.setting("tile_k")
            ahead = self.frame.setting("num_stages") > 1 and not provable_le(depth, step)
            if isinstance(dot, Dot) and not is_copied(right, dot, contraction.depth, ahead):
                raise InvalidIR(
                    f"its tiles of {self.blocks[1]} columns have parts of fewer than {FIRST}, and "
                    "a factor that goes through registers lies along them", op=self.plan.op,
                )  # fmt: skip

    def _counts(self) -> list[Dim]:
        """How many tiles there are: in the batch, of rows, of columns."""
        batch, first, second = (
            _points(axes) for axes in (self.space.batch, self.first, self.second)
        )
        high, wide = self.blocks
        if self.group == 1:
            return [batch, ceildiv(first, high), ceildiv(second, wide)]
        rows = ceildiv(first // self.turns, high) * self.turns
        return [batch, rows, ceildiv(second + self.group - 1, wide)]

    def _tile(self, number: Tile) -> None:
        """All of the tile with a number."""
        b = self.b
        parts, column = self._where(number)
        self._multiply(parts)
        b.edge_bytes = self.frame.setting("edge_bytes")
        for tile in parts:
            self._finish(tile.point)
        if self.group > 1 and not self.flat:
            self._finish_ends(parts, column)

    def _where(self, number: Tile) -> tuple[list[_ColumnPart], Dim]:
        """The rows and the parts of the columns of the tile with a number, and that of its place
        along the columns."""
        b = self.b
        # Without a tile there is no program instance, but code for one.
        batches, rows, columns = (1 if count == 0 else count for count in self._counts())
        whole = b.bind("tile", number, batches * rows * columns)
        each = b.simplified(whole % (rows * columns))
        inside = b.bind("inside", b.index(each), rows * columns)
        batch = b.bind("batch", b.index(b.simplified(whole // (rows * columns))), batches)
        row, column = self._places_of(inside, rows, columns)
        axes = decomposed(b, batch, self.space.batch)
        m_block, n_block = self.blocks
        m = TileDim(ROWS, m_block)
        turn: Dim = 0
        if self.group == 1:
            start = b.index(b.simplified(row * m_block))
            axes |= self._across("m", m, start, self.first, m_block)
        else:
            line, turn = self._turning("", m, row)
            axes |= decomposed(b, line, self.first)
        parts, reach = list[_ColumnPart](), 0
        for k, width in enumerate(self._widths(n_block)):
            start, n = b.index(b.simplified(column * n_block) + reach), TileDim(COLUMNS, width)
            if self.group == 1:
                own = self._across(f"n{k}", n, start, self.second, n_block)
            else:
                own = decomposed(b, self._odd_row(turn).place(f"n{k}", n, start), self.second)
            parts.append(_ColumnPart(Point({**axes, **own}), m, n))
            reach += width
        return parts, column

    def _turning(self, name: str, m: TileDim, row: Dim) -> tuple[Dim, Dim]:
        """The rows of the tiles with a number along the rows, and which of the places they begin
        at; `name`: what the names of both end with."""
        b = self.b
        turn = b.bind(f"turn{name}", b.index(b.simplified(row % self.turns)), self.turns)
        start = b.index(b.simplified(row // self.turns * m.block))
        line = self.frame.place(f"m{name}", m, start, _points(self.first) // self.turns)
        return line * self.turns + turn, turn

    def _multiply_ends(self, number: Tile) -> None:
        """All of what the groups at the ends of rows share with other rows, of the tiles with a
        number along the rows."""
        b = self.b
        batches, rows, _ = (1 if count == 0 else count for count in self._counts())
        whole = b.bind("tile_of_ends", number, batches * rows)
        batch = b.bind("batch_of_ends", b.index(b.simplified(whole // rows)), batches)
        row = b.bind("row_of_ends", b.index(b.simplified(whole % rows)), rows)
        axes = decomposed(b, batch, self.space.batch)
        m, n = TileDim(ROWS, self.blocks[0]), TileDim(COLUMNS, 2 * self.group)
        line, turn = self._turning("_of_ends", m, row)
        axes |= decomposed(b, line, self.first)
        axes |= decomposed(b, self._odd_row(turn).ends("ends", n), self.second)
        point = Point(axes)
        self._multiply([_ColumnPart(point, m, n)])
        self._finish(point)

    def _odd_row(self, turn: Dim) -> OddRows:
        """A row that begins in a group where those of a tile do."""
        columns = _points(self.second)
        assert isinstance(columns, int)
        return OddRows(self.b, turn * columns, columns, self.group)

    def _finish_ends(self, parts: Sequence[_ColumnPart], column: Dim) -> None:
        """Store what the groups at the ends of rows share with other rows, if a tile has any."""
        b, wide = self.b, self.blocks[1]
        columns = _points(self.second)
        assert isinstance(columns, int)
        first = b.compare("eq", b.index(column), b.index(0))
        end = b.index(b.simplified(column * wide) + wide)
        last = b.compare("sgt", end, b.index(columns - self.group))
        b.edge_bytes = 0
        with b.under(b.op("arith.ori", first, last)):
            for tile in parts:
                cover, tile.columns.cover = tile.columns.cover, None
                assert cover is not None and tile.columns.mask is not None
                rest = b.op("arith.xori", cover.whole, b.constant(True, i1))
                tile.columns.mask = b.both(tile.columns.mask, rest)
                self._finish(tile.point)

    def _place(self, name: str, dim: TileDim, start: Tile, total: Dim, whole: int = 0) -> Dim:
        """The positions of a dimension's lanes, whose first one is remembered."""
        self.starts[name] = start, total
        return self.frame.place(name, dim, start, total, whole)

    def _across(
        self, name: str, dim: TileDim, start: Tile, axes: Sequence[loop.AxisAttr], block: int
    ) -> dict[str, Dim]:
        """The axes of a dimension's lanes from a place on, of tiles of `block` lanes. Where the
        innermost one has whole tiles, as the channels of a window have whole steps, all lanes are
        at one place of the others, which is computed once for them."""
        b, total, inner = self.b, _points(axes), axes[-1].extent if axes else 1
        if len(axes) < 2 or total == 0 or not known_divisible(inner, block):
            return decomposed(b, self._place(name, dim, start, total, block), axes)
        first = b.bind(f"{name}_first", start, total)
        outer = b.bind(f"{name}_outer", b.index(b.simplified(first // inner)), total // inner)
        # Of a remainder Triton wouldn't know that it is a multiple of a tile, too.
        within = b.op("arith.subi", start, b.index(outer * inner))
        places = decomposed(b, first, axes)
        places[axes[-1].name] = self._place(name, dim, within, inner, block)
        return places

    def _widths(self, columns: int) -> list[int]:
        """The parts of so many columns of a tile: powers of two, the largest first."""
        powers = [1 << k for k in reversed(range(columns.bit_length())) if columns >> k & 1]
        return [power // self.parts for power in powers for _ in range(self.parts)]

    def _places_of(self, inside: Dim, rows: Dim, columns: Dim) -> tuple[Dim, Dim]:
        """The numbers of a tile along rows and columns: groups of `group_m` rows of tiles go over
        all columns together."""
        b, group = self.b, self.frame.setting("group_m")
        if isinstance(rows, int):
            group = min(group, max(1, rows))
        width = columns * group
        first = b.bind("group", b.index(b.simplified(inside // width)), ceildiv(rows, group))
        within = b.bind("within", b.index(b.simplified(inside % width)), width)
        size: Dim = group
        if not known_divisible(rows, group):
            size = b.bind("height", b.index(minimum(rows - first * group, group)), group + 1)
        row = first * group + within % size
        return b.simplified(row), b.simplified(within // size)

    # -- products

    def _multiply(self, parts: Sequence[_ColumnPart]) -> None:
        """The sums of every contraction, in tiles that readers find."""
        b = self.b
        b.edge_bytes = 0  # a tile that is multiplied is read as a whole
        for member, contraction in self.space.contractions:
            dot = factor_of(contraction, self.precision)
            if isinstance(dot, str):
                raise InvalidIR(dot, op=self.plan.op)
            zero = b.constant(0, dot.accumulator)
            cut = dot.element is f32 and self.precision == CUT
            start = [b.expand(zero, (part.rows, part.columns)) for part in parts]
            start = [tile for tile in start for _ in range(2 if cut else 1)]
            depth, step = _points(contraction.depth), self.frame.setting("tile_k")
            name, self.depths = f"k{self.depths}", self.depths + 1
            with b.loop(depth, step, start) as (position, carried, following, final):
                along = TileDim(DEPTH, step)
                own = self._across(name, along, position, contraction.depth, step)
                left, right = self._sides(contraction)
                for part, *sums in _each(parts, carried):
                    there = Point({**part.point.axes, **own})
                    factors = [
                        self._factor(member, left, dot, there, (part.rows, along)),
                        self._factor(member, right, dot, there, (along, part.columns)),
                    ]
                    following += added(b, factors, sums) if cut else [
                        multiplied(b, dot, factors, sums[0], self.precision)
                    ]  # fmt: skip
            for part, *sums in _each(parts, final):
                total = summed(b, sums) if cut else sums[0]
                self.frame.record(member, 0, part.point, [total])

    def _sides(self, contraction: Contraction) -> tuple[Side, Side]:
        sides = contraction.left, contraction.right
        return sides[::-1] if self.swapped else sides

    def _factor(
        self,
        member: GpuMember,
        side: Side,
        dot: Dot,
        point: Point,
        dims: tuple[TileDim, TileDim],
    ) -> Tile:
        """A factor's tile: zeros beyond the depth."""
        along = next(dim for dim in dims if dim.order == DEPTH)
        tile = self._matrix(side, dot, point, dims) if self.described else None
        if tile is not None:
            return tile
        return factor_tile(self.evaluator, member, side, dot, point, dims, along)

    def _matrix(
        self, side: Side, dot: Dot, point: Point, dims: tuple[TileDim, TileDim]
    ) -> Tile | None:
        """A factor's tile as the hardware copies it: one that is a matrix in memory, with rows of
        whole 16 bytes."""
        read = side.plain
        if read is None or read.value.type is not dot.element:
            return None
        b = self.b
        indices = self.evaluator.expressions(list(read.indices), read.positions, point)
        offset = b.simplified(offset_of(indices, read.source.type))
        names = sorted(free_symbols(offset), key=lambda n: b.symbols[n].dims != (dims[0],))
        steps = [coefficient(offset, name) for name in names]
        if len(names) != 2 or 1 not in steps or not all(n in self.starts for n in names):
            return None
        if offset != dim_sum([symbol(n) * s for n, s in zip(names, steps, strict=True)]):  # type: ignore[operator]
            return None
        inner = steps.index(1) if steps[1] != 1 else 1
        stride, (place, total) = steps[1 - inner], self.starts[names[inner]]
        row, rows = self.starts[names[1 - inner]]
        fits = known_divisible(stride, max(1, 16 // element_bytes(dot.element)))  # type: ignore[arg-type]
        if not fits or not provable_le(total, stride) or max(d.block for d in dims) > 256:  # type: ignore[arg-type]
            return None
        lying = (dims[1 - inner], dims[inner])
        attributes: dict[str, A.Attribute] = {
            "sizes": A.DimsAttr([rows, total]), "stride": A.DimAttr(stride),  # type: ignore[arg-type]
        }  # fmt: skip
        pointer = Tile(self.evaluator.pointers[read.source], (), 0)
        results = [(lying, dot.element)]
        tile = b.make(kernel.LoadTileOp, [pointer, row, place], results, attributes)[0]
        if lying == dims:
            return tile
        return b.make(kernel.TransposeOp, [tile], [(dims, dot.element)])[0]

    # -- what follows

    def _finish(self, point: Point) -> None:
        """What is computed of the sums at a point of rows and columns, and stored."""
        for member in self.plan.members:
            for number in range(len(member.compute.output_list)):
                self.frame.store(member, number, point)


def _each(parts: Sequence[_ColumnPart], sums: Sequence[Tile]) -> Iterator[Any]:
    """Each part of a tile's columns with its sums."""
    return zip(parts, *[iter(sums)] * (len(sums) // len(parts)), strict=False)


def _points(axes: Sequence[loop.AxisAttr]) -> Dim:
    return dim_product([a.extent for a in axes])


__all__ = ["form_contraction", "has_contraction"]
