"""Building, copying and cleaning the scalar bodies of `loop.compute`.

Axes are named by position, `i0, i1, ...`, in everything that the loop passes make, so that two
computes over equal spaces use equal index expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from irc.analysis.positions import placeholders_of
from irc.dialects import loop, sym
from irc.ir import attributes as A
from irc.ir.attributes import Attribute, Type
from irc.ir.builder import Builder
from irc.ir.core import Block, Operation, Region, Value
from irc.ir.definition import Op
from irc.ir.location import UNKNOWN, Location
from irc.ir.registry import lookup_op
from irc.ir.symbols import (
    Dim,
    Expr,
    simplify,
    substitute,
    symbol,
)
from irc.ir.traits import Commutative, ConstantLike, Terminator
from irc.ir.types import FloatType, i1, index

SEGMENTS = "operandSegmentSizes"
_axis_symbols: list[Dim] = []


def axis_name(position: int) -> str:
    """The name of the axis at `position` of a space."""
    return f"i{position}"


def axis(position: int) -> Dim:
    """The index expression that is the axis at `position`."""
    while len(_axis_symbols) <= position:
        _axis_symbols.append(symbol(axis_name(len(_axis_symbols))))
    return _axis_symbols[position]


def axes_of(count: int) -> tuple[Dim, ...]:
    """The first `count` axes as index expressions."""
    return tuple(axis(position) for position in range(count))


def make_axes(extents: Sequence[Dim], red: Iterable[int] = (), kind: str = "red") -> A.ArrayAttr:
    """Axes i0, i1, ... over `extents`; those at the positions `red` are of `kind`."""
    combined = frozenset(red)
    return A.ArrayAttr(
        [
            loop.AxisAttr(axis_name(k), kind if k in combined else "par", extent)
            for k, extent in enumerate(extents)
        ]
    )


_classes: dict[str, type[Operation]] = {}


def op_class(name: str) -> type[Operation]:
    """The class of the operation `name`, which must exist."""
    cls = _classes.get(name)
    if cls is None:
        known = lookup_op(name)
        if known is None:
            raise KeyError(f"no operation {name}")
        cls = _classes[name] = known
    return cls


_NO_SEGMENTS: dict[str, Attribute] = {}


class Body:
    """A body under construction: appends operations before `anchor` (None: at the end).

    Equal pure operations made through one `Body` are made once.
    """

    def __init__(self, block: Block | None = None, anchor: Operation | None = None) -> None:
        self.block = Block() if block is None else block
        self.anchor = anchor
        self.location: Location = UNKNOWN
        self._known: dict[Any, Value] = {}

    def add(
        self,
        cls: type[Operation],
        operands: Sequence[Value],
        type_: Type,
        attributes: Mapping[str, Attribute] = _NO_SEGMENTS,
    ) -> Value:
        """An operation with one result; the one made before if it was equal."""
        key = (cls, tuple(operands), type_, *attributes.items())
        value = self._known.get(key)
        if value is None:
            op = cls(operands, (type_,), attributes, (), self.location)
            if self.anchor is None:
                self.block.append(op)
            else:
                self.block.insert_before(op, self.anchor)
            value = self._known[key] = op.results[0]
        return value

    def op(self, name: str, *operands: Value, type: Type | None = None, **attrs: Any) -> Value:
        """An arith or math operation; `type` is the result's (default: the first operand's)."""
        attributes = {key: _attribute(value) for key, value in attrs.items()}
        return self.add(op_class(name), operands, type or operands[0].type, attributes)

    def constant(self, value: Any, type_: Type) -> Value:
        """A constant of `type_` (a Python bool, int or float)."""
        attr: Attribute
        if isinstance(type_, FloatType):
            attr = A.FloatAttr(float(value), type_)
        elif type_ is i1:
            attr = A.BoolAttr(bool(value))
        else:
            attr = A.IntegerAttr(int(value), type_)
        return self.add(op_class("arith.constant"), (), type_, {"value": attr})

    def index(self, expression: Dim, positions: Sequence[Value] = ()) -> Value:
        """The value of an index expression."""
        if isinstance(expression, int):
            return self.constant(expression, index)
        expression, positions = compress_placeholders(expression, positions)
        attributes = {"expression": A.DimAttr(expression)}
        return self.add(loop.IndexOp, positions, index, attributes)

    def read(
        self,
        source: Value,
        indices: Sequence[Dim],
        positions: Sequence[Value] = (),
        mask: Value | None = None,
        other: Value | None = None,
    ) -> Value:
        """A `loop.read`."""
        operands = [source, *positions]
        if mask is not None:
            operands.append(mask)
        if other is not None:
            operands.append(other)
        sizes = (1, len(positions), int(mask is not None), int(other is not None))
        attributes = {"indices": A.DimsAttr(indices), SEGMENTS: A.DenseIntsAttr(sizes)}
        type_: Any = source.type
        return self.add(loop.ReadOp, operands, loop.signless(type_.element), attributes)

    def both(self, a: Value | None, b: Value | None) -> Value | None:
        """The conjunction of two masks; None is a mask that holds everywhere."""
        if a is None or b is None or a is b:
            return b if a is None else a
        return self.op("arith.andi", a, b)

    def select(self, condition: Value, yes: Value, no: Value) -> Value:
        """`yes` where the condition holds, else `no`."""
        return yes if yes is no else self.op("arith.select", condition, yes, no, type=yes.type)

    def zero(self, type_: Type) -> Value:
        """The zero of a scalar type."""
        return self.constant(0, type_)

    def compare(self, predicate: str, a: Value, b: Value) -> Value:
        """An integer comparison (`predicate` as in arith.cmpi)."""
        return self.op("arith.cmpi", a, b, type=i1, predicate=predicate)

    def finish(
        self,
        values: Sequence[Value],
        extra: Sequence[Value] = (),
        masks: Sequence[Value] = (),
    ) -> None:
        """End the body with `loop.yield`."""
        segments = A.DenseIntsAttr((len(values), len(extra), len(masks)))
        self.block.append(
            loop.YieldOp([*values, *extra, *masks], (), {SEGMENTS: segments}, (), self.location)
        )


def _attribute(value: Any) -> Attribute:
    if isinstance(value, Attribute):
        return value
    if isinstance(value, str):
        return A.StringAttr(value)
    raise TypeError(f"{value!r} is no attribute of a scalar operation")


def make_compute(
    builder: Builder,
    axes: A.ArrayAttr,
    outputs: Sequence[loop.ResultAttr],
    result_types: Sequence[Type],
    body: Body,
    inits: Sequence[Value] = (),
    stands_for: Operation | None = None,
) -> loop.ComputeOp:
    """Insert a `loop.compute` whose finished body is `body`. Where it stands for an operation, or a
    part of it, it has its location and runs for the same range of a size."""
    own = {} if stands_for is None else sym.range_entry(stands_for)
    op = loop.ComputeOp(
        inits,
        result_types,
        {"axes": axes, "outputs": A.ArrayAttr(outputs), **own},
        (Region([body.block]),),
        builder.location if stands_for is None else stands_for.location,
    )
    builder.insert(op)
    return op


# -- index expressions


def compress_placeholders(expression: Dim, positions: Sequence[Value]) -> tuple[Dim, list[Value]]:
    """The expression and only the operands that it names, each once, numbered from 0."""
    (renamed,), kept = compress_all((expression,), positions)
    return renamed, kept


def compress_all(
    dims: Sequence[Dim], positions: Sequence[Value]
) -> tuple[tuple[Dim, ...], list[Value]]:
    """As `compress_placeholders`, for several expressions over the same operands."""
    if not positions:
        return tuple(dims), []
    kept: list[Value] = []
    renaming: dict[str, Dim] = {}
    for number in placeholders_of(*dims):
        value = positions[number]
        if value not in kept:
            kept.append(value)
        renaming[loop.placeholder(number)] = symbol(loop.placeholder(kept.index(value)))
    return tuple(substitute(d, renaming) for d in dims), kept


def simplified(dims: Iterable[Dim], extents: Mapping[str, Dim]) -> tuple[Dim, ...]:
    """Index expressions simplified where the axes lie in [0, extent)."""
    return tuple(
        d if not isinstance(d, Expr) or d.polynomial else simplify(d, {}, extents) for d in dims
    )


def extents_of(op: loop.ComputeOp) -> dict[str, Dim]:
    """The extent of each axis of a compute, by name."""
    return {a.name: a.extent for a in op.axis_list}


# -- copying a body into another one


class Transplant:
    """Copies scalar operations into a body with the axes and placeholders replaced.

    mapping: the new index expression of each axis; `positions` are the operands that placeholders
    in those expressions stand for. `mask`: copied reads happen only where it holds.
    """

    def __init__(
        self,
        into: Body,
        mapping: Mapping[str, Dim],
        extents: Mapping[str, Dim],
        positions: Sequence[Value] = (),
        mask: Value | None = None,
    ) -> None:
        self.into = into
        self.mapping = mapping
        self.extents = extents
        self.positions = list(positions)
        self.mask = mask
        self.values: dict[Value, Value] = {}
        self._substitutions: dict[int, dict[str, Dim]] = {}

    def copy(self, op: Operation) -> None:
        """Copy one operation of the body (not its terminator)."""
        self.into.location = op.location
        if isinstance(op, loop.ReadOp):
            new = self._read(op)
        elif isinstance(op, loop.IndexOp):
            dims, positions = self.expressions((op.expression,), op.positions)
            new = self.into.index(dims[0], positions)
        else:
            operands = [self.values.get(o, o) for o in op.operands]
            new = self.into.add(type(op), operands, op.results[0].type, op.attributes)
        self.values[op.results[0]] = new

    def copy_body(self, op: loop.ComputeOp) -> None:
        """Copy all of a compute's body but its terminator."""
        for inner in op.block.ops:
            if inner is not op.yield_op:
                self.copy(inner)

    def expressions(
        self, dims: Sequence[Dim], own: Sequence[Value]
    ) -> tuple[tuple[Dim, ...], list[Value]]:
        """Index expressions of the copied body in terms of the new one, with their operands."""
        count = len(own)
        substitution = self._substitutions.get(count)
        if substitution is None:
            substitution = dict(self.mapping)
            shift = len(self.positions)
            if shift:
                for number in range(count):
                    name = loop.placeholder(number)
                    substitution[name] = symbol(loop.placeholder(number + shift))
            self._substitutions[count] = substitution
        moved = simplified((substitute(d, substitution) for d in dims), self.extents)
        return compress_all(moved, [*self.positions, *[self.values[p] for p in own]])

    def _read(self, op: loop.ReadOp) -> Value:
        dims, positions = self.expressions(op.indices, op.positions)
        mask = None if op.mask is None else self.values[op.mask]
        other = None if op.other is None else self.values[op.other]
        return self.into.read(op.source, dims, positions, self.into.both(self.mask, mask), other)


