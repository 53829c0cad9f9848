"""Arguments that share a storage: what a function says of them, and their storage as one value.

`aliases = [[0, 2]]` on a function says that arguments 0 and 2 may share elements; where each lies
in the storage is its `offset` in `arg_info` and its strides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs

from irc.dialects import aten, func, sym
from irc.dialects.aten.facts import Fact
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import BlockArgument, Operation, Value
from irc.ir.diagnostics import UserError
from irc.ir.symbols import Dim, symbol
from irc.ir.types import TensorType
from irc.passes.graph.functionalize.value_building import (
    call,
    extent,
    is_static,
    numbers,
    positions,
    scatter_strided,
    strides_of,
    type_of,
)


@attrs.frozen
class Base:
    """The storage that `members` share, from its place `offset` on, as a vector. `allowed`: the
    places (from there) at which one of them has an element; None where all have."""

    value: Value
    members: tuple[int, ...]
    offset: int
    allowed: frozenset[int] | None


def argument_begin(function: func.FuncOp, number: int, builder: Builder) -> Dim:
    """Where an argument begins in its storage, as `arg_info` says. Who asks depends on it: what is
    told becomes a fact that each call of the program checks (inserted by `builder`).

    This is the only place where a pass may learn it.
    """
    argument = function.block.arguments[number]
    info = function.arg_info
    entry = info[number] if info is not None and number < len(info) else None
    offset = entry.get("offset") if isinstance(entry, A.DictAttr) else None
    begin: Dim = offset.dim if isinstance(offset, A.DimAttr) else 0
    taken = set()
    for op in function.block.ops:
        if isinstance(op, sym.Binder):
            taken.add(op.symbol)
            if isinstance(op, sym.BindOffsetOp) and op.source is argument:
                return begin  # stated before, or it is this symbol
    name = f"begin{number}"
    while name in taken:
        name += "_"
    fixed = begin if isinstance(begin, int) else None
    builder.create(
        sym.BindOffsetOp, argument, symbol=name, maximum=fixed,
        minimum=0 if fixed is None else fixed,
    )  # fmt: skip
    if fixed is None:
        message = f"argument {number} begins elsewhere in its storage than at {begin}"
        builder.create(
            sym.AssertOp, relation="eq", lhs=symbol(name), rhs=begin, message=message
        )
    return begin


def alias_groups(function: func.FuncOp) -> list[tuple[int, ...]]:
    """The groups of arguments that `aliases` names. Raises UserError where it is malformed."""
    attribute = function.attributes.get("aliases")
    groups = []
    for entry in attribute if isinstance(attribute, A.ArrayAttr) else ():
        parts = tuple(entry) if isinstance(entry, A.ArrayAttr) else ()
        group = [part.value for part in parts if isinstance(part, A.IntegerAttr)]
        count = len(function.block.arguments)
        if not group or len(group) < len(parts) or not all(0 <= n < count for n in group):
            raise UserError(f"aliases = {attribute}: not lists of argument numbers", op=function)
        groups.append(tuple(sorted(set(group))))
    return groups


def _is_alias(op: Operation) -> bool:
    return isinstance(op, aten.AtenOp) and op.schema.returns_alias


class _Origins:
    """In the storages of which arguments a value may lie, as far as operations were followed."""

    def __init__(self, function: func.FuncOp) -> None:
        self.known: dict[Value, frozenset[int]] = {
            argument: frozenset((number,))
            for number, argument in enumerate(function.block.arguments)
        }

    def of(self, values: Iterable[Value]) -> frozenset[int]:
        """Of one of these values."""
        return frozenset().union(*(self.known.get(v, frozenset()) for v in values))

    def written(self, op: Operation) -> frozenset[int]:
        """Those that an operation may write."""
        if not isinstance(op, aten.AtenOp):
            return frozenset()
        arguments = op.arguments.as_dict()
        return self.of(
            op.operands[number]
            for argument in op.schema.arguments
            if argument.is_write and argument.name in arguments
            for number in aten.operand_indices(arguments[argument.name])
        )

    def follow(self, op: Operation) -> None:
        """Take note of the views that an operation makes."""
        if isinstance(op, sym.RefineOp):
            self.known[op.results[0]] = self.of(op.operands[:1])
        elif _is_alias(op):
            self.known.update(dict.fromkeys(op.results, self.of(op.operands)))


def written_arguments(function: func.FuncOp) -> set[int]:
    """The arguments that operations of the function may write, themselves or through views."""
    origins = _Origins(function)
    written: set[int] = set()
    for op in function.block.ops:
        origins.follow(op)
        written |= origins.written(op)
    return written


def _copies_whole(op: Operation) -> bool:
    """Whether all elements of an argument become those of a tensor of its sizes and dtype."""
    if not isinstance(op, aten.AtenOp) or Fact.ASSIGNS not in op.schema.facts:
        return False
    if len(op.operands) == 1:  # to itself
        return False
    target, source = op.operands
    old, new = type_of(target), type_of(source)
    return (
        isinstance(target, BlockArgument)
        and new.shape == old.shape
        and new.element is old.element
    )


def settled_copies(function: func.FuncOp) -> dict[Operation, int]:
    """The copies onto arguments at the end that are the only write of theirs, and behind which
    nothing reads what it held before, and nothing is computed: such writes are functional."""
    origins = _Origins(function)
    copies: dict[int, Operation] = {}
    recent: set[int] = set()  # of the copies, those behind which nothing was computed yet
    known_at = dict.fromkeys(origins.known, 0)
    written_at: dict[int, int] = {}
    lost = {number for group in alias_groups(function) if len(group) > 1 for number in group}

    def is_stale(value: Value) -> bool:
        """Whether a value was known before its storage was written."""
        since = known_at.get(value)
        return since is not None and any(
            written_at.get(root, -1) >= since for root in origins.known[value]
        )

    for step, op in enumerate(function.block.ops):
        lost |= origins.of(v for v in op.operands if is_stale(v))
        if not isinstance(op, func.ReturnOp | sym.RefineOp) and not _is_alias(op):
            lost |= recent
            recent.clear()
        written = origins.written(op)
        if written:
            lost |= written & copies.keys()
            if not _copies_whole(op) or written & origins.of(op.operands[1:]):
                lost |= written
            copies.update(dict.fromkeys(written, op))
            recent |= written
            written_at.update(dict.fromkeys(written, step))
        origins.follow(op)
        known_at.update((r, step + 1) for r in op.results if r in origins.known)
    return {op: number for number, op in copies.items() if number not in lost}


def bases(function: func.FuncOp, written: set[int], builder: Builder) -> Iterator[Base]:
    """The common storage of each group of arguments of which one is written.

    Raises UserError where sizes are symbolic or element types differ.
    """
    for members in alias_groups(function):
        if len(members) > 1 and written.intersection(members):
            yield _base(function, members, builder)


def _base(function: func.FuncOp, members: tuple[int, ...], builder: Builder) -> Base:
    values = [function.block.arguments[k] for k in members]
    kinds = [v.type for v in values]
    begins = [argument_begin(function, k, builder) for k in members]
    offsets = [o for o in begins if isinstance(o, int)]
    known = all(isinstance(k, TensorType) and is_static(k) for k in kinds)
    if not known or len(offsets) < len(begins):
        raise UserError(
            f"arguments {list(members)} share a storage and one is written: that needs known "
            "sizes, strides and offsets",
            op=function,
        )
    types = [type_of(v) for v in values]
    if len({t.element for t in types}) > 1:
        raise UserError(
            f"arguments {list(members)} share a storage with different element types, and one "
            "is written",
            op=function,
        )
    low = min(offsets)
    ends = [o + extent(t.shape, strides_of(t)) for o, t in zip(offsets, types, strict=True)]
    length = max(ends) - low
    memory_type = types[0].with_shape((length,), (1,))
    flat = call(builder, "new_zeros.default", memory_type, values[0], [length])
    places: set[int] = set()
    for value, type_, offset in zip(values, types, offsets, strict=True):
        strides = strides_of(type_)
        flat = scatter_strided(builder, flat, value, type_.shape, strides, offset - low)
        places |= set(positions(numbers(type_.shape), strides, offset - low))
    allowed = None if len(places) == length else frozenset(places)
    return Base(flat, members, low, allowed)
