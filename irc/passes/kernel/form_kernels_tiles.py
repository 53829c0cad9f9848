"""Reads across the rows, transposed in squares of vectors on their way to the stack."""

from __future__ import annotations

from irc.dialects import kernel
from irc.ir.core import Value
from irc.ir.types import FloatType, VectorType, index
from irc.passes.kernel.form_kernels_body import Body
from irc.passes.kernel.form_kernels_emit import Scalar, Scope
from irc.passes.kernel.form_kernels_plan import Access


class TiledBody(Body):
    """Emits transposed reads too."""

    def _fill(self, access: Access, scope: Scope) -> None:
        """Put the transposed tile of a read on the stack: a row of vector lanes for each of the
        tile's rows."""
        emitter, tile, lanes = self.emitter, self.state.tile, scope.lanes
        assert tile is not None and lanes is not None
        if lanes.mask is not None or lanes.width == 1:
            self._fill_rows(access, scope)
        elif tile.full is None:
            self._fill_whole(access, scope)
        else:
            emitter.when(
                tile.full,
                lambda: self._fill_whole(access, scope.child(scope.level)),
                lambda: self._fill_rows(access, scope.child(scope.level)),
            )

    def _fill_whole(self, access: Access, scope: Scope) -> None:
        emitter, lanes = self.emitter, scope.lanes
        assert lanes is not None
        first, pointer = self.transposed[access]
        source, element = self.state.pointers[first.storage.value], first.storage.element  # type: ignore[union-attr]
        width = lanes.width
        row = emitter.vector_type(element, width)
        square = VectorType((width, width), element)
        zero = 0.0 if isinstance(element, FloatType) else 0
        tile = emitter.filled(zero, element, square)
        base = self.offset(first, 0, scope)
        step = emitter.scalar(self.indices[first].stride or 0, scope)
        for lane in range(width):
            place = emitter.plus(base, emitter.times(step, lane))
            loaded = emitter.load(source, place, row, None, None)
            operands = (loaded, tile, emitter.number(lane, index))
            tile = emitter.add(kernel.InsertOp, operands, square)
        tile = emitter.add(kernel.TransposeOp, (tile,), square)
        for number in range(width):
            line = emitter.add(kernel.ExtractOp, (tile, emitter.number(number, index)), row)
            emitter.store(line, pointer, number * width, None)

    def _fill_rows(self, access: Access, scope: Scope) -> None:
        emitter, tile, lanes = self.emitter, self.state.tile, scope.lanes
        assert tile is not None and lanes is not None
        first, pointer = self.transposed[access]
        source, element = self.state.pointers[first.storage.value], first.storage.element  # type: ignore[union-attr]
        row = emitter.vector_type(element, lanes.width)
        base = self.offset(first, 0, scope)
        stride = emitter.scalar(self.indices[first].stride or 0, scope)

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
