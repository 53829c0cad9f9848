"""Symbolic expressions in a native host program: i64 code for `Dim`s.

Division rounds toward minus infinity as in the symbols. A divisor of zero gives no trap: the
quotient is then of 1 instead, as only a size that no caller can produce has one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from llvmlite import ir

from irc.codegen.host.emitter import I64, HostEmitter, Size, Value, as_value, constant
from irc.codegen.host.support import KIND_INT
from irc.ir.symbols import Dim, evaluate_with, fold, format_dim, free_symbols


class DimEmitter:
    """Emits expressions over `symbols` (name to i64 value); each is emitted once."""

    def __init__(self, emitter: HostEmitter) -> None:
        self.emitter = emitter
        self.symbols: dict[str, Value] = {}
        self._known: dict[Dim, Size] = {}
        self._operations: dict[str, Callable[..., Size]] = {
            "add": lambda a, b: self._binary("add", a, b),
            "mul": lambda a, b: self._binary("mul", a, b),
            "floordiv": self._floordiv,
            "mod": self._mod,
            "ceildiv": lambda a, b: self._negate(self._floordiv(self._negate(a), b)),
            "min": lambda a, b: self._extreme("<", a, b),
            "max": lambda a, b: self._extreme(">", a, b),
            "bit_and": lambda a, b: self._binary("and_", a, b),
            "bit_or": lambda a, b: self._binary("or_", a, b),
            "bit_xor": lambda a, b: self._binary("xor", a, b),
            "where": self._where,
            "eq": lambda a, b: self._compare("==", a, b),
            "ne": lambda a, b: self._compare("!=", a, b),
            "lt": lambda a, b: self._compare("<", a, b),
            "le": lambda a, b: self._compare("<=", a, b),
        }

    def bind(self, symbol: str, value: Value) -> None:
        """Give a symbol its value from here on."""
        self.symbols[symbol] = value

    def bound(self, dims: Sequence[Dim | None]) -> bool:
        """Whether every symbol in these expressions has a value."""
        return all(free_symbols(d) <= self.symbols.keys() for d in dims if d is not None)

    def native(self, dim: Dim) -> bool:
        """Whether `dim` is computed by instructions, and not by a call into Python."""

        def known(name: str, *parts: bool) -> bool:
            return name in self._operations and all(parts)

        return fold(dim, lambda leaf: True, known)

    def __call__(self, dim: Dim) -> Size:
        """The value: a Python int when it is constant."""
        if isinstance(dim, int):
            return dim
        value = self._known.get(dim)
        if value is None:
            if self.native(dim):
                value = evaluate_with(dim, self.symbols, self._operations)
            else:
                value = self._by_python(dim)
            self._known[dim] = value
        return value

    @contextmanager
    def apart(self) -> Iterator[None]:
        """What is emitted inside is not there behind it: it may not run."""
        known = dict(self._known)
        yield
        self._known = known

    def many(self, dims: Sequence[Dim]) -> list[Size]:
        """The values of several expressions."""
        return [self(d) for d in dims]

    def _by_python(self, dim: Dim) -> Value:
        """An expression with functions that have no instruction: Python computes it."""
        e = self.emitter
        names = tuple(sorted(free_symbols(dim)))
        e.lock()
        result = e.call_python(
            ("dim", format_dim(dim), names), [as_value(self.symbols[n]) for n in names]
        )
        e.error_if_null(result)
        out = e.alloca(I64)
        failed = e.unpack(result, [KIND_INT], out)
        e.drop_object(result)
        e.error_if(e.builder.icmp_signed("!=", failed, ir.Constant(ir.IntType(32), 0)))
        return e.builder.load(out, typ=I64)

    def _binary(self, name: str, a: Size, b: Size) -> Size:
        return getattr(self.emitter.builder, name)(as_value(a), as_value(b))

    def _negate(self, a: Size) -> Size:
        return -a if isinstance(a, int) else self.emitter.builder.neg(a)

    def _divisor(self, b: Size) -> Value:
        if isinstance(b, int):
            return constant(b or 1)
        builder = self.emitter.builder
        return builder.select(builder.icmp_signed("==", b, constant(0)), constant(1), b)

    def _floordiv(self, a: Size, b: Size) -> Size:
        if isinstance(a, int) and isinstance(b, int) and b:
            return a // b
        builder = self.emitter.builder
        value, divisor = as_value(a), self._divisor(b)
        quotient, rest = builder.sdiv(value, divisor), builder.srem(value, divisor)
        return builder.sub(quotient, builder.zext(self._wrong_side(rest, divisor), I64))

    def _wrong_side(self, rest: Value, divisor: Value) -> Value:
        """Whether the remainder has the sign that isn't the divisor's."""
        builder = self.emitter.builder
        opposite = builder.icmp_signed("<", builder.xor(rest, divisor), constant(0))
        return builder.and_(opposite, builder.icmp_signed("!=", rest, constant(0)))

    def _mod(self, a: Size, b: Size) -> Size:
        builder = self.emitter.builder
        divisor = self._divisor(b)
        rest = builder.srem(as_value(a), divisor)
        wrong = self._wrong_side(rest, divisor)
        return builder.add(rest, builder.select(wrong, divisor, constant(0)))

    def _extreme(self, sign: str, a: Size, b: Size) -> Size:
        builder = self.emitter.builder
        a, b = as_value(a), as_value(b)
        return builder.select(builder.icmp_signed(sign, a, b), a, b)

    def _compare(self, sign: str, a: Size, b: Size) -> Size:
        builder = self.emitter.builder
        return builder.zext(builder.icmp_signed(sign, as_value(a), as_value(b)), I64)

    def _where(self, c: Size, a: Size, b: Size) -> Size:
        builder = self.emitter.builder
        taken = builder.icmp_signed("!=", as_value(c), constant(0))
        return builder.select(taken, as_value(a), as_value(b))
