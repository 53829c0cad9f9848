"""The kernel of a `graph.winograd_conv`: blocks of tiles through both transforms and the products.

A call computes the blocks [begin, end) of `tiles` tiles each. For each block, in this order:

* the image's transform writes `image[product, tile, channel]`,
* then, for each panel of channels out, a matrix product for each of the 36 products writes
  `sums[product, tile, channel of the panel]`, and the results' transform reads them, adds the
  bias, applies the activation and stores.

Both arrays are the launch's own, large enough that each call has its part (that of its first
block) and written again by each block (`sums` by each panel), so that they stay in the cache.
Their rows past the last tile are undefined: they are multiplied, and never read afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from irc.dialects import arith, kernel
from irc.dialects.graph import winograd
from irc.dialects.graph.winograd import PRODUCTS, READS, TILE, WinogradShape
from irc.ir.core import Value
from irc.ir.location import UNKNOWN, Location
from irc.passes.kernel.convolutions.convolution_kernel import ConvolutionKernel, Vector
from irc.passes.kernel.cpu.emit import Scalar


def form_winograd_kernel(
    shape: WinogradShape, name: str, location: Location = UNKNOWN
) -> kernel.KernelFuncOp:
    """The kernel: pointers to the image (channels innermost), weights [panels, PRODUCTS,
    channels, panel], bias and `other` where there are, result and the two workspaces."""
    return _Winograd(shape, name, location).form()


class _Winograd(ConvolutionKernel):
    WORKSPACES = ("image", "sums")

    def __init__(self, shape: WinogradShape, name: str, location: Location) -> None:
        work = 2 * PRODUCTS * shape.block * shape.channels * shape.channels_out
        super().__init__(shape, name, location, work)
        self.image, self.sums = self.workspaces
        self.panel_start: Scalar = 0
        self.panel_channels = 0
        self.sizes = [self.scalar(d) for d in (shape.height, shape.width, *shape.out_sizes)]
        self.counts = [self.scalar(d) for d in shape.tile_counts]
        self.total = self.scalar(shape.tile_count)
        self.own_image = self.emitter.times(self.begin, shape.workspaces[0][1])
        self.own_sums = self.emitter.times(self.begin, shape.workspaces[1][1])

    def over_block(self, number: Scalar, _: Sequence[Value]) -> Sequence[Value]:
        """The three steps for one block."""
        e, shape = self.emitter, self.shape
        first = e.times(number, shape.block)
        count = e.least(shape.block, e.minus(self.total, first))
        self.over_tiles(first, count, self.transform_image)

        def at_panel(panel: Scalar, channels: int) -> None:
            self.multiply(count, panel)
            self.panel_start, self.panel_channels = e.times(panel, shape.panel), channels
            self.over_tiles(first, count, self.transform_result)

        self.over_panels(at_panel)
        return ()

    # -- tiles

    def over_tiles(
        self, first: Scalar, count: Scalar, body: Callable[[Scalar, Scalar, Scalar, Scalar], None]
    ) -> None:
        """Run `body(tile of the block, image, row, column of tiles)`."""
        e = self.emitter
        high, wide = self.counts

        def at(tile: Scalar, _: Sequence[Value]) -> Sequence[Value]:
            number = e.plus(first, tile)
            line = e.quotient(number, wide, True)
            column = e.remainder(number, wide, True)
            body(tile, e.quotient(line, high, True), e.remainder(line, high, True), column)
            return ()

        e.for_loop(0, count, 1, (), at)

    def transform_image(self, tile: Scalar, image: Scalar, row: Scalar, column: Scalar) -> None:
        """B' d B of one tile."""
        e, shape = self.emitter, self.shape
        high, wide = self.sizes[:2]
        top = e.minus(e.times(row, TILE), shape.padding[0])
        left = e.minus(e.times(column, TILE), shape.padding[1])
        rows = [self.inside(e.plus(top, k), high) for k in range(READS)]
        columns = [self.inside(e.plus(left, k), wide) for k in range(READS)]
        everything = self.all_of([rows[0], rows[-1], columns[0], columns[-1]])
        corner = e.plus(e.times(e.plus(e.times(image, high), top), wide), left)
        places = [
            [e.times(self.place(corner, i, j), shape.channels) for j in range(READS)]
            for i in range(READS)
        ]
        stored = e.plus(self.own_image, e.times(tile, shape.image_row))

        def write(masked: bool) -> None:
            def at(channel: Scalar, lanes: Value | None) -> None:
                def element(i: int, j: int) -> Vector:
                    mask = self.both(rows[i], columns[j], lanes) if masked else lanes
                    return e.load(self.source, e.plus(places[i][j], channel), self.vector,
                                  mask, None)  # fmt: skip

                parts = self.twice(element, READS, self.image_line)
                start = e.plus(stored, channel)
                for i, line in enumerate(parts):
                    for j, value in enumerate(line):
                        part = (i * READS + j) * shape.part(shape.image_row)
                        e.store(value, self.image, e.plus(start, part), None)

            self.over_channels(shape.channels, at)

        e.when(everything, lambda: write(False), lambda: write(True))

    def place(self, corner: Scalar, i: int, j: int) -> Scalar:
        """The position of a tile's element, in pixels."""
        e = self.emitter
        return e.plus(e.plus(corner, e.times(i, self.sizes[1])), j)

    def transform_result(self, tile: Scalar, image: Scalar, row: Scalar, column: Scalar) -> None:
        """A' m A of one tile, and what follows it."""
        e, shape = self.emitter, self.shape
        high, wide = self.sizes[2:]
        top, left = e.times(row, TILE), e.times(column, TILE)
        rows = [e.compare("slt", e.plus(top, k), high) for k in range(TILE)]
        columns = [e.compare("slt", e.plus(left, k), wide) for k in range(TILE)]
        everything = self.all_of([rows[-1], columns[-1]])
        corner = e.plus(e.times(e.plus(e.times(image, high), top), wide), left)
        places = [
            [e.times(e.plus(e.plus(corner, e.times(a, wide)), b), shape.channels_out)
             for b in range(TILE)]
            for a in range(TILE)
        ]  # fmt: skip
        start = e.plus(self.own_sums, e.times(tile, shape.panel))

        def write(masked: bool) -> None:
            def at(channel: Scalar, lanes: Value | None) -> None:
                def element(i: int, j: int) -> Vector:
                    part = (i * READS + j) * shape.part(shape.panel)
                    offset = e.plus(e.plus(start, channel), part)
                    return e.load(self.sums, offset, self.vector, None, None)

                parts = self.twice(element, READS, self.result_line)
                place = e.plus(self.panel_start, channel)
                bias = self.biases(place, [lanes])[0]
                for a, line in enumerate(parts):
                    for b, value in enumerate(line):
                        mask = self.both(rows[a], columns[b], lanes) if masked else lanes
                        offset = e.plus(places[a][b], place)
                        value = value if self.bias is None else self.binary(
                            arith.AddFOp, value, bias
                        )
                        result = self.finished(value, offset, mask)
                        e.store(result, self.result, offset, mask)

            self.over_channels(self.panel_channels, at)

        e.when(everything, lambda: write(False), lambda: write(True))

    # -- transforms

    def twice(
        self,
        element: Callable[[int, int], Vector],
        count: int,
        line: Callable[[list[Vector]], list[Vector]],
    ) -> list[list[Vector]]:
        """A transform of each column, then of each row of what that gives."""
        columns = [line([element(i, j) for i in range(count)]) for j in range(count)]
        return [line(list(row)) for row in zip(*columns, strict=True)]

    def image_line(self, d: list[Vector]) -> list[Vector]:
        """B' d: at +-p the polynomial's even part plus and minus p times its odd part."""
        inner, outer = winograd.INNER, winograd.OUTER
        total, product = inner**2 + outer**2, (inner * outer) ** 2
        first = self.fma(product, d[0], self.fma(-total, d[2], d[4]))
        last = self.fma(product, d[1], self.fma(-total, d[3], d[5]))
        between = []
        for point, square in ((inner, outer**2), (outer, inner**2)):
            even, odd = self.fma(-square, d[2], d[4]), self.fma(-square, d[1], d[3])
            between += [self.fma(point, odd, even), self.fma(-point, odd, even)]
        return [first, *between, last]

    def result_line(self, m: list[Vector]) -> list[Vector]:
        """A' m: sums of the pairs at +-p for even powers, differences for odd ones."""
        inner, outer = winograd.INNER, winograd.OUTER
        pairs = []
        for a, b in ((m[1], m[2]), (m[3], m[4])):
            pairs.append((self.binary(arith.AddFOp, a, b), self.binary(arith.SubFOp, a, b)))
        (even, odd), (even2, odd2) = pairs
        zeroth = self.binary(arith.AddFOp, m[0], self.binary(arith.AddFOp, even, even2))
        first = self.fma(inner, odd, self.binary(arith.MulFOp, self.number(outer), odd2))
        second = self.fma(
            inner**2, even, self.binary(arith.MulFOp, self.number(outer**2), even2)
        )
        third = self.fma(inner**3, odd, self.fma(outer**3, odd2, m[5]))
        return [zeroth, first, second, third]

    # -- products

    def multiply(self, count: Scalar, panel: Scalar) -> None:
        """The matrix product of each of the PRODUCTS parts with a panel of its weights."""
        e, shape = self.emitter, self.shape
        zeros = [self.number(0.0)] * shape.vectors

        def at_part(part: Scalar, _: Sequence[Value]) -> Sequence[Value]:
            image = e.plus(self.own_image, e.times(part, shape.part(shape.image_row)))
            sums = e.plus(self.own_sums, e.times(part, shape.part(shape.panel)))
            number = e.plus(e.times(panel, PRODUCTS), part)
            weight = e.times(number, shape.channels * shape.panel)

            def at_rows(row: Scalar, _: Sequence[Value]) -> Sequence[Value]:
                rows = e.plus(image, e.times(row, shape.image_row))

                def offset(channel: Scalar, k: int) -> Scalar:
                    return e.plus(e.plus(rows, channel), k * shape.image_row)

                products = self.products(
                    self.image, offset, weight, zeros, self.after(weight, row)
                )
                start = e.plus(sums, e.times(row, shape.panel))
                for k, vectors in enumerate(products):
                    for v, value in enumerate(vectors):
                        place = k * shape.panel + v * shape.lanes
                        e.store(value, self.sums, e.plus(start, place), None)
                return ()

            e.for_loop(0, count, shape.rows, (), at_rows)
            return ()

        e.for_loop(0, PRODUCTS, 1, (), at_part)
