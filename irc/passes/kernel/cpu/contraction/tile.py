"""TileWriter of sums in registers: the innermost loop of a contraction, and what follows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from irc.dialects import arith, kernel, loop
from irc.ir import attributes as A
from irc.ir.attributes import Type
from irc.ir.core import Value
from irc.ir.symbols import coefficient, substitute
from irc.passes.kernel.cpu.contraction.ahead import NextPanel, pack_panel, panel_place
from irc.passes.kernel.cpu.contraction.along_depth import Lines, fill_room
from irc.passes.kernel.cpu.contraction.fetching import Turn, turns_of
from irc.passes.kernel.cpu.contraction.groups import term_masks, whole_groups
from irc.passes.kernel.cpu.contraction.kept import KeptSums
from irc.passes.kernel.cpu.contraction.matrices import multiply
from irc.passes.kernel.cpu.contraction.packing import LEFT, RIGHT
from irc.passes.kernel.cpu.contraction.row_tiles import RowTiles, end_of_whole, if_less
from irc.passes.kernel.cpu.contraction.runs import Stretch
from irc.passes.kernel.cpu.contraction.sums import SumArithmetic
from irc.passes.kernel.cpu.contraction.woven import finish_last
from irc.passes.kernel.cpu.emit import Lanes, Scalar, VectorScope
from irc.passes.kernel.cpu.nest import Nest
from irc.passes.kernel.cpu.place import OUTER, SHARED
from irc.passes.kernel.cpu.plan import lane_stride

if TYPE_CHECKING:
    from irc.passes.kernel.cpu.contraction.products import ProductWriter

Masks = Sequence[Value | None]


class TileWriter:
    """Writes the tiles of a kernel."""

    def __init__(self, owner: ProductWriter) -> None:
        self.owner, self.tiling, self.schedule = owner, owner.tiling, owner.schedule
        self.emitter, self.state = owner.emitter, owner.state
        products = self.tiling.products
        empty = self.schedule
        self.sums = Nest(self.state, products.member, products.depth, None, empty).body
        self.after = [Nest(self.state, m, [], None, empty) for m in products.after]
        self.arithmetic = SumArithmetic(self.emitter, self.tiling)
        self.vector = self.emitter.vector_type(self.tiling.element, self.schedule.lanes)
        self.in_room = self.schedule.products != "lanes"
        self.scratch = self._scratch()

    def _scratch(self) -> Value | None:
        """Room for a tile, where its sums come up elsewhere or are put aside, or the schedule asks
        for it."""
        if not (self.schedule.in_turn or self.in_room or self.owner.in_parts):
            return None
        rows = self.schedule.tile_rows
        if self.schedule.in_matrices:
            rows = -(-rows // self.tiling.dot.tile[0]) * self.tiling.dot.tile[0]
        count = rows * self.tiling.panel
        room = kernel.ScratchOp(
            (), (kernel.PointerType(self.tiling.element),), {"count": A.IntegerAttr(count)}
        )
        self.emitter.entry.append(room)
        return room.pointer

    # -- loops

    def over(self, scope: VectorScope, rows: Stretch, columns: Stretch, depth: Stretch) -> None:
        """All tiles of a block."""
        along_rows = self.schedule.inner == "rows"

        def one(row: Scalar, count: Scalar, most: int, column: Scalar, masks: Masks) -> None:
            tile = SumTile(self, scope.child(OUTER), rows, columns, depth, row, count, most)
            tile.at(column, masks)

        def panel(column: Scalar, masks: Masks) -> None:
            part = len(masks) < self.schedule.tile_vectors or any(m is not None for m in masks)
            if part and self.schedule.pack_ahead:
                pack_panel(self.owner, scope, columns, column, depth)
            along(rows, lambda row, count, most: one(row, count, most, column, masks))

        across, along = self._over_columns, RowTiles(self.emitter, self.tiling).over
        if along_rows:
            across(columns, panel)
        else:
            along(rows, lambda *to: across(columns, lambda *at: one(*to, *at)))
        if self.schedule.woven:
            finish_last(self, scope, rows, columns, depth)

    def tile(
        self, scope: VectorScope, rows: Stretch, columns: Stretch, depth: Stretch, row: Scalar
    ) -> SumTile:
        """A whole tile of a block, from a row on."""
        whole = self.schedule.tile_rows
        return SumTile(self, scope, rows, columns, depth, row, whole, whole)

    def _over_columns(self, columns: Stretch, body: Callable[[Scalar, Masks], None]) -> None:
        """Run `body(first column, masks of the vectors)` for each panel."""
        emitter, step, lanes = self.emitter, self.tiling.panel, self.schedule.lanes
        rest = self.tiling.columns.extent % step
        middle = end_of_whole(emitter, columns, step, rest == 0)

        def whole(column: Scalar, _: Sequence[Value]) -> list[Value]:
            body(column, [None] * self.schedule.tile_vectors)
            return []

        emitter.for_loop(columns.lower, middle, step, (), whole)
        if rest == 0 or middle == columns.upper:
            return

        def part() -> None:
            masks: Masks
            if isinstance(rest, int):
                starts = range(0, rest, lanes)
                masks = [
                    None if s + lanes <= rest else emitter.lane_mask(s, rest, lanes) for s in starts
                ]
            else:
                left = emitter.minus(columns.upper, middle)
                starts = range(0, step, lanes)
                masks = [emitter.lane_mask(s, left, lanes) for s in starts]
            body(middle, masks)

        if_less(emitter, middle, columns.upper, part)


class SumTile:
    """A tile's rows from `row` on, `count` of them, which are up to `most`: a number in registers
    of whole tiles alone, else as many. Its scope is of the place where it is written."""

    def __init__(
        self, tiles: TileWriter, scope: VectorScope, rows: Stretch, columns: Stretch,
        depth: Stretch, row: Scalar, count: Scalar, most: int,
    ) -> None:  # fmt: skip
        self.tiles, self.scope, self.depth = tiles, scope, depth
        self.rows, self.columns = rows, columns
        self.row, self.count, self.most = row, count, most
        self.emitter, self.tiling, self.owner = tiles.emitter, tiles.tiling, tiles.owner

    def at(self, column: Scalar, masks: Masks) -> None:
        """The tile with the panel from `column` on, and what follows its sums."""
        emitter = self.emitter
        self._fetch_operands(column, len(masks))
        if self.tiles.in_room:
            room = self.tiles.scratch
            assert room is not None
            if self.tiles.schedule.in_matrices:
                multiply(self, room, column)
            else:
                fill_room(self, room, column, masks)
            if self.owner.in_parts:
                KeptSums(self, column).add_room(room, partial(self._finish_room, column, masks))
            elif not self.tiles.schedule.woven:
                self._finish_room(column, masks)
            return
        if not self.owner.in_parts:
            self._finish(column, masks, self._sums(column, masks))
            return
        kept = KeptSums(self, column)
        kept.fetch()
        sums = kept.added_to(self._sums(column, masks))
        extent = emitter.scalar(self.tiling.depth.extent, self.scope)
        last = emitter.compare("sge", self.depth.upper, extent)

        def finish() -> None:
            self._into_room(sums)
            self._finish_room(column, masks)

        emitter.when(last, finish, lambda: kept.replace(sums))

    # -- sums

    def _sums(self, column: Scalar, masks: Masks) -> list[list[Value]]:
        emitter, group, arithmetic = self.emitter, self.tiling.group, self.tiles.arithmetic
        count, own = len(masks), self.most * len(masks)
        left, right = self._left(), self._right(column, masks)
        wide = emitter.vector_type(self.tiling.factor_element, arithmetic.several)

        copies = self._copies_ahead(column, masks)
        turns = [] if copies is not None else turns_of(self, column)
        every_term = [turn for turn in turns if turn.terms == group]

        def at(
            place: Scalar, carried: Sequence[Value], one: Value | None = None,
            every: Value | None = None,
        ) -> list[Value]:  # fmt: skip
            for turn in every_term if one is None else ():
                turn.fetch(place)
            factors = right(place, every)
            sums = list(carried[:own])
            ones = left(place, one)
            for r in range(self.most):
                splat = emitter.add(kernel.SplatOp, (ones(r),), wide)
                splat = arithmetic.unsigned(splat)
                for v, factor in enumerate(factors, r * len(factors)):
                    sums[v] = arithmetic.add_product(splat, factor, sums[v])
            return sums + arithmetic.add_beside(factors, carried[own:])

        begin, upper = self.depth.lower, self.depth.upper
        middle = upper if group == 1 else whole_groups(emitter, self.tiling, self.depth, group)
        sums = [*arithmetic.initial(own), *arithmetic.beside(count)]
        if copies is not None:
            begin, sums = self._with_copies(copies, at, sums)
        longer = [turn for turn in turns if turn.terms > group]
        sums = self._over_turns(longer, begin, middle, sums, at)
        if middle is not upper:
            sums = emitter.for_loop(
                middle, upper, group, sums,
                lambda place, carried: at(
                    place, carried,
                    *term_masks(emitter, place, upper, arithmetic.lanes, group),
                ),
            )  # fmt: skip
        sums = arithmetic.without(sums[:own], sums[own:])
        return [sums[k : k + count] for k in range(0, len(sums), count)]

    def _over_terms(
        self, lower: Scalar, upper: Scalar, sums: Sequence[Value], at: Callable[..., list[Value]]
    ) -> list[Value]:  # fmt: skip
        """The innermost loop."""
        before = self.emitter.block.last
        sums = self.emitter.for_loop(lower, upper, self.tiling.group, sums, at)
        innermost = self.emitter.block.last
        if isinstance(innermost, kernel.ForOp) and innermost is not before:
            innermost.attributes["unroll"] = A.IntegerAttr(self.tiling.schedule.terms)
        return sums

    def _over_turns(
        self, turns: Sequence[Turn], lower: Scalar, upper: Scalar, sums: list[Value],
        at: Callable[..., list[Value]],
    ) -> list[Value]:  # fmt: skip
        """The sums of terms, in turns with each of which something is fetched."""
        if not turns:
            return self._over_terms(lower, upper, sums, at)
        emitter, (turn, *shorter) = self.emitter, turns
        passed = emitter.minus(upper, lower)
        count = emitter.times(emitter.quotient(passed, turn.terms, True), turn.terms)
        end = emitter.plus(lower, count)

        def some(place: Scalar, carried: Sequence[Value]) -> list[Value]:
            turn.fetch(place)
            return self._over_turns(
                [each.behind(place, emitter) for each in shorter], 0, turn.terms, list(carried),
                lambda term, sums: at(emitter.plus(place, term), sums),
            )  # fmt: skip

        sums = emitter.for_loop(lower, end, turn.terms, sums, some)
        return self._over_terms(end, upper, sums, at)

    def _copies_ahead(self, column: Scalar, masks: Masks) -> NextPanel | None:
        """What this tile copies of the next panel."""
        own = self.tiles.schedule
        return NextPanel(self, column) if own.pack_ahead and self.is_whole else None

    def _with_copies(
        self, copies: NextPanel, at: Callable[[Scalar, Sequence[Value]], list[Value]],
        initial: list[Value],
    ) -> tuple[Scalar, list[Value]]:  # fmt: skip
        """The sums of the terms between which this tile packs a part of the next panel, and where
        the others begin: all but the last few, or none."""
        emitter, terms = self.emitter, copies.terms
        passed = emitter.minus(self.depth.upper, self.depth.lower)
        count = emitter.times(emitter.quotient(passed, terms, True), terms)
        end = emitter.plus(self.depth.lower, emitter.times(copies.takes_part, count))

        def some(place: Scalar, carried: Sequence[Value]) -> list[Value]:
            copy = copies.at(place)

            def one(term: Scalar, sums: Sequence[Value]) -> list[Value]:
                copy(term)
                return at(emitter.plus(place, term), sums)

            return emitter.for_loop(0, terms, 1, carried, one)

        return end, emitter.for_loop(self.depth.lower, end, terms, initial, some)

    def _left(self) -> Callable[[Scalar, Value | None], Callable[[int], Value]]:
        """What gives the rows' elements at a place of the depth, or groups of them from there on,
        under a mask."""
        emitter, group = self.emitter, self.tiling.group
        pointer, type_, base, step = self._left_array()
        shifts = self._row_shifts()
        type_ = emitter.vector_type(type_, group)

        def at(place: Scalar, mask: Value | None) -> Callable[[int], Value]:
            here = emitter.plus(base, emitter.times(place, step))

            def one(r: int) -> Value:
                loaded = emitter.load(pointer, emitter.plus(here, shifts[r]), type_, mask, None)
                return emitter.convert(loaded, self.tiling.factor_element)

            return one

        return at

    def left_begin(self) -> tuple[Value, Scalar]:
        """The factor with the rows, and where the tile's first row begins."""
        pointer, _, base, _ = self._left_array()
        return pointer, base

    def left_lines(self) -> Lines:
        """The tile's rows, whose terms follow each other."""
        pointer, type_, base, _ = self._left_array()
        places = [self.emitter.plus(base, shift) for shift in self._row_shifts()]
        return Lines(pointer, type_, places)

    def right_lines(self, columns: Sequence[Scalar]) -> Lines:
        """Some columns, whose terms follow each other."""
        pointer, type_, _ = self.right_array()
        return Lines(pointer, type_, [self.right_place(column) for column in columns])

    def _left_array(self) -> tuple[Value, Type, Scalar, Scalar]:
        """The pointer to the factor with the rows, its element, where the tile's first row begins,
        and the step along the depth."""
        emitter, factor, state = self.emitter, self.tiling.left, self.tiles.state
        scope, depth = self.scope.child(OUTER), self.tiling.depth.name
        if factor.packed:
            width = self.owner.left_row
            assert isinstance(width, int)
            passed = emitter.times(emitter.minus(self.row, self.rows.lower), width)
            base = emitter.minus(emitter.plus(self.scope.names[LEFT], passed), self.depth.lower)
            return self.owner.memory[LEFT], self.tiling.factor_element, base, 1
        access = factor.begin
        assert access is not None and access.storage is not None
        scope.names[self.tiling.rows.name] = self.row
        base = emitter.scalar(substitute(access.expression, {depth: 0}), scope)
        step = emitter.scalar(coefficient(access.expression, depth) or 0, scope)
        return state.pointers[access.storage.value], access.storage.element, base, step

    def _row_shifts(self) -> list[Scalar]:
        """How far each of the tile's rows is from the first."""
        emitter, factor = self.emitter, self.tiling.left
        row_step: Scalar
        if factor.packed:
            assert isinstance(self.owner.left_row, int)
            row_step = self.owner.left_row
        else:
            assert factor.access is not None
            along = coefficient(factor.access.expression, self.tiling.rows.name) or 0
            row_step = emitter.scalar(along, self.scope)
        return [emitter.times(r, row_step) for r in range(self.most)]

    def _right(
        self, column: Scalar, masks: Masks
    ) -> Callable[[Scalar, Value | None], list[Value]]:
        """What gives the panel's vectors at a place of the depth, or groups of terms from there on,
        under another mask."""
        emitter, lanes, group = self.emitter, self.tiles.schedule.lanes, self.tiling.group
        pointer, type_, step = self.right_array()
        bases = self._vector_places(column, len(masks))
        if self.tiling.right.packed:
            masks = [None] * len(masks)
        elif group > 1:
            upper = emitter.times(self.columns.upper, group)
            masks = [
                mask if mask is None else emitter.lane_mask(
                    emitter.times(emitter.plus(column, v * lanes), group), upper, lanes * group
                )
                for v, mask in enumerate(masks)
            ]  # fmt: skip
        vector = emitter.vector_type(type_, lanes * group)

        def at(place: Scalar, more: Value | None) -> list[Value]:
            passed = emitter.times(place, step)
            loads = []
            for base, mask in zip(bases, masks, strict=True):
                under = mask or more
                if mask is not None and more is not None:
                    under = emitter.add(arith.AndIOp, (mask, more), mask.type)
                place = emitter.plus(passed, base)
                loads.append(emitter.load(pointer, place, vector, under, None))
            return [emitter.convert(v, self.tiling.factor_element) for v in loads]

        return at

    def right_array(self) -> tuple[Value, Type, Scalar]:
        """The pointer to the factor with the columns, its element, and its step along the depth."""
        factor, memory = self.tiling.right, self.owner.memory
        if factor.packed:
            return memory[RIGHT], self.tiling.factor_element, self.tiling.panel
        access = factor.begin
        assert access is not None and access.storage is not None
        if self.tiling.group > 1 and self.tiles.schedule.products != "depth":
            pointer = self.tiles.state.pointers[access.storage.value]
            return pointer, access.storage.element, self.tiling.panel
        step = coefficient(access.expression, self.tiling.depth.name) or 0
        pointer = self.tiles.state.pointers[access.storage.value]
        return pointer, access.storage.element, self.emitter.scalar(step, self.scope)

    def right_place(self, column: Scalar, at: VectorScope | None = None) -> Scalar:
        """Where a column begins in the factor with the columns, at place 0 of the depth. at: the
        point, if it isn't the tile's."""
        emitter, tiling, names = self.emitter, self.tiling, self.scope.names
        if tiling.schedule.pack_ahead:
            begin = panel_place(self.owner, self.scope, self.columns, column, self.depth)
            return emitter.minus(begin, emitter.times(self.depth.lower, tiling.panel))
        if tiling.right.packed:
            depth = emitter.scalar(self.owner.packed_depth, self.scope)
            first = emitter.times(emitter.minus(column, self.columns.lower), depth)
            before = emitter.times(self.depth.lower, tiling.panel)
            return emitter.minus(emitter.plus(names[RIGHT], first), before)
        access = tiling.right.begin
        assert access is not None
        scope = (at or self.scope).child(OUTER)
        scope.names[tiling.columns.name] = column
        return emitter.scalar(substitute(access.expression, {tiling.depth.name: 0}), scope)

    def _vector_places(self, column: Scalar, count: int) -> list[Scalar]:
        """Where the vectors of a panel begin, at place 0 of the depth."""
        emitter, lanes, right = self.emitter, self.tiles.schedule.lanes, self.tiling.right
        group = self.tiling.group
        together = right.packed or (
            right.access is not None
            and lane_stride(right.access.expression, self.tiling.columns.name, self.tiling.panel)
            == group
        )
        places = [self.right_place(column)]
        for v in range(1, count):
            after = v * lanes
            if together:
                places.append(emitter.plus(places[0], after * group))
            else:
                places.append(self.right_place(emitter.plus(column, after)))
        return places

    @property
    def is_whole(self) -> bool:
        """Whether it has all rows that a tile may have."""
        return self.count == self.tiles.schedule.tile_rows

    @property
    def terms_in_turn(self) -> int:
        """Terms, or groups of them, that the innermost loop adds at a time."""
        return self.tiles.schedule.terms

    @property
    def number(self) -> Scalar | None:
        """Which of a block's tiles of rows this one is, where a panel meets one after the other;
        None for what is left behind whole ones."""
        own, emitter = self.tiles.schedule, self.emitter
        if own.inner != "rows" or (not self.is_whole and self.owner.whole_tiles):
            return None
        return emitter.quotient(emitter.minus(self.row, self.rows.lower), own.tile_rows, True)

    @property
    def whole_tiles(self) -> int:
        """At least how many tiles of rows a block has that are whole, or 1."""
        return max(self.owner.whole_tiles, 1)

    # -- what follows

    def _fetch_operands(self, column: Scalar, count: int) -> None:
        """Have what is read where the sums are stored fetched while they are computed."""
        emitter, tiling, lanes = self.emitter, self.tiling, self.tiles.schedule.lanes
        rows, columns = tiling.rows.name, tiling.columns.name
        for nest in self.tiles.after:
            for op, access in nest.member.reads.items():
                place, step = access.storage, coefficient(access.expression, columns)
                along = coefficient(access.expression, rows)
                if place is None or place.kind != "argument" or access.positions:
                    continue
                if not isinstance(op, loop.ReadOp) or step != 1 or along in (0, None):
                    continue
                scope = self.scope.child(OUTER)
                scope.names[rows], scope.names[columns] = self.row, column
                base = emitter.scalar(access.expression, scope)
                apart = emitter.scalar(along, scope)
                pointer = self.tiles.state.pointers[place.value]

                def fetch(
                    row: Scalar, pointer: Value = pointer, base: Scalar = base,
                    apart: Scalar = apart,
                ) -> None:  # fmt: skip
                    line = emitter.plus(base, emitter.times(apart, row))
                    for v in range(count):
                        there = emitter.value(emitter.plus(line, v * lanes))
                        emitter.effect(kernel.PrefetchOp, (pointer, there))

                self._for_rows(fetch)

    def _finish(
        self, column: Scalar, masks: Masks, sums: list[list[Value]]
    ) -> None:
        """Compute what follows the sums, and store."""
        emitter = self.emitter
        if self.tiles.scratch is not None:
            self._into_room(sums)
            self._finish_room(column, masks)
            return
        for r, line in enumerate(sums):
            self.finish_row(emitter.plus(self.row, r), column, masks, line)

    def _into_room(self, sums: list[list[Value]]) -> None:
        """Put the sums into the tile's room."""
        room, lanes, panel = self.tiles.scratch, self.tiles.schedule.lanes, self.tiling.panel
        assert room is not None
        for r, line in enumerate(sums):
            for v, value in enumerate(line):
                self.emitter.store(value, room, r * panel + v * lanes, None)

    def _over_room(self, body: Callable[[Scalar, list[Value]], None], masks: Masks) -> None:
        """Run `body(row of the tile, its sums in the tile's room)` for one row after the other, so
        that all registers serve what it does."""
        emitter, lanes, room = self.emitter, self.tiles.schedule.lanes, self.tiles.scratch
        assert room is not None

        def at(row: Scalar) -> None:
            first = emitter.times(row, self.tiling.panel)
            body(row, [
                emitter.load(room, emitter.plus(first, v * lanes), self.tiles.vector, None, None)
                for v in range(len(masks))
            ])  # fmt: skip

        self._for_rows(at)

    def _for_rows(self, body: Callable[[Scalar], None]) -> None:
        """Run `body(row of the tile)` for one row after the other."""
        def at(row: Scalar, _: Sequence[Value]) -> list[Value]:
            body(row)
            return []

        self.emitter.for_loop(0, self.count, 1, (), at)

    def _finish_room(self, column: Scalar, masks: Masks) -> None:
        """What follows the sums in the tile's room."""
        self._over_room(
            lambda row, sums: self.finish_row(
                self.emitter.plus(self.row, row), column, masks, sums
            ),
            masks,
        )

    def finish_row(
        self, row: Scalar, column: Scalar, masks: Masks, sums: list[Value]
    ) -> None:
        """Compute what follows a row's vectors of sums from a column on, and store."""
        scope = self.scope.child(OUTER)
        self.tiling.row_run.bind(self.emitter, row, scope)
        for nest in self.tiles.after:
            nest.body.enter(OUTER, scope)
        whole = sum(1 for m in masks if m is None)
        if whole:
            self._finish_vectors(scope, column, sums[:whole], None)
        for v in range(whole, len(masks)):
            place = self.emitter.plus(column, v * self.tiles.schedule.lanes)
            self._finish_vectors(scope, place, sums[v : v + 1], masks[v])

    def _finish_vectors(
        self, scope: VectorScope, column: Scalar, sums: list[Value], mask: Value | None
    ) -> None:
        emitter, axis, lanes = self.emitter, self.tiling.columns, self.tiles.schedule.lanes
        inner = scope.child(SHARED)
        inner.names[axis.name] = column
        limit = None if mask is None else emitter.scalar(axis.extent, self.scope)
        inner.lanes = Lanes(axis.name, lanes, len(sums), mask, limit)
        (result,) = self.tiling.products.member.compute.results
        element = loop.signless(result.type.element)  # type: ignore[attr-defined]
        self.tiles.sums.store(result, [emitter.convert(v, element) for v in sums], inner)
        for nest in self.tiles.after:
            nest.body.enter(SHARED, inner)
            nest.run(inner)