def with_axes(op: loop.ComputeOp, mapping: Mapping[str, Dim], extents: Mapping[str, Dim]) -> Body:
    """The body of a compute over other axes: the old ones' expressions in the new ones, and the
    extents of these."""
    body = Body()
    copier = Transplant(body, mapping, extents)
    copier.copy_body(op)
    end = op.yield_op
    parts = (end.values, end.extra, end.masks)
    body.finish(*([copier.values.get(v, v) for v in part] for part in parts))
    return body


def ops_needed(block: Block, value: Value) -> list[Operation]:
    """The operations of `block` that `value` depends on, in order."""
    maker = value.defining_op
    if maker is None or maker.parent is not block:
        return []
    needed: set[Operation] = set()
    stack = [maker]
    while stack:
        op = stack.pop()
        if op in needed:
            continue
        needed.add(op)
        for operand in op.operands:
            source = operand.defining_op
            if source is not None and source.parent is block:
                stack.append(source)
    return [op for op in block.ops if op in needed]


# -- cleaning


Fold = Callable[[Operation], Value | None]


def clean_block(block: Block, fold: Fold | None = None) -> int:
    """Fold, merge equal operations and drop unused ones in a scalar body; how many went.

    `fold` gives a simpler value for an operation that the dialects' own folds leave.
    """
    first_of: dict[Any, Operation] = {}
    removed = 0
    for op in block.ops:
        if Terminator in op.traits or len(op.results) != 1 or op.regions:
            continue
        result = op.results[0]
        folded = _fold(op, block)
        if folded is None and fold is not None:
            folded = fold(op)
        if folded is not None:
            result.replace_all_uses_with(folded)
            op.erase()
            removed += 1
            continue
        operands = op.operands
        if Commutative in op.traits and len(operands) == 2 and id(operands[0]) > id(operands[1]):
            operands = (operands[1], operands[0])
        key = (type(op), operands, result.type, frozenset(op.attributes.items()))
        first = first_of.get(key)
        if first is None:
            first_of[key] = op
            continue
        result.replace_all_uses_with(first.results[0])
        op.erase()
        removed += 1
    for op in block.reversed_ops:
        if op.results and not any(r.has_uses for r in op.results):
            op.erase()
            removed += 1
    return removed


def _fold(op: Operation, block: Block) -> Value | None:
    if not isinstance(op, Op) or type(op).fold is Op.fold:
        return None
    constants = []
    for operand in op.operands:
        maker = operand.defining_op
        constant = maker is not None and ConstantLike in maker.traits
        constants.append(maker.attributes.get("value") if constant else None)  # type: ignore[union-attr]
    outcome = op.fold(constants)
    if isinstance(outcome, list | tuple):
        outcome = outcome[0]
    if outcome is None or isinstance(outcome, Value):
        return outcome
    constant_op = op_class("arith.constant")((), (op.results[0].type,), {"value": outcome})
    block.insert_before(constant_op, op)
    return constant_op.results[0]
