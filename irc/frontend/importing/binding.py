"""Binding symbols: where each symbol of a function comes from, and what must hold of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import fx

from irc.dialects import graph, sym
from irc.frontend.importing import scalars, symbols
from irc.ir.builder import Builder
from irc.ir.core import Value
from irc.ir.diagnostics import UserError
from irc.ir.symbols import (
    Dim,
    Range,
    Symbol,
    SymbolError,
    ceildiv,
    clamped,
    free_symbols,
    from_start,
    from_sympy,
    maximum,
    to_sympy,
)
from irc.ir.symbols import symbol as symbol_named
from irc.ir.types import TensorType


class SymbolBinder:
    """Makes the binders and assertions of one function. `bound` are the symbols known so far;
    `floats` the rank-0 tensors of symbolic floats, by name."""

    def __init__(self, builder: Builder, shape_env: Any) -> None:
        self.builder = builder
        self.shape_env = shape_env
        self.bound: set[str] = set()
        self.sizes: set[str] = set()
        self.floats: dict[str, Value] = {}
        self.asserted: set[Any] = set()
        self.whole: dict[Any, Dim] = {}

    def knows(self, type_: TensorType) -> bool:
        """Whether every symbol that the type mentions is bound."""
        return all(free_symbols(d) <= self.bound for d in (*type_.shape, *(type_.strides or ())))

    # -- arguments

    def bind_arguments(self, metas: Sequence[Any], arguments: Sequence[Value]) -> None:
        """Bind every symbol of the arguments: to an integer argument that is just it, to a size,
        to a stride, to an integer argument that is linear in it, or to where a tensor begins."""
        pairs = list(zip(metas, arguments, strict=True))
        for value, argument in pairs:
            if isinstance(value, torch.SymFloat):
                self.bind_float(value, argument)
            elif isinstance(value, torch.SymInt):
                self.bind_if_symbol(value, sym.BindOp, argument)
        for stride in (False, True):
            for value, argument in pairs:
                if isinstance(value, torch.Tensor):
                    for dim, size in enumerate(value.stride() if stride else value.shape):
                        self.bind_if_symbol(
                            size, sym.BindSizeOp, argument, dim=dim, stride=stride
                        )
        for value, argument in pairs:
            if isinstance(value, torch.SymInt):
                self.bind_linear(value, argument)
        for value, argument in pairs:
            if isinstance(value, torch.Tensor):
                self.bind_if_symbol(value.storage_offset(), sym.BindOffsetOp, argument)

    def bind_if_symbol(self, value: Any, cls: Any, source: Value, **extra: Any) -> None:
        """Bind what is nothing but a symbol."""
        if isinstance(value, torch.SymInt):
            symbol = symbols.expression(value)
            if symbol.is_Symbol:
                self.bind(symbol, cls, source, **extra)

    def bind(self, symbol: Any, cls: Any, source: Value, **extra: Any) -> None:
        """Bind a sympy symbol, with its range and hint, unless it is bound already."""
        if symbol.name in self.bound:
            return
        minimum, maximum = symbols.bounds(self.shape_env, symbol)
        if cls is sym.BindOffsetOp:
            minimum, maximum = 0, None  # what torch assumes of it is no condition for a call
        if cls is sym.BindSizeOp and source.defining_op is not None:
            maximum = None  # what torch assumes of a result's size is not checked in eager mode
        if minimum is None:
            minimum = 0 if cls is sym.BindSizeOp else symbols.INT64_MIN
        binding = self.builder.create(
            cls, source, symbol=symbol.name, minimum=minimum, maximum=maximum,
            hint=symbols.hint(self.shape_env, symbol), **extra,
        )  # fmt: skip
        binding.results[0].name_hint = symbol.name
        self.bound.add(symbol.name)
        if cls is sym.BindSizeOp:
            self.sizes.add(symbol.name)
        self.assert_deferred(symbol.name)

    def bind_linear(self, value: torch.SymInt, argument: Value) -> None:
        """From an argument that is a*s + b: bind s = (argument - b) / a."""
        from irc.dialects import arith

        expression = symbols.expression(value)
        unknown = [s for s in expression.free_symbols if s.name not in self.bound]
        if len(unknown) != 1:
            return
        polynomial = expression.as_poly(unknown[0])
        if polynomial is None or polynomial.degree() != 1:
            return
        slope, offset = (symbols.dim_of(c) for c in polynomial.all_coeffs())
        if not isinstance(slope, int):
            return
        constant = self.builder.value(sym.ValueOp, dim=offset)
        rest = self.builder.value(arith.SubIOp, argument, constant)
        divisor = self.builder.value(sym.ValueOp, dim=slope)
        self.bind(unknown[0], sym.BindOp, self.builder.value(arith.DivSIOp, rest, divisor))

    def bind_float(self, value: torch.SymFloat, scalar: Value) -> None:
        """Make the rank-0 tensor of an argument that is a symbolic float."""
        expression = symbols.expression(value)
        if expression.is_Symbol:
            self.floats[expression.name] = self.builder.value(graph.FromScalar, scalar)

    # -- data-dependent values

    def bind_unbacked(self, node: fx.Node, value: Any) -> None:
        """Bind the symbols that torch made for the data-dependent parts of a node's value
        (`value`: the SSA values, nested as the node's)."""
        fresh = symbols.unbacked_bindings(self.shape_env, node)
        known = node.meta.get("val")
        if not fresh and isinstance(value, Value) and isinstance(known, torch.SymInt):
            # A number read by an operator's shape function, of which torch keeps no note.
            expression = symbols.expression(known)
            fresh = {expression: ()} if expression.is_Symbol else {}
        for symbol, path in fresh.items():
            if symbol.name not in self.bound and symbol.name not in self.floats:
                self._bind_path(symbol, path, value)

    def bind_slice(
        self, node: fx.Node, source: Value, dim: int = 0, start: Dim | None = None,
        end: Dim | None = None, step: Dim = 1,
    ) -> None:
        """Bind the symbols that torch 2.11 makes for the size of a slice whose ends depend on
        data, and for where it begins in its storage."""
        fresh = symbols.unbacked_bindings(self.shape_env, node)
        if not fresh or not isinstance(source.type, TensorType):
            return
        size = source.type.shape[dim]

        def place(end: Dim) -> Dim:
            # Numbers that are no sizes may be negative.
            ranges = {name: Range() for name in free_symbols(end) - self.sizes}
            return clamped(from_start(end, size, ranges), size, ranges)

        begin = 0 if start is None else place(start)
        stop = size if end is None or end == symbols.INT64_MAX else place(end)
        whole: Any = node.args[0]
        known = whole.meta["val"]
        values = {
            "size": maximum(0, ceildiv(stop - begin, step)),
            "storage_offset": symbols.dim_of(known.storage_offset())
            + begin * symbols.dim_of(known.stride(dim)),
        }
        for symbol, path in fresh.items():
            value = values.get(getattr(path[0], "name", "")) if path else None
            if value is not None and free_symbols(value) <= self.bound:
                self.bind(symbol, sym.BindOp, self.builder.value(sym.ValueOp, dim=value))

    def _bind_path(self, symbol: Any, path: Sequence[Any], value: Any) -> None:
        method, dim, divisor = "", None, None
        for key in path:
            key_type = type(key).__name__
            if key_type == "SequenceKey" and isinstance(value, list):
                value = value[key.idx]
            elif key_type == "SequenceKey":
                dim = key.idx
            elif key_type == "CallMethodKey":
                method = key.name
            elif key_type == "DivideByKey":
                divisor = symbols.dim_of(key.divisor)
            elif key_type != "ConvertIntKey":
                raise UserError(f"a data-dependent value at {list(path)} is not supported")
        if method == "storage_offset":
            return  # a value of its own here: nothing depends on where it lies in its storage
        if not isinstance(value, Value) or (dim is None) == isinstance(value.type, TensorType):
            raise UserError(f"a data-dependent {method or 'value'} is not supported")
        if symbol.name.startswith("zuf"):
            self.floats[symbol.name] = self.builder.value(graph.FromScalar, value)
        elif dim is None:
            self.bind(symbol, sym.BindOp, value)
        else:
            self._bind_dim(symbol, value, dim, method == "stride", divisor)

    def _bind_dim(
        self, symbol: Any, value: Value, dim: int, stride: bool, divisor: Dim | None
    ) -> None:
        if divisor is None:
            self.bind(symbol, sym.BindSizeOp, value, dim=dim, stride=stride)
            return
        from irc.dialects import arith

        name = f"{symbol.name}_whole"
        whole = self.builder.value(sym.BindSizeOp, value, dim=dim, stride=stride, symbol=name)
        self.bound.add(name)
        part = self.builder.value(sym.ValueOp, dim=divisor)
        self.bind(symbol, sym.BindOp, self.builder.value(arith.DivSIOp, whole, part))

    # -- integers and conditions made of floats

    def has_floats(self, expression: Any) -> bool:
        """Whether a sympy expression mentions a symbolic float."""
        return any(s.name in self.floats for s in getattr(expression, "free_symbols", ()))

    def dim_of_floats(self, expression: Any) -> Dim:
        """The Dim of an integer or a condition that mentions floats: what is rounded to an
        integer is computed, read back and bound to a symbol of its own, and so is a condition."""
        dim = self.whole.get(expression)
        if dim is None:
            dim = self.whole[expression] = self._dim_of_floats(expression)
        return dim

    def _dim_of_floats(self, expression: Any) -> Dim:
        if expression.is_Boolean or expression.is_Relational:
            tensor = scalars.condition_tensor(self.builder, expression, self.floats)
            return self._bind_read(self.builder.value(graph.Item, tensor))

        def visit(part: Any) -> Any:
            if not self.has_floats(part):
                return part
            if type(part).__name__ not in scalars.TO_INTEGER:
                return part.func(*(visit(a) for a in part.args))
            known = self.whole.get(part)
            if known is None:
                known = self._bind_read(scalars.truncated(self.builder, part, self.floats))
                self.whole[part] = known
            return to_sympy(known)

        return from_sympy(visit(expression))

    def _bind_read(self, scalar: Value) -> Dim:
        name = f"read{len(self.whole)}"
        self.builder.create(sym.BindOp, scalar, symbol=name)
        self.bound.add(name)
        return symbol_named(name)

    # -- assertions

    def assert_deferred(self, name: str) -> None:
        """State the ShapeEnv's runtime assertions about the symbol `name` and bound ones. They
        are taken as torch recorded them: simplified ones would have lost what they assert."""
        if self.shape_env is None:
            return
        for assertions in self.shape_env.deferred_runtime_asserts.values():
            for assertion in assertions:
                names = {s.name for s in assertion.expr.free_symbols}
                if name in names and names <= self.bound:
                    self.assert_condition(assertion.expr, str(assertion.msg))

    def assert_guards(self) -> None:
        """State what torch assumed about the bound symbols while it traced."""
        for condition in self.guards():
            self.assert_condition(condition, "a different size needs another compile")

    def assert_equalities(self) -> None:
        """State the equalities among these, which torch's types rely on: that Dynamo checks them
        is no fact of the program. One that has no form here is left out; a type that relies on
        it is refused later."""
        for condition in self.guards():
            if symbols.is_equality(condition):
                with contextlib.suppress(SymbolError):
                    self.assert_condition(condition, "a different size needs another compile")

    def guards(self) -> Iterator[Any]:
        """What torch assumed while it traced of symbols that are bound."""
        for guard in getattr(self.shape_env, "guards", ()):
            if {s.name for s in guard.expr.free_symbols} <= self.bound:
                yield guard.expr

    def assert_condition(self, condition: Any, message: str) -> None:
        """A `sym.assert` for each part of a sympy condition that is not stated yet."""
        text = message
        if "Runtime assertion failed" not in text:
            text = f"Runtime assertion failed for expression {condition}"
        if self.has_floats(condition):
            tensor = scalars.condition_tensor(self.builder, condition, self.floats)
            truth = self.builder.value(graph.Item, tensor)
            self.builder.create(sym.AssertValueOp, truth, message=text)
            return
        for relation, lhs, rhs in symbols.relations_of(condition):
            fact = (relation, lhs, rhs)
            if fact in self.asserted or (relation == "le" and lhs == 0 and self.is_size(rhs)):
                continue
            self.asserted.add(fact)
            self.builder.create(sym.AssertOp, relation=relation, lhs=lhs, rhs=rhs, message=text)

    def is_size(self, dim: Dim) -> bool:
        """Whether `dim` is a symbol that is bound to a size, so that it is not negative."""
        return isinstance(dim, Symbol) and dim.name in self.sizes
