"""TileWriter of sums in registers: the innermost loop of a contraction, and what follows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from irc.dialects import kernel, loop, math
from irc.ir import attributes as A
from irc.ir.core import Value
from irc.ir.symbols import Dim, coefficient, substitute
from irc.ir.types import i1
from irc.passes.kernel.cpu.contraction.packing import LEFT, RIGHT
from irc.passes.kernel.cpu.emit import Lanes, Scalar, VectorScope
from irc.passes.kernel.cpu.nest import Nest
from irc.passes.kernel.cpu.place import OUTER, SHARED

if TYPE_CHECKING:
    from irc.passes.kernel.cpu.contraction.kernel import Stretch, _ContractionKernel

Masks = Sequence[Value | None]

UNROLL = 4
"""Terms of the sums that the innermost loop adds at a time."""


class TileWriter:
    """Writes the tiles of a kernel."""

    def __init__(self, owner: _ContractionKernel) -> None:
        self.owner, self.tiling, self.schedule = owner, owner.tiling, owner.schedule
        self.emitter, self.state = owner.emitter, owner.state
        products = self.tiling.products
        empty = self.schedule
        self.sums = Nest(self.state, products.member, products.depth, None, empty).body
        self.after = [Nest(self.state, m, [], None, empty) for m in products.after]
        self.vector = self.emitter.vector_type(self.tiling.element, self.schedule.lanes)

    # -- loops

    def over(self, scope: VectorScope, rows: Stretch, columns: Stretch, depth: Stretch) -> None:
        """All tiles of a block."""
        along_rows = self.schedule.inner == "rows"

        def one(
            row: Scalar, count: int, limit: Scalar | None, column: Scalar, masks: Masks
        ) -> None:
            tile = _SumTile(self, scope.child(OUTER), rows, columns, depth, row, count, limit)
            tile.at(column, masks)

        across, along = self._over_columns, self._over_rows
        if along_rows:
            across(columns, lambda *at: along(rows, lambda *to: one(*to, *at)))
        else:
            along(rows, lambda *to: across(columns, lambda *at: one(*to, *at)))

    def _over_rows(
        self, rows: Stretch, body: Callable[[Scalar, int, Scalar | None], None]
    ) -> None:
        """Run `body(first row, rows, end of the rows)` for each tile; without an end all are
        rows."""
        emitter, step, extent = self.emitter, self.schedule.tile_rows, self.tiling.rows.extent
        rest = extent % step
        middle = self._whole(rows, step, rest == 0)

        def whole(row: Scalar, _: Sequence[Value]) -> list[Value]:
            body(row, step, None)
            return []

        emitter.for_loop(rows.lower, middle, step, (), whole)
        if rest == 0 or middle == rows.upper:
            return

        def part() -> None:
            if isinstance(rest, int):
                body(middle, rest, None)
            else:
                body(middle, step, rows.upper)

        self._if_less(middle, rows.upper, part)

    def _over_columns(self, columns: Stretch, body: Callable[[Scalar, Masks], None]) -> None:
        """Run `body(first column, masks of the vectors)` for each panel."""
        emitter, step, lanes = self.emitter, self.tiling.panel, self.schedule.lanes
        rest = self.tiling.columns.extent % step
        middle = self._whole(columns, step, rest == 0)

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

        self._if_less(middle, columns.upper, part)

    def _whole(self, block: Stretch, step: int, even: bool) -> Scalar:
        """The end of a block's whole tiles."""
        if even:
            return block.upper
        emitter = self.emitter
        count = emitter.quotient(emitter.minus(block.upper, block.lower), step, True)
        return emitter.plus(block.lower, emitter.times(count, step))

    def _if_less(self, a: Scalar, b: Scalar, body: Callable[[], None]) -> None:
        if isinstance(a, int) and isinstance(b, int):
            if a < b:
                body()
            return
        self.emitter.when(self.emitter.compare("slt", a, b), body)


