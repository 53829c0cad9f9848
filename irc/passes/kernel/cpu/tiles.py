"""Reads across the rows, transposed in squares of vectors on their way to the stack."""

from __future__ import annotations

from irc.dialects import kernel
from irc.ir.core import Value
from irc.ir.types import FloatType, VectorType, index
from irc.passes.kernel.cpu.body import BodyEmitter
from irc.passes.kernel.cpu.emit import Scalar, VectorScope
from irc.passes.kernel.cpu.plan import Access


class TransposedReads:
    """Emits the reads of a member's body that go through transposed tiles."""

    def __init__(self, body: BodyEmitter) -> None:
        self.body, self.placed = body, body.placed
        self.emitter, self.state, self.vectors = body.emitter, body.state, body.vectors

    def fill(self, access: Access, scope: VectorScope) -> None:
        """Put the transposed tile of a read on the stack: a row of vector lanes for each of the
        tile's rows."""
        tile = self.state.tile
        assert tile is not None
        if tile.full is None:
            self.fill_tile(access, scope, True)
        else:
            self.emitter.when(
                tile.full,
                lambda: self.fill_tile(access, scope.child(scope.level), True),
                lambda: self.fill_tile(access, scope.child(scope.level), False),
            )

    def fill_tile(self, access: Access, scope: VectorScope, whole: bool) -> None:
        """The same for a tile of which it is known whether it is `whole`."""
        lanes = scope.lanes
        assert lanes is not None and self.vectors is not None
        masked = lanes.mask is not None or not whole
        if lanes.width == 1 or (masked and self.vectors.tail != "mask"):
            self._fill_rows(access, scope)
            return
        first, pointer = self.placed.transposed[access]
        for number, line in enumerate(self._transposed_rows(first, scope, whole)):
            self.emitter.store(line, pointer, number * lanes.width, None)

    def _transposed_rows(self, first: Access, scope: VectorScope, whole: bool) -> list[Value]:
        """The rows of a tile in registers; those that it lacks, unless it is `whole`, are zeros,
        and lanes outside of the vectors' mask repeat the last one inside."""
        emitter, lanes, tile_rows = self.emitter, scope.lanes, self.state.tile
        assert lanes is not None and tile_rows is not None
        source, element = self.state.pointers[first.storage.value], first.storage.element  # type: ignore[union-attr]
        width = lanes.width
        row = emitter.vector_type(element, width)
        square = VectorType((width, width), element)
        zero = 0.0 if isinstance(element, FloatType) else 0
        tile = emitter.filled(zero, element, square)
        base = self.body.offset(first, 0, scope)
        step = emitter.scalar(self.placed.indices[first].stride or 0, scope)
        mask = None if whole else emitter.lane_mask(tile_rows.lower, tile_rows.upper, width)
        last: Scalar | None = None
        if lanes.limit is not None:
            last = emitter.minus(emitter.minus(lanes.limit, scope.names[lanes.axis]), 1)
        for lane in range(width):
            inside = lane if last is None else emitter.least(lane, last)
            place = emitter.plus(base, emitter.times(step, inside))
            loaded = emitter.load(source, place, row, mask, None)
            operands = (loaded, tile, emitter.number(lane, index))
            tile = emitter.add(kernel.InsertOp, operands, square)
        tile = emitter.add(kernel.TransposeOp, (tile,), square)
        numbers = [emitter.number(number, index) for number in range(width)]
        return [emitter.add(kernel.ExtractOp, (tile, number), row) for number in numbers]

    def hold_rows(self, scope: VectorScope) -> None:
        """Have the transposed reads of a whole tile take its rows from registers."""
        tile = self.state.tile
        assert tile is not None
        rows = {
            first: self._transposed_rows(first, scope, True)
            for first in dict.fromkeys(first for first, _ in self.placed.transposed.values())
        }
        tile.rows = {access: rows[first] for access, (first, _) in self.placed.transposed.items()}

    def _fill_rows(self, access: Access, scope: VectorScope) -> None:
        emitter, tile, lanes = self.emitter, self.state.tile, scope.lanes
        assert tile is not None and lanes is not None
        first, pointer = self.placed.transposed[access]
        source, element = self.state.pointers[first.storage.value], first.storage.element  # type: ignore[union-attr]
        row = emitter.vector_type(element, lanes.width)
        base = self.body.offset(first, 0, scope)
        stride = emitter.scalar(self.placed.indices[first].stride or 0, scope)

        def body(position: Scalar, carried: list[Value]) -> list[Value]:
            number = emitter.minus(position, tile.lower)
            place = emitter.plus(base, number)
            if lanes.width == 1:
                value = emitter.load(source, place, row, None, None)
            else:
                places = emitter.vector_index(place, stride, lanes.width, scope.child(scope.level))
                value = emitter.gather(source, places, row, lanes.mask, None)
            assert self.vectors is not None
            emitter.store(value, pointer, emitter.times(number, self.vectors.width), None)
            return []

        emitter.for_loop(tile.lower, tile.upper, 1, (), body)
