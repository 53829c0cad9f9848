"""Emission of kernel code: constants, index arithmetic, loads and stores, scalar and vector ops.

A value of a body is either uniform (one scalar SSA value) or varying along the vector axis: a
list with one vector per copy. Index arithmetic is shared through scopes: what an outer level
computed is seen by all inside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from irc.dialects import arith, kernel
from irc.ir import attributes as A
from irc.ir.attributes import Attribute, Type
from irc.ir.core import Block, Operation, Region, Value
from irc.ir.definition import SEGMENTS
from irc.ir.location import UNKNOWN, Location
from irc.ir.symbols import (
    CeilQuotient,
    Dim,
    Expr,
    FloorQuotient,
    Function,
    Max,
    Min,
    Mod,
    Product,
    Sum,
    Symbol,
    provable_le,
    terms_of,
)
from irc.ir.types import IndexType, VectorType, f32, i1, i32, index

Content = Any  # a Value (uniform), or a list of Values, one per copy
Scalar = int | Value
NO_ATTRIBUTES: dict[str, Attribute] = {}


@attrs.define(eq=False)
class Lanes:
    """How the vector axis is covered at a place: `copies` vectors of `width` lanes; `mask` holds
    for the lanes (of the one copy) that are points of the space, those below `limit`. Width 1:
    scalars. Each vector begins `apart` points after the one before it."""

    axis: str
    width: int
    copies: int
    mask: Value | None = None
    limit: Scalar | None = None
    apart: int = attrs.field(default=attrs.Factory(lambda self: self.width, takes_self=True))


class VectorScope:
    """What is known at one level of a loop nest: body values, coordinates, index expressions."""

    __slots__ = (
        "values", "names", "dims", "splats", "known", "lanes", "level", "span", "points",
        "moved", "ranges", "common", "alike",
    )  # fmt: skip

    def __init__(self) -> None:
        self.values: dict[Value, Content] = {}
        self.names: dict[str, Scalar] = {}
        self.dims: dict[Any, Any] = {}
        self.splats: dict[Value, Value] = {}
        # Conditions that hold, or don't, in all of the vector axis's span at hand.
        self.known: dict[Value, bool] = {}
        self.span: tuple[int, int] | None = None
        # The points at hand of axes whose points have code of their own.
        self.points: dict[str, int] = {}
        # At a point of a tile of several: axes by the tile's first point, or as they are known; the
        # least and the most that this may be; what all points of the tile have, in whose `alike`
        # are values by what they are made of.
        self.moved: dict[str, Dim] = {}
        self.ranges: dict[str, tuple[int, int]] = {}
        self.common: VectorScope | None = None
        self.alike: dict[Any, Content] = {}
        self.lanes: Lanes | None = None
        self.level = 0

    def child(self, level: int) -> VectorScope:
        """A scope inside this one."""
        new = VectorScope.__new__(VectorScope)
        new.values = dict(self.values)
        new.names = dict(self.names)
        new.dims = dict(self.dims)
        new.splats = dict(self.splats)
        new.known = dict(self.known)
        new.span, new.points = self.span, self.points
        new.moved, new.ranges = self.moved, self.ranges
        new.common, new.alike = self.common, self.alike
        new.lanes = self.lanes
        new.level = level
        return new


class Emitter:
    """Appends kernel code to `block`. `extents` bound the axes in proofs about indices."""

    def __init__(self, entry: Block) -> None:
        self.entry = entry
        self.block = entry
        self.location: Location = UNKNOWN
        self.extents: dict[str, Dim] = {}
        self.constants: dict[Any, Value] = {}
        self._hoisted: list[Operation] = []
        self._vector_types: dict[tuple[Type, int], VectorType] = {}

    # -- operations

    def add(
        self,
        cls: type[Operation],
        operands: Sequence[Value],
        type_: Type,
        attributes: dict[str, Attribute] = NO_ATTRIBUTES,
    ) -> Value:
        """An operation with one result, at the end of the current block."""
        op = cls(operands, (type_,), attributes, (), self.location)
        self.block.append(op)
        return op.results[0]

    def effect(
        self,
        cls: type[Operation],
        operands: Sequence[Value],
        attributes: dict[str, Attribute] = NO_ATTRIBUTES,
    ) -> None:
        """An operation without results."""
        self.block.append(cls(operands, (), attributes, (), self.location))

    def vector_type(self, element: Type, width: int) -> Type:
        """`width` lanes of `element`; the scalar itself for a width of 1."""
        if width == 1:
            return element
        key = (element, width)
        type_ = self._vector_types.get(key)
        if type_ is None:
            type_ = self._vector_types[key] = VectorType((width,), element)
        return type_

    def hoisted(self, key: Any, make: Callable[[], Operation]) -> Value:
        """The result of an operation without operands, made once at the top of the kernel."""
        value = self.constants.get(key)
        if value is None:
            op = make()
            self._hoisted.append(op)
            value = self.constants[key] = op.results[0]
        return value

    def constant(self, attr: Attribute, type_: Type) -> Value:
        """A constant of a scalar or vector type."""
        return self.hoisted(
            (attr, type_), lambda: arith.ConstantOp((), (type_,), {"value": attr})
        )

    def number(self, value: Any, element: Type, width: int = 1) -> Value:
        """A Python number as a constant of `element`, in each of `width` lanes."""
        return self.filled(value, element, self.vector_type(element, width))

    def filled(self, value: Any, element: Type, type_: Type) -> Value:
        """A Python number as a constant of `element`, in each place of `type_`."""
        attr: Attribute
        if isinstance(value, float):
            attr = A.FloatAttr(value, element)
        elif element is i1:
            attr = A.BoolAttr(bool(value))
        else:
            attr = A.IntegerAttr(value, element)
        return self.constant(attr, type_)

    def iota(self, element: Type, width: int) -> Value:
        """0, 1, 2, ... as a vector."""
        type_ = self.vector_type(element, width)
        return self.hoisted(("iota", type_), lambda: kernel.IotaOp((), (type_,)))

    def finish(self) -> None:
        """Put the hoisted constants first in the kernel."""
        first = self.entry.first
        for op in self._hoisted:
            if not op.results[0].has_uses:
                continue
            if first is None:
                self.entry.append(op)
            else:
                self.entry.insert_before(op, first)

    # -- control flow

    def for_loop(
        self,
        lower: Scalar,
        upper: Scalar,
        step: int,
        carried: Sequence[Value],
        body: Callable[[Scalar, list[Value]], Sequence[Value]],
    ) -> list[Value]:
        """A `kernel.for`; no loop where it is known to run at most once."""
        if isinstance(lower, int) and isinstance(upper, int):
            if lower >= upper:
                return list(carried)
            if lower + step >= upper:
                return list(body(lower, list(carried)))
        types = [v.type for v in carried]
        region = self.region([index, *types], lambda place, *inner: body(place, list(inner)))
        bounds = [self.value(lower), self.value(upper), self.value(step)]
        op = kernel.ForOp([*bounds, *carried], types, {}, (region,), self.location)
        self.block.append(op)
        return list(op.results)

    def region(self, types: Sequence[Type], body: Callable[..., Sequence[Value]]) -> Region:
        """A region of one block that takes values of some types and yields what `body` gives."""
        block = Block(types)
        outside, self.block = self.block, block
        self.effect(kernel.KernelYieldOp, body(*block.arguments))
        self.block = outside
        return Region([block])

    def when(
        self,
        condition: Value,
        body: Callable[[], object],
        otherwise: Callable[[], object] = lambda: None,
    ) -> None:
        """Runs `body` if the scalar condition holds, else `otherwise`."""

        def branch(run: Callable[[], object]) -> Region:
            def all_of_it() -> Sequence[Value]:
                run()
                return ()

            return self.region((), all_of_it)

        regions = branch(body), branch(otherwise)
        self.block.append(kernel.IfOp((condition,), (), {}, regions, self.location))

    # -- index arithmetic

    def value(self, x: Scalar) -> Value:
        """An index as an SSA value."""
        return self.number(x, index) if isinstance(x, int) else x

    def plus(self, a: Scalar, b: Scalar) -> Scalar:
        """a + b of indices."""
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if isinstance(a, int) and a == 0:
            return b
        if isinstance(b, int) and b == 0:
            return a
        return self.add(arith.AddIOp, (self.value(a), self.value(b)), index)

    def minus(self, a: Scalar, b: Scalar) -> Scalar:
        """a - b of indices."""
        if isinstance(b, int):
            return self.plus(a, -b)
        return self.add(arith.SubIOp, (self.value(a), b), index)

    def times(self, a: Scalar, b: Scalar) -> Scalar:
        """a * b of indices."""
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        if isinstance(a, int):
            a, b = b, a
        if isinstance(b, int) and b in (0, 1):
            return a if b else 0
        return self.add(arith.MulIOp, (self.value(a), self.value(b)), index)

    def least(self, a: Scalar, b: Scalar) -> Scalar:
        """min(a, b) of indices."""
        if isinstance(a, int) and isinstance(b, int):
            return min(a, b)
        return self.add(arith.MinSIOp, (self.value(a), self.value(b)), index)

    def most(self, a: Scalar, b: Scalar) -> Scalar:
        """max(a, b) of indices."""
        if isinstance(a, int) and isinstance(b, int):
            return max(a, b)
        return self.add(arith.MaxSIOp, (self.value(a), self.value(b)), index)

    def quotient(self, a: Scalar, b: Scalar, nonnegative: bool) -> Scalar:
        """a // b of indices, rounded down."""
        if isinstance(a, int) and isinstance(b, int) and b:
            return a // b
        if isinstance(b, int) and b == 1:
            return a
        cls = arith.DivUIOp if nonnegative else arith.FloorDivSIOp
        return self.add(cls, (self.value(a), self.value(b)), index)

    def remainder(self, a: Scalar, b: Scalar, nonnegative: bool) -> Scalar:
        """a mod b of indices, with the sign of b."""
        if isinstance(a, int) and isinstance(b, int) and b:
            return a % b
        if nonnegative:
            return self.add(arith.RemUIOp, (self.value(a), self.value(b)), index)
        return self.minus(a, self.times(self.quotient(a, b, False), b))

    def compare(self, predicate: str, a: Scalar, b: Scalar) -> Value:
        """A comparison of indices."""
        attributes: dict[str, Attribute] = {"predicate": A.StringAttr(predicate)}
        return self.add(arith.CmpIOp, (self.value(a), self.value(b)), i1, attributes)

    def both(self, first: Value, second: Value) -> Value:
        """Whether two conditions hold."""
        return self.add(arith.AndIOp, (first, second), i1)

    def either(self, condition: Value, a: Scalar, b: Scalar) -> Scalar:
        """a if the condition holds, else b; indices."""
        return self.add(arith.SelectOp, (condition, self.value(a), self.value(b)), index)

    def nonnegative(self, *dims: Dim) -> bool:
        """Whether all of the expressions are proven to be at least 0."""
        return all(
            d >= 0 if isinstance(d, int) else provable_le(0, d, extents=self.extents)
            for d in dims
        )

    def scalar(self, d: Dim, scope: VectorScope) -> Scalar:
        """The value of an index expression whose names are all scalar in `scope`."""
        if not isinstance(d, Expr):
            return d
        value = scope.dims.get(d)
        if value is None:
            value = scope.dims[d] = self._scalar(d, scope)
        return value

    def _scalar(self, d: Expr, scope: VectorScope) -> Scalar:
        if isinstance(d, Symbol):
            return scope.names[d.name]
        if isinstance(d, Sum):
            total: Scalar = 0
            for monomial, scale in terms_of(d)[0]:
                total = self.plus(total, self.times(self.scalar(monomial, scope), scale))
            return self.plus(total, d.constant)
        if isinstance(d, Product):
            total = 1
            for factor in d.factors:
                total = self.times(total, self.scalar(factor, scope))
            return total
        assert isinstance(d, Function)
        parts = [self.scalar(a, scope) for a in d.arguments]
        return self.function(d, parts)

    def function(self, d: Function, parts: list[Scalar]) -> Scalar:
        if isinstance(d, FloorQuotient | Mod):
            sign = self.nonnegative(*d.arguments)
            divide = self.quotient if isinstance(d, FloorQuotient) else self.remainder
            return divide(parts[0], parts[1], sign)
        if isinstance(d, CeilQuotient):
            below = self.minus(0, parts[0])
            return self.minus(0, self.quotient(below, parts[1], False))
        assert isinstance(d, Min | Max)
        total = self.value(parts[0])
        cls = arith.MinSIOp if isinstance(d, Min) else arith.MaxSIOp
        for part in parts[1:]:
            total = self.add(cls, (total, self.value(part)), index)
        return total

    def prefix_sums(self, groups: Sequence[Dim], scope: VectorScope) -> Scalar:
        """The sum of the groups, through the prefixes that outer levels have computed."""
        total: Scalar = 0
        prefix: Dim = 0
        for group in groups:
            prefix = prefix + group
            if not isinstance(prefix, Expr):
                total = prefix
                continue
            value = scope.dims.get(prefix)
            if value is None:
                value = scope.dims[prefix] = self.plus(total, self.scalar(group, scope))
            total = value
        return total

    # -- vectors

    def splat(self, scalar: Value, width: int, scope: VectorScope) -> Value:
        """A scalar in each lane; made where the scope first wants it."""
        if width == 1:
            return scalar
        vector = scope.splats.get(scalar)
        if vector is None or vector.type.shape[0] != width:  # type: ignore[attr-defined]
            maker = scalar.defining_op
            type_ = self.vector_type(scalar.type, width)
            if isinstance(maker, arith.ConstantOp):
                vector = self.constant(maker.attributes["value"], type_)
            else:
                vector = self.add(kernel.SplatOp, (scalar,), type_)
            scope.splats[scalar] = vector
        return vector

    def lane_mask(self, base: Scalar, upper: Scalar, width: int) -> Value:
        """Which lanes of a vector that starts at `base` lie below `upper` (less than 2^31 away)."""
        left = self.minus(upper, base)
        attributes: dict[str, Attribute] = {"predicate": A.StringAttr("slt")}
        type_ = self.vector_type(i32, width)
        if isinstance(left, int):
            bound = self.number(left, i32, width)
        else:
            narrow = self.add(arith.IndexCastOp, (left,), i32)
            bound = self.add(kernel.SplatOp, (narrow,), type_)
        operands = (self.iota(i32, width), bound)
        return self.add(arith.CmpIOp, operands, self.vector_type(i1, width), attributes)

    def vector_index(self, base: Scalar, stride: Scalar, width: int, scope: VectorScope) -> Value:
        """base + stride * lane, as a vector of index."""
        type_ = self.vector_type(index, width)
        steps = self.iota(index, width)
        if stride != 1:
            factor = self.splat(self.value(stride), width, scope)
            steps = self._cached(("steps", stride), scope, arith.MulIOp, (steps, factor), type_)
        if isinstance(base, int) and base == 0:
            return steps
        start = self.splat(self.value(base), width, scope)
        return self.add(arith.AddIOp, (start, steps), type_)

    def _cached(
        self,
        key: Any,
        scope: VectorScope,
        cls: type[Operation],
        operands: Sequence[Value],
        type_: Type,
    ) -> Value:
        value = scope.dims.get(key)
        if value is None:
            value = scope.dims[key] = self.add(cls, operands, type_)
        return value

    # -- memory

    def load(
        self, pointer: Value, offset: Scalar, type_: Type, mask: Value | None, other: Value | None
    ) -> Value:
        """A scalar or contiguous load."""
        operands = [pointer, self.value(offset)]
        return self._masked(kernel.LoadOp, operands, type_, mask, other)

    def place_where(self, condition: Value, place: Scalar) -> Scalar:
        """The place where the condition holds, else the array's first element.

        A masked load of no lane reads nothing, but where its address is of no mapped page, as that
        of a row above an image may be, a processor takes some hundred cycles to find that out.
        """
        operands = (condition, self.value(place), self.value(0))
        return self.add(arith.SelectOp, operands, index)

    def load_strided(
        self, pointer: Value, offset: Scalar, stride: int, type_: Type,
        mask: Value | None, other: Value | None,
    ) -> Value:  # fmt: skip
        """A load of elements that lie apart."""
        operands = [pointer, self.value(offset)]
        loaded = self._masked(kernel.LoadStridedOp, operands, type_, mask, other)
        assert loaded.defining_op is not None
        loaded.defining_op.attributes["stride"] = A.IntegerAttr(stride)
        return loaded

    def gather(
        self, pointer: Value, offsets: Value, type_: Type, mask: Value | None, other: Value | None
    ) -> Value:
        """A load lane by lane."""
        return self._masked(kernel.GatherOp, [pointer, offsets], type_, mask, other)

    def _masked(
        self,
        cls: type[Operation],
        operands: list[Value],
        type_: Type,
        mask: Value | None,
        other: Value | None,
    ) -> Value:
        if mask is not None:
            operands.append(mask)
            if other is not None:
                operands.append(other)
        segments = (1, 1, int(mask is not None), int(mask is not None and other is not None))
        return self.add(cls, operands, type_, {SEGMENTS: A.DenseIntsAttr(segments)})

    def store(self, stored: Value, pointer: Value, offset: Scalar, mask: Value | None) -> None:
        """A scalar or contiguous store."""
        operands = [stored, pointer, self.value(offset)]
        self.effect(kernel.StoreOp, operands if mask is None else [*operands, mask])

    def scatter(
        self, stored: Value, pointer: Value, offsets: Value, mask: Value | None, combiner: str
    ) -> None:
        """Stores lane by lane, combined with what is there."""
        operands = [stored, pointer, offsets]
        attributes: dict[str, Attribute] = {"combiner": A.StringAttr(combiner)}
        self.effect(
            kernel.ScatterOp, operands if mask is None else [*operands, mask], attributes
        )

    # -- conversions

    def convert(self, value: Value, target: Type, unsigned: bool = False) -> Value:
        """A number as another scalar type (lane by lane), as C converts."""
        from irc.ir.types import FloatType, IntegerType

        source = arith.element_type(value.type)
        if source is target:
            return value
        type_ = arith.with_element(value.type, target)
        if isinstance(source, IndexType) or isinstance(target, IndexType):
            return self.add(arith.IndexCastOp, (value,), type_)
        if isinstance(source, FloatType):
            if isinstance(target, FloatType):
                if target.width == source.width:
                    value = self.add(arith.ExtFOp, (value,), arith.with_element(value.type, f32))
                wider = target.width > source.width
                return self.add(arith.ExtFOp if wider else arith.TruncFOp, (value,), type_)
            return self.add(arith.FPToUIOp if unsigned else arith.FPToSIOp, (value,), type_)
        unsigned = unsigned or source is i1
        if isinstance(target, FloatType):
            return self.add(arith.UIToFPOp if unsigned else arith.SIToFPOp, (value,), type_)
        assert isinstance(source, IntegerType) and isinstance(target, IntegerType)
        if target.width < source.width:
            return self.add(arith.TruncIOp, (value,), type_)
        return self.add(arith.ExtUIOp if unsigned else arith.ExtSIOp, (value,), type_)