class _SumTile:
    """A tile's rows from `row` on; with a `limit`, those below it alone are rows. Its scope is of
    the place where it is written."""

    def __init__(
        self, tiles: TileWriter, scope: VectorScope, rows: Stretch, columns: Stretch,
        depth: Stretch, row: Scalar, count: int, limit: Scalar | None,
    ) -> None:  # fmt: skip
        self.tiles, self.scope, self.depth = tiles, scope, depth
        self.rows, self.columns = rows, columns
        self.row, self.count, self.limit = row, count, limit
        self.emitter, self.tiling, self.owner = tiles.emitter, tiles.tiling, tiles.owner

    def at(self, column: Scalar, masks: Masks) -> None:
        """The tile with the panel from `column` on, and what follows its sums."""
        emitter = self.emitter
        sums = self._sums(column, masks, self._initial(column, masks))
        if not self.owner.in_parts:
            self._finish(column, masks, sums)
            return
        extent = emitter.scalar(self.tiling.depth.extent, self.scope)
        last = emitter.compare("sge", self.depth.upper, extent)
        emitter.when(
            last, lambda: self._finish(column, masks, sums), lambda: self._keep(column, sums)
        )

    # -- sums

    def _sums(
        self, column: Scalar, masks: Masks, initial: Sequence[Value]
    ) -> list[list[Value]]:
        emitter, vector, element = self.emitter, self.tiles.vector, self.tiling.element
        left, right = self._left(), self._right(column, masks)

        def at(place: Scalar, carried: Sequence[Value]) -> list[Value]:
            factors = right(place)
            sums = list(carried)
            ones = left(place)
            for r in range(self.count):
                one = emitter.convert(ones(r), element)
                splat = emitter.add(kernel.SplatOp, (one,), vector)
                for v, factor in enumerate(factors, r * len(factors)):
                    sums[v] = emitter.add(math.FmaOp, (splat, factor, sums[v]), vector)
            return sums

        sums = emitter.for_loop(self.depth.lower, self.depth.upper, 1, initial, at)
        innermost = emitter.block.last
        if isinstance(innermost, kernel.ForOp):
            innermost.attributes["unroll"] = A.IntegerAttr(UNROLL)
        count = len(masks)
        return [sums[k : k + count] for k in range(0, len(sums), count)]

    def _left(self) -> Callable[[Scalar], Callable[[int], Value]]:
        """What gives the rows' elements at a place of the depth."""
        emitter, factor, state = self.emitter, self.tiling.left, self.tiles.state
        scope, depth = self.scope.child(OUTER), self.tiling.depth.name
        row_step: Scalar
        step: Scalar
        pointer: Value
        if factor.packed:
            width = self.owner.left_row
            assert isinstance(width, int)
            passed = emitter.times(emitter.minus(self.row, self.rows.lower), width)
            base = emitter.minus(emitter.plus(self.scope.names[LEFT], passed), self.depth.lower)
            pointer, type_, step, row_step = self.owner.memory[LEFT], self.tiling.element, 1, width
        else:
            access = factor.access
            assert access is not None and access.storage is not None
            pointer, type_ = state.pointers[access.storage.value], access.storage.element
            scope.names[self.tiling.rows.name] = self.row
            base = emitter.scalar(substitute(access.expression, {depth: 0}), scope)
            step = emitter.scalar(coefficient(access.expression, depth) or 0, scope)
            along = coefficient(access.expression, self.tiling.rows.name) or 0
            row_step = emitter.scalar(along, scope)
        shifts: list[Scalar] = []
        for r in range(self.count):
            number: Scalar = r
            if self.limit is not None and r:
                most = emitter.minus(emitter.minus(self.limit, self.row), 1)
                number = emitter.least(r, most)
            shifts.append(emitter.times(number, row_step))

        def at(place: Scalar) -> Callable[[int], Value]:
            here = emitter.plus(base, emitter.times(place, step))
            return lambda r: emitter.load(pointer, emitter.plus(here, shifts[r]), type_, None, None)

        return at

    def _right(
        self, column: Scalar, masks: Masks
    ) -> Callable[[Scalar], list[Value]]:
        """What gives the panel's vectors at a place of the depth."""
        emitter, factor, lanes = self.emitter, self.tiling.right, self.tiles.schedule.lanes
        step: Scalar
        pointer: Value
        if factor.packed:
            panel, names = self.tiling.panel, self.scope.names
            depth = emitter.scalar(self.owner.depth_block, self.scope)
            base = emitter.minus(column, self.columns.lower)
            base = emitter.plus(names[RIGHT], emitter.times(base, depth))
            base = emitter.minus(base, emitter.times(self.depth.lower, panel))
            pointer, type_, step = self.owner.memory[RIGHT], self.tiling.element, panel
            bases = [emitter.plus(base, v * lanes) for v in range(len(masks))]
            masks = [None] * len(masks)
        else:
            access = factor.access
            assert access is not None and access.storage is not None
            pointer = self.tiles.state.pointers[access.storage.value]
            type_ = access.storage.element
            moved = substitute(access.expression, {self.tiling.depth.name: 0})
            along = coefficient(access.expression, self.tiling.depth.name) or 0
            step = emitter.scalar(along, self.scope)
            bases = self._vector_places(moved, column, len(masks))
        vector = emitter.vector_type(type_, lanes)

        def at(place: Scalar) -> list[Value]:
            passed = emitter.times(place, step)
            loads = [
                emitter.load(pointer, emitter.plus(passed, base), vector, mask, None)
                for base, mask in zip(bases, masks, strict=True)
            ]
            return [emitter.convert(v, self.tiling.element) for v in loads]

        return at

    def _vector_places(self, expression: Dim, column: Scalar, count: int) -> list[Scalar]:
        """Where the vectors of a panel begin in an array."""
        from irc.passes.kernel.cpu.plan import lane_stride

        emitter, name = self.emitter, self.tiling.columns.name
        lanes = self.tiles.schedule.lanes
        places: list[Scalar] = []
        together = lane_stride(expression, name, self.tiling.panel) == 1
        for v in range(count):
            if together and v:
                places.append(emitter.plus(places[0], v * lanes))
                continue
            scope = self.scope.child(OUTER)
            scope.names[name] = emitter.plus(column, v * lanes)
            places.append(emitter.scalar(expression, scope))
        return places

    # -- sums of a part of the depth

    def _initial(self, column: Scalar, masks: Masks) -> list[Value]:
        """What the sums begin with: what was added before, or zeros."""
        emitter, lanes = self.emitter, self.tiles.schedule.lanes
        zero = emitter.number(0.0, self.tiling.element, lanes)
        if not self.owner.in_parts:
            return [zero] * (self.count * len(masks))
        later = emitter.compare("sgt", self.depth.lower, 0)
        mask = emitter.add(kernel.SplatOp, (later,), emitter.vector_type(i1, lanes))
        memory, vector = self.owner.memory["sums"], self.tiles.vector
        return [
            emitter.load(memory, self._kept(r, v, column), vector, mask, zero)
            for r in range(self.count)
            for v in range(len(masks))
        ]

    def _keep(self, column: Scalar, sums: list[list[Value]]) -> None:
        memory = self.owner.memory["sums"]
        for r, line in enumerate(sums):
            for v, value in enumerate(line):
                self.emitter.store(value, memory, self._kept(r, v, column), None)

    def _kept(self, row: int, vector: int, column: Scalar) -> Scalar:
        """The place of sums in the kernel's own memory; a block of columns begins with them."""
        emitter, own = self.emitter, self.tiles.schedule
        width = emitter.scalar(self.owner.sums_row, self.scope)
        number = emitter.plus(self.row, row)
        if own.point_rows:
            number = emitter.remainder(number, own.point_rows, True)
        if own.point_columns:
            column = emitter.remainder(column, own.point_columns, True)
        base = emitter.plus(self.scope.names["sums"], emitter.times(number, width))
        return emitter.plus(emitter.plus(base, column), vector * own.lanes)

    # -- what follows

    def _finish(
        self, column: Scalar, masks: Masks, sums: list[list[Value]]
    ) -> None:
        """Compute what follows the sums, and store."""
        emitter = self.emitter
        for r, line in enumerate(sums):
            place = emitter.plus(self.row, r)
            if self.limit is None or not r:
                self._finish_row(place, column, masks, line)
            else:
                inside = emitter.compare("slt", place, self.limit)
                emitter.when(inside, lambda p=place, a=line: self._finish_row(p, column, masks, a))  # type: ignore[misc]

    def _finish_row(
        self, row: Scalar, column: Scalar, masks: Masks, sums: list[Value]
    ) -> None:
        scope = self.scope.child(OUTER)
        scope.names[self.tiling.rows.name] = row
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


