"""The kernel of a `graph.panel_conv`: a matrix product over the pixels, with what follows it.

A call computes the blocks [begin, end) of pixels: each panel of channels out for a few pixels at a
time, in registers, to which bias, `other` and the activation are applied before they are stored.
Where pixels that follow each other in the result don't in the image, or where many would fall on
one set of the cache, a block's pixels are first copied together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from irc.dialects import kernel
from irc.dialects.graph.panel_sizes import FIGURES, PanelShape
from irc.ir.core import Value
from irc.ir.location import UNKNOWN, Location
from irc.passes.kernel.convolutions.convolution_kernel import ConvolutionKernel
from irc.passes.kernel.cpu.emit import Scalar


def form_panel_kernel(
    shape: PanelShape, name: str, location: Location = UNKNOWN
) -> kernel.KernelFuncOp:
    """The kernel: pointers to the image (channels innermost), weights [panels, channels, panel],
    bias and `other` where there are, result, and the workspace where one is needed."""
    return _Panels(shape, name, location).form()


class _Panels(ConvolutionKernel[PanelShape]):
    WORKSPACES = ("gathered",)

    def __init__(self, shape: PanelShape, name: str, location: Location) -> None:
        work = 2 * shape.block * shape.channels * shape.channels_out
        super().__init__(shape, name, location, work)
        self.total = self.scalar(shape.row_count)
        self.width = shape.channels
        self.array = self.source
        self.own: Scalar = 0
        if shape.gathers:
            self.width, self.array = shape.image_row + FIGURES.skew, self.workspaces[0]
            self.own = self.emitter.times(self.begin, shape.workspaces[0][1])
            sizes = (shape.height, shape.width, *shape.out_sizes)
            self.sizes = [self.scalar(d) for d in sizes]

    def over_block(self, number: Scalar, _: Sequence[Value]) -> Sequence[Value]:
        """Gather the block's pixels if need be; then the products, by rows or by panels first."""
        e, shape = self.emitter, self.shape
        first = e.times(number, shape.block)
        count = e.least(shape.block, e.minus(self.total, first))
        start: Scalar = e.times(first, shape.channels)
        if shape.gathers:
            self.gather(first, count)
            start = self.own

        def over_rows(body: Callable[[Scalar], None]) -> None:
            def at(row: Scalar, _: Sequence[Value]) -> Sequence[Value]:
                body(row)
                return ()

            e.for_loop(0, count, shape.rows, (), at)

        if shape.rows_first:
            over_rows(lambda row: self.over_panels(
                lambda panel, channels: self.compute(first, start, row, count, panel, channels)
            ))  # fmt: skip
        else:
            self.over_panels(lambda panel, channels: over_rows(
                lambda row: self.compute(first, start, row, count, panel, channels)
            ))  # fmt: skip
        return ()

    def gather(self, first: Scalar, count: Scalar) -> None:
        """Copy the pixels of a block, in the result's order, to the workspace."""
        e, shape = self.emitter, self.shape
        high, wide, out_high, out_wide = self.sizes

        def at(row: Scalar, _: Sequence[Value]) -> Sequence[Value]:
            number = e.plus(first, row)
            line = e.quotient(number, out_wide, True)
            column = e.times(e.remainder(number, out_wide, True), shape.stride[1])
            image = e.quotient(line, out_high, True)
            line = e.times(e.remainder(line, out_high, True), shape.stride[0])
            pixel = e.plus(e.times(e.plus(e.times(image, high), line), wide), column)
            source = e.times(pixel, shape.channels)
            target = e.plus(self.own, e.times(row, self.width))

            def copy(channel: Scalar, lanes: Value | None) -> None:
                value = e.load(self.source, e.plus(source, channel), self.vector, lanes, None)
                e.store(value, self.array, e.plus(target, channel), None)

            self.over_channels(shape.channels, copy)
            return ()

        e.for_loop(0, count, 1, (), at)

    def compute(
        self, first: Scalar, start: Scalar, row: Scalar, count: Scalar, panel: Scalar,
        channels: int,
    ) -> None:  # fmt: skip
        """A few rows of the block by one panel. Where fewer rows are left, the last one is
        computed several times."""
        e, shape = self.emitter, self.shape

        def together(k: int) -> Scalar:
            return e.plus(row, k)

        def at_most_last(k: int) -> Scalar:
            return e.least(e.plus(row, k), e.minus(count, 1))

        def whole() -> None:
            base = e.plus(start, e.times(row, self.width))
            self.compute_rows(
                lambda channel, k: e.plus(e.plus(base, channel), k * self.width), first,
                row, together, panel, channels,
            )  # fmt: skip

        def part() -> None:
            places = [
                e.plus(start, e.times(at_most_last(k), self.width)) for k in range(shape.rows)
            ]
            self.compute_rows(
                lambda channel, k: e.plus(places[k], channel), first, row, at_most_last,
                panel, channels,
            )  # fmt: skip

        if isinstance(self.total, int) and self.total % shape.rows == 0:
            whole()
        else:
            e.when(e.compare("sle", e.plus(row, shape.rows), count), whole, part)

    def compute_rows(
        self,
        offset: Callable[[Scalar, int], Scalar],
        first: Scalar,
        row: Scalar,
        place: Callable[[int], Scalar],
        panel: Scalar,
        channels: int,
    ) -> None:
        """The products of rows and what follows them. offset: of a channel of row number k;
        place: that row's number in the block."""
        e, shape = self.emitter, self.shape
        masks = self.panel_masks(channels)
        column = e.times(panel, shape.panel)
        initial = self.biases(column, masks)
        initial += [self.number(0.0)] * (shape.vectors - len(initial))
        weight = e.times(panel, shape.channels * shape.panel)
        ahead = None if shape.rows_first else self.after(weight, row)
        sums = self.products(self.array, offset, weight, initial, ahead)
        stores = []
        for k, vectors in enumerate(sums):
            start = e.plus(e.times(e.plus(first, place(k)), shape.channels_out), column)
            for v, mask in enumerate(masks):
                at = e.plus(start, v * shape.lanes)
                stores.append((self.finished(vectors[v], at, mask), at, mask))
        # Only now: a row that is computed twice must not read what it has written.
        for value, at, mask in stores:
            e.store(value, self.result, at, mask)
