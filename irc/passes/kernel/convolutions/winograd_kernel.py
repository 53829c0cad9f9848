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

import functools
from collections.abc import Callable, Sequence
from typing import Any

from irc.dialects import arith, kernel, math
from irc.dialects.graph import winograd
from irc.dialects.graph.winograd import FIGURES, PRODUCTS, READS, TILE, WinogradShape
from irc.ir import attributes as A
from irc.ir.attributes import Attribute, Type
from irc.ir.core import Value
from irc.ir.location import UNKNOWN, Location
from irc.ir.symbols import Dim, free_symbols
from irc.ir.types import f32, i1, index
from irc.passes.kernel.cpu.emit import Emitter, Scalar, VectorScope

Vector = Value


def form_winograd_kernel(
    shape: WinogradShape, name: str, location: Location = UNKNOWN
) -> kernel.KernelFuncOp:
    """The kernel: pointers to the image (channels innermost), weights [panels, PRODUCTS,
    channels, panel], bias and `other` where there are, result and the two workspaces."""
    return _Winograd(shape, name, location).form()


class _Winograd:
    """A kernel over blocks of tiles.

    Its pointers: image (channels innermost), weights in panels, bias and `other` where there are,
    the result, and the two workspaces, of which a call has the part of its first block.
    """

    def __init__(self, shape: WinogradShape, name: str, location: Location) -> None:
        self.shape = shape
        work = 2 * PRODUCTS * shape.block * shape.channels * shape.channels_out
        dims = (shape.batch, shape.height, shape.width)
        symbols = sorted(set().union(*(free_symbols(d) for d in dims)))
        names = ["source", "weight", *["bias"] * shape.bias, *["other"] * shape.other]
        inputs = len(names)
        names += ["result", "image", "sums"]
        types: list[Type] = [kernel.PointerType(f32)] * len(names)
        entries: dict[str, Attribute] = {
            "outputs": A.DenseIntsAttr(range(inputs, len(names))),
            "grid": A.DimAttr(shape.blocks),
            "work": A.DimAttr(work),
        }
        if symbols:
            entries["symbols"] = A.ArrayAttr([A.StringAttr(s) for s in symbols])
        if shape.other:
            entries["inplace"] = A.DenseIntsAttr((inputs - 1, inputs))
        types += [index] * (len(symbols) + 2)
        self.func = kernel.KernelFuncOp.create(name, types, "cpu", **entries)
        self.func.location = location
        self.emitter = Emitter(self.func.block)
        self.emitter.location = location
        self.scope = VectorScope()
        arguments = list(self.func.block.arguments)
        self.begin, self.end = arguments[-2:]
        for hint, argument in zip((*names, *symbols, "begin", "end"), arguments, strict=True):
            argument.name_hint = hint
        self.source, self.weight = arguments[:2]
        self.bias = arguments[2] if shape.bias else None
        self.other = arguments[inputs - 1] if shape.other else None
        self.result, self.image, self.sums = arguments[inputs : len(names)]
        self.scope.names.update(zip(symbols, arguments[len(names) :], strict=False))
        self.panel_start: Scalar = 0
        self.panel_channels = 0
        self.sizes = [self.scalar(d) for d in (shape.height, shape.width, *shape.out_sizes)]
        self.counts = [self.scalar(d) for d in shape.tile_counts]
        self.total = self.scalar(shape.tile_count)
        self.own_image = self.emitter.times(self.begin, shape.workspaces[0][1])
        self.own_sums = self.emitter.times(self.begin, shape.workspaces[1][1])

    def form(self) -> kernel.KernelFuncOp:
        """Fill the kernel's body."""
        e = self.emitter
        e.for_loop(self.begin, self.end, 1, (), self.over_block)
        e.effect(kernel.KernelReturnOp, ())
        e.finish()
        return self.func

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

    def scalar(self, dim: Dim) -> Scalar:
        """A size as a number or an index."""
        return self.emitter.scalar(dim, self.scope)

    # -- loops

    def over_channels(self, count: int, body: Callable[[Scalar, Value | None], None]) -> None:
        """Run `body(first channel, mask of lanes)` for vectors of `count` channels."""
        e, lanes = self.emitter, self.shape.lanes
        whole = count // lanes * lanes

        def at(channel: Scalar, _: Sequence[Value]) -> Sequence[Value]:
            body(channel, None)
            return ()

        e.for_loop(0, whole, lanes, (), at)
        if whole < count:
            body(whole, e.lane_mask(whole, count, lanes))

    def over_panels(self, body: Callable[[Scalar, int], None]) -> None:
        """Run `body(panel, its channels)`, the last one apart if it has fewer channels."""
        shape = self.shape
        whole = shape.channels_out // shape.panel

        def at(panel: Scalar, _: Sequence[Value]) -> Sequence[Value]:
            body(panel, shape.panel)
            return ()

        self.emitter.for_loop(0, whole, 1, (), at)
        if whole < shape.panels:
            body(whole, shape.channels_out - whole * shape.panel)

    # -- products

    def products(
        self,
        array: Value,
        offset: Callable[[Scalar, int], Scalar],
        weight: Scalar,
        initial: Sequence[Vector],
        ahead: Scalar | None = None,
    ) -> list[list[Vector]]:
        """The sums of `rows` rows and one panel over all channels, in registers.

        array, offset: the pointer to the rows, and where a channel of row number k is. weight:
        where the panel begins. initial: what the panel's vectors start with. ahead: where the
        weights begin of which a cache line for each channel is fetched meanwhile.
        """
        e, shape = self.emitter, self.shape

        def at(channel: Scalar, carried: Sequence[Value]) -> Sequence[Value]:
            passed = e.times(channel, shape.panel)
            start = e.plus(weight, passed)
            if ahead is not None:
                place = e.value(e.plus(ahead, passed))
                e.effect(kernel.PrefetchOp, (self.weight, place))
            factors = [
                e.load(self.weight, e.plus(start, v * shape.lanes), self.vector, None, None)
                for v in range(shape.vectors)
            ]
            sums = list(carried)
            for r in range(shape.rows):
                one = e.load(array, offset(channel, r), f32, None, None)
                splat = e.add(kernel.SplatOp, (one,), self.vector)
                for v, factor in enumerate(factors, r * shape.vectors):
                    sums[v] = e.add(math.FmaOp, (splat, factor, sums[v]), self.vector)
            return sums

        sums = e.for_loop(0, shape.channels, 1, list(initial) * shape.rows, at)
        loop = e.block.last
        if isinstance(loop, kernel.ForOp):
            loop.attributes["unroll"] = A.IntegerAttr(FIGURES.unroll)
        count = shape.vectors
        return [sums[k : k + count] for k in range(0, len(sums), count)]

    def after(self, weight: Scalar, row: Scalar) -> Scalar:
        """Which line of each channel of the next panel's weights is fetched with the rows from
        `row` on: each of a block's first rows takes another one."""
        e, shape = self.emitter, self.shape
        line = e.times(e.quotient(row, shape.rows, True), FIGURES.line)
        return e.plus(e.plus(weight, shape.channels * shape.panel), line)

    # -- what follows

    def biases(self, channel: Scalar, masks: Sequence[Value | None]) -> list[Vector]:
        """Vectors of the bias from a channel on, one for each mask; zeros without a bias."""
        e = self.emitter
        if self.bias is None:
            return [self.number(0.0)] * len(masks)
        offsets = [e.plus(channel, v * self.shape.lanes) for v in range(len(masks))]
        return [
            e.load(self.bias, offset, self.vector, mask, None)
            for offset, mask in zip(offsets, masks, strict=True)
        ]

    def finished(self, value: Vector, offset: Scalar, mask: Value | None) -> Vector:
        """`activation(value + other)` for the result's vector at `offset`."""
        if self.other is not None:
            more = self.emitter.load(self.other, offset, self.vector, mask, None)
            value = self.binary(arith.AddFOp, value, more)
        return self.activated(value)

    def activated(self, value: Vector) -> Vector:
        """The activation of a vector; NaN stays NaN."""
        name, scalars = self.shape.activation, [self.number(s) for s in self.shape.scalars]
        if name is None:
            return value
        if name == "relu":
            return self.binary(arith.MaximumFOp, value, self.number(0.0))
        if name == "hardtanh":
            return self.clipped(value, *scalars)
        if name == "hardswish":
            shifted = self.binary(arith.AddFOp, value, self.number(3.0))
            clipped = self.clipped(shifted, self.number(0.0), self.number(6.0))
            product = self.binary(arith.MulFOp, value, clipped)
            return self.binary(arith.DivFOp, product, self.number(6.0))
        assert name == "leaky_relu", name
        attributes: dict[str, Attribute] = {"predicate": A.StringAttr("ogt")}
        mask_type = self.emitter.vector_type(i1, self.shape.lanes)
        operands = (value, self.number(0.0))
        positive = self.emitter.add(arith.CmpFOp, operands, mask_type, attributes)
        less = self.binary(arith.MulFOp, value, scalars[0])
        return self.emitter.add(arith.SelectOp, (positive, value, less), self.vector)

    def clipped(self, value: Vector, low: Vector, high: Vector) -> Vector:
        """min(max(value, low), high)."""
        return self.binary(
            arith.MinimumFOp, self.binary(arith.MaximumFOp, value, low), high
        )

    # -- conditions

    def inside(self, position: Scalar, size: Scalar) -> Value:
        """Whether 0 <= position < size."""
        e = self.emitter
        return self.all_of([e.compare("sge", position, 0), e.compare("slt", position, size)])

    def all_of(self, conditions: Sequence[Value]) -> Value:
        """The conjunction of scalar conditions."""
        return functools.reduce(lambda a, b: self.emitter.add(arith.AndIOp, (a, b), i1), conditions)

    def both(self, row: Value, column: Value, lanes: Value | None) -> Value:
        """The mask of an element: its row and its column are inside, and its lanes are channels."""
        e = self.emitter
        here = self.all_of([row, column])
        if lanes is None:
            return here
        mask_type = e.vector_type(i1, self.shape.lanes)
        return e.add(arith.AndIOp, (e.add(kernel.SplatOp, (here,), mask_type), lanes), mask_type)

    # -- vectors

    @functools.cached_property
    def vector(self) -> Type:
        """The type of a vector of elements."""
        return self.emitter.vector_type(f32, self.shape.lanes)

    def number(self, value: Any) -> Value:
        """A number in each lane."""
        return self.emitter.number(float(value), f32, self.shape.lanes)

    def binary(self, cls: Any, a: Vector, b: Vector) -> Vector:
        """A lane-wise operation."""
        return self.emitter.add(cls, (a, b), self.vector)

    def fma(self, factor: Any, a: Vector, b: Vector) -> Vector:
        """factor * a + b, rounded once."""
        return self.emitter.add(math.FmaOp, (self.number(factor), a, b), self.vector)

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
