"""Symbols for sizes that only the host computes.

`torch` scales sizes by floats (`interpolate` with a scale factor), takes roots and powers of them.
Kernels compute with sums, products, quotients, minima and maxima of sizes; any other function of
sizes is computed once by the host and bound to a symbol of its own, which stands for it from
there on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from irc.dialects import aten, func, sym
from irc.ir import attributes as A
from irc.ir.attributes import Attribute
from irc.ir.builder import Builder
from irc.ir.core import Operation, Value
from irc.ir.symbols import (
    Dim,
    Expr,
    Function,
    Product,
    Sum,
    free_symbols,
    replace,
    symbol,
)
from irc.ir.types import TensorType

IN_KERNELS = frozenset({"floordiv", "mod", "ceildiv", "min", "max"})


def bind_host_sizes(program: func.FuncOp) -> None:
    """Bind a symbol to each such size in the types of `program`, and replace it everywhere."""
    sizes = dict.fromkeys(_opaque_sizes(program))
    if not sizes:
        return
    taken = {op.symbol for op in program.block.ops if isinstance(op, sym.Binder)}
    names: dict[Expr, Dim] = {}
    binders: set[Operation] = set()
    for size in sizes:
        name = f"h{len(names)}"
        while name in taken:
            name += "_"
        taken.add(name)
        binders.add(_bind(program, size, name))
        names[size] = symbol(name)
    last = _last_binder(program, {s.name for s in names.values()})  # type: ignore[union-attr]
    for argument in program.block.arguments:
        _refine(argument, names, last)
    for op in program.block.ops:
        for result in op.results:
            result.type = _replaced(result.type, names)
        if isinstance(op, aten.AtenOp | sym.ValueOp) and op not in binders:
            for key, attribute in op.attributes.items():
                op.attributes[key] = _replaced(attribute, names)
    info = program.attributes.get("result_info")
    if info is not None:
        program.attributes["result_info"] = _replaced(info, names)


def _opaque_sizes(program: func.FuncOp) -> Iterator[Expr]:
    seen: set[Any] = set()
    values = [*program.block.arguments, *(r for op in program.block.ops for r in op.results)]
    for value in values:
        type_ = value.type
        if type_ in seen or not isinstance(type_, TensorType):
            continue
        seen.add(type_)
        for dim in (*type_.shape, *(type_.strides or ())):
            yield from _opaque_parts(dim)


def _opaque_parts(dim: Dim) -> Iterator[Expr]:
    """The outermost functions in `dim` that kernels can't compute."""
    if isinstance(dim, Function):
        if dim.name not in IN_KERNELS:
            yield dim
            return
        parts = list(dim.arguments)
    elif isinstance(dim, Product):
        parts = list(dim.factors)
    elif isinstance(dim, Sum):
        parts = list(dim.monomials)
    else:
        return
    for part in parts:
        yield from _opaque_parts(part)


def _bind(program: func.FuncOp, size: Expr, name: str) -> Operation:
    """Bind `size` where its symbols are known; gives the operation that computes it."""
    place = _last_binder(program, set(free_symbols(size)))
    first = program.block.first
    assert first is not None
    builder = Builder.before(first) if place is None else Builder.after(place)
    computed = builder.create(sym.ValueOp, dim=size)
    builder.create(sym.BindOp, computed.results[0], symbol=name, minimum=0)
    return computed


def _last_binder(program: func.FuncOp, names: set[str]) -> Operation | None:
    last = None
    for op in program.block.ops:
        if isinstance(op, sym.Binder) and op.symbol in names:
            last = op
    return last


def _refine(argument: Value, names: dict[Expr, Dim], last: Operation | None) -> None:
    """Let what uses an argument see the new symbols in its type."""
    refined = _replaced(argument.type, names)
    if refined is argument.type or last is None:
        return
    users = [op for op in argument.users if not isinstance(op, sym.Binder)]
    # Strides leave the types later: what the new symbols make of them is kept here.
    entries = {"strides": A.DimsAttr(refined.strides)}
    refinement = Builder.after(last).insert(sym.RefineOp((argument,), (refined,), entries))
    for user in users:
        for position, operand in enumerate(user.operands):
            if operand is argument:
                user.set_operand(position, refinement.results[0])


def _replaced(content: Any, names: dict[Expr, Dim]) -> Any:
    """An attribute, type, size or tuple of them with the sizes in `names` replaced."""
    if isinstance(content, Expr):
        return replace(content, names)
    if isinstance(content, tuple):
        return tuple(_replaced(c, names) for c in content)
    if isinstance(content, Attribute) and content.parameters:
        new = tuple(_replaced(p, names) for p in content.parameters)
        return content if new == content.parameters else type(content)(*new)
    return content
