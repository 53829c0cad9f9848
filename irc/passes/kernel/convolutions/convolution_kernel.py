"""What the kernels of convolutions share: arguments, products in registers, and what follows."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from irc.dialects import arith, kernel, math
from irc.dialects.graph.winograd import FIGURES, WinogradShape
from irc.ir import attributes as A
from irc.ir.attributes import Attribute, Type
from irc.ir.core import Value
from irc.ir.location import Location
from irc.ir.symbols import Dim, free_symbols
from irc.ir.types import f32, i1, index
from irc.passes.kernel.cpu.emit import Emitter, Scalar, VectorScope

Vector = Value


class ConvolutionKernel:
    """A kernel over blocks of rows; `over_block` writes what is done for one.

    Its pointers: image (channels innermost), weights in panels, bias and `other` where there are,
    the result, and the WORKSPACES, of which a call has the part of its first block.
    """

    WORKSPACES: ClassVar[tuple[str, ...]] = ()

    def __init__(self, shape: WinogradShape, name: str, location: Location, work: int) -> None:
        self.shape = shape
        spaces = self.WORKSPACES[: len(shape.workspaces)]
        dims = (shape.batch, shape.height, shape.width)
        symbols = sorted(set().union(*(free_symbols(d) for d in dims)))
        names = ["source", "weight", *["bias"] * shape.bias, *["other"] * shape.other]
        inputs = len(names)
        names += ["result", *spaces]
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
        self.result, *self.workspaces = arguments[inputs : len(names)]
        self.scope.names.update(zip(symbols, arguments[len(names) :], strict=False))

    def form(self) -> kernel.KernelFuncOp:
        """Fill the kernel's body."""
        e = self.emitter
        e.for_loop(self.begin, self.end, 1, (), self.over_block)
        e.effect(kernel.KernelReturnOp, ())
        e.finish()
        return self.func

    def over_block(self, number: Scalar, _: Sequence[Value]) -> Sequence[Value]:
        """Write what is done for block `number`."""
        raise NotImplementedError

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
