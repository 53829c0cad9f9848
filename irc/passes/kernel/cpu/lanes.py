"""Index expressions that differ from lane to lane, as vectors of index."""

from __future__ import annotations

from collections.abc import Callable

from irc.dialects import arith
from irc.ir.core import Operation, Value
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
    terms_of,
)
from irc.ir.types import index
from irc.passes.kernel.cpu.emit import Emitter, Lanes, Scalar, VectorScope
from irc.passes.kernel.cpu.plan import Access


class LaneExpressions:
    """Evaluates an index expression whose names differ from lane to lane."""

    def __init__(
        self, emitter: Emitter, access: Access, copy: int, scope: VectorScope, lanes: Lanes
    ) -> None:
        self.access, self.copy = access, copy
        self.scope, self.lanes = scope, lanes
        self.emitter = emitter
        self.type = self.emitter.vector_type(index, lanes.width)

    def vector(self, x: Scalar | Value) -> Value:
        """A scalar or vector as a vector."""
        if isinstance(x, Value) and x.type is self.type:
            return x
        return self.emitter.splat(self.emitter.value(x), self.lanes.width, self.scope)

    def name(self, name: str) -> Scalar:
        """The value of a symbol: a vector for what varies."""
        position = self.access.positions.get(name)
        key = ("vector", name if position is None else position, self.copy)
        value = self.scope.dims.get(key)
        if value is not None:
            return value
        if position is not None:
            content = self.scope.values[position]
            single = content[self.copy] if isinstance(content, list) else content
            value = self.emitter.convert(single, index)
        elif name == self.lanes.axis:
            start = self.emitter.plus(self.scope.names[name], self.copy * self.lanes.apart)
            value = self.emitter.vector_index(start, 1, self.lanes.width, self.scope)
        else:
            return self.scope.names[name]
        self.scope.dims[key] = value
        return value

    def binary(
        self, scalar: Callable[..., Scalar], cls: type[Operation], a: Scalar, b: Scalar
    ) -> Scalar:
        """An operation on scalars if both are, else on vectors."""
        if self.is_scalar(a) and self.is_scalar(b):
            return scalar(a, b)
        return self.emitter.add(cls, (self.vector(a), self.vector(b)), self.type)

    def is_scalar(self, x: Scalar) -> bool:
        """Whether x is no vector."""
        return isinstance(x, int) or x.type is not self.type

    def evaluate(self, d: Dim) -> Scalar:
        """The value of an expression: a scalar or a vector of index."""
        if not isinstance(d, Expr):
            return d
        emitter = self.emitter
        if isinstance(d, Symbol):
            return self.name(d.name)
        if isinstance(d, Sum):
            return lane_sum(self, 0, d)
        if isinstance(d, Product):
            total: Scalar = 1
            for factor in d.factors:
                part = self.evaluate(factor)
                total = (
                    part
                    if isinstance(total, int) and total == 1
                    else self.binary(emitter.times, arith.MulIOp, total, part)
                )
            return total
        assert isinstance(d, Function)
        parts = [self.evaluate(a) for a in d.arguments]
        if all(self.is_scalar(p) for p in parts):
            return emitter.function(d, parts)
        return self.function(d, [self.vector(p) for p in parts])

    def function(self, d: Function, parts: list[Value]) -> Value:
        """A function node on vectors."""
        add = self.emitter.add
        if isinstance(d, Min | Max):
            total = parts[0]
            for part in parts[1:]:
                cls = arith.MinSIOp if isinstance(d, Min) else arith.MaxSIOp
                total = add(cls, (total, part), self.type)
            return total
        a, b = parts
        sign = self.emitter.nonnegative(*d.arguments)
        if isinstance(d, FloorQuotient):
            return add(arith.DivUIOp if sign else arith.FloorDivSIOp, (a, b), self.type)
        if isinstance(d, CeilQuotient):
            return add(arith.CeilDivSIOp, (a, b), self.type)
        assert isinstance(d, Mod)
        if sign:
            return add(arith.RemUIOp, (a, b), self.type)
        whole = add(arith.FloorDivSIOp, (a, b), self.type)
        return add(arith.SubIOp, (a, add(arith.MulIOp, (whole, b), self.type)), self.type)


def lane_sum(env: LaneExpressions, start: Scalar, d: Dim) -> Scalar:
    """start + d, scalars first."""
    terms, constant = terms_of(d)
    total = env.emitter.plus(start, constant)
    vectors: list[Scalar] = []
    for monomial, scale in terms:
        part = env.evaluate(monomial)
        if scale != 1:
            part = env.binary(env.emitter.times, arith.MulIOp, part, scale)
        if env.is_scalar(part):
            total = env.emitter.plus(total, part)
        else:
            vectors.append(part)
    for part in vectors:
        skip = isinstance(total, int) and total == 0
        total = part if skip else env.binary(env.emitter.plus, arith.AddIOp, total, part)
    return total
