"""Scalars of a body that are known positions, and what the extents of the axes decide of them.

Indices made from iotas, sizes and constants become index expressions, so that a gather by them
is a plain read, its bounds checks are proven here, and masks of pads and concats vanish where
they always or never hold. A position that may be out of bounds stays data, so that what reads or
writes there waits for its check.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from irc.analysis.positions import placeholders_of
from irc.analysis.scalar_ranges import ScalarRanges
from irc.dialects import arith, loop
from irc.ir import attributes as A
from irc.ir.core import Block, Operation, Value
from irc.ir.symbols import Dim, floordiv, provable_le, simplify, substitute
from irc.ir.types import i1, i64, index
from irc.passes.common.bodies import (
    SEGMENTS,
    Body,
    clean_block,
    compress_all,
    extents_of,
    op_class,
)

Extents = Mapping[str, Dim]
#: What is known of an integer or a condition: an index expression, an outcome, or nothing.
Known: TypeAlias = Dim | bool | None

_MAX_DEPTH = 12
_COMBINED: Mapping[type[Operation], Callable[..., Dim]] = {
    arith.AddIOp: operator.add, arith.SubIOp: operator.sub, arith.MulIOp: operator.mul,
}  # fmt: skip
# predicate -> (operands exchanged, strict): it holds where left - right >= strict.
_ORDERS = {"sge": (False, 0), "sgt": (False, 1), "slt": (True, 1), "sle": (True, 0)}


def position(value: Value, depth: int = _MAX_DEPTH) -> Dim | None:
    """The index expression over axes and sizes that a 64-bit integer scalar is, if it is one.

    Sums and products of sizes and positions are taken not to overflow 64 bits.
    """
    maker = value.defining_op
    if maker is None or depth == 0 or (value.type is not index and value.type is not i64):
        return None
    if isinstance(maker, loop.IndexOp):
        return None if maker.operands else maker.attributes["expression"].dim  # type: ignore[attr-defined]
    if isinstance(maker, arith.ConstantOp):
        return maker.attributes["value"].value  # type: ignore[attr-defined]
    if isinstance(maker, arith.IndexCastOp):
        return position(maker.operands[0], depth - 1)
    combined = _combined(maker)
    if combined is None:
        return None
    left, right = (position(o, depth - 1) for o in maker.operands)
    return None if left is None or right is None else combined(left, right)


def _combined(op: Operation) -> Callable[..., Dim] | None:
    """What an operation makes of two positions; of a quotient, of one by a positive constant."""
    divisor = op.operands[1].defining_op if isinstance(op, arith.FloorDivSIOp) else None
    if isinstance(divisor, arith.ConstantOp) and divisor.attributes["value"].value > 0:  # type: ignore[attr-defined]
        return floordiv
    return _COMBINED.get(type(op))


def map_position(op: Operation | None, memo: dict[Operation, Known]) -> Known:
    """The index expression over its axes that each element of a map is, by way of the maps that it
    reads, or the outcome that all have; None of any other. memo: what is known of operations."""
    if not isinstance(op, loop.ComputeOp) or len(op.results) != 1:
        return None
    if op not in memo:
        element = op.results[0].type.element  # type: ignore[attr-defined]
        plain = list(op.output_list) == [loop.MAP] and element in (i64, i1)
        memo[op] = _map_position(op, memo) if plain else None
    return memo[op]


def _map_position(op: loop.ComputeOp, memo: dict[Operation, Known]) -> Known:
    extents, known = extents_of(op), dict[Value, Known]()
    for inner in op.block.ops:
        if inner is not op.yield_op:
            operands = [known.get(o) for o in inner.operands]
            known[inner.results[0]] = _scalar_position(inner, operands, extents, memo)
    return known.get(op.yield_op.values[0])


def _scalar_position(
    op: Operation, operands: Sequence[Known], extents: Extents, memo: dict[Operation, Known]
) -> Known:
    """What an operation of a map's body gives."""
    if isinstance(op, loop.ReadOp):
        source = None if op.mask is not None or op.positions else op.source.defining_op
        dim = map_position(source, memo)
        if isinstance(dim, bool) or dim is None or not isinstance(source, loop.ComputeOp):
            return dim
        moved = {a.name: i for a, i in zip(source.axis_list, op.indices, strict=True)}
        return simplify(substitute(dim, moved), {}, extents)
    if isinstance(op, arith.SelectOp) and isinstance(operands[0], bool):
        return operands[1 if operands[0] else 2]
    if isinstance(op, loop.IndexOp | arith.ConstantOp):
        return position(op.results[0])
    dims: Any = operands
    if any(isinstance(dim, bool) or dim is None for dim in dims):
        return None
    if isinstance(op, arith.CmpIOp):
        return _outcome(op.predicate, dims[0], dims[1], extents)
    if op.results[0].type not in (index, i64):
        return None
    if isinstance(op, arith.IndexCastOp):
        return dims[0]  # type: ignore[no-any-return]
    combined = _combined(op)
    return None if combined is None else combined(*dims)


def is_chosen_position(op: loop.ComputeOp) -> bool:
    """Whether a map that reads nothing is whole numbers of its axes, added up, multiplied and
    chosen: an index expression where positions are looked up, if the choice is known there."""
    plain = loop.IndexOp | loop.YieldOp | arith.ConstantOp | arith.IndexCastOp
    sums = arith.AddIOp | arith.SubIOp | arith.MulIOp | arith.CmpIOp | arith.SelectOp
    makers = [o.source.defining_op for o in op.block.ops if isinstance(o, loop.ReadOp)]
    return all(isinstance(o, loop.ReadOp | plain | sums) for o in op.block.ops) and all(
        isinstance(maker, loop.ComputeOp) and is_chosen_position(maker) for maker in makers
    )


def fold_position(
    op: Operation, block: Block, extents: Extents, ranges: ScalarRanges
) -> Value | None:
    """A simpler value for one operation of a body, by what is known of positions: a decided
    comparison, the one of two numbers that is never the other's extreme, a read with a decided
    mask, a read or an index at positions that are index expressions. ranges: of the body."""
    if isinstance(op, loop.IndexOp):
        return _fold_index(op, block, extents)
    if isinstance(op, loop.ReadOp):
        return _fold_mask(op, block) or _fold_positions(op, block, extents)
    if isinstance(op, arith.CmpIOp | arith.CmpFOp):
        outcome = _decide(op, extents) if isinstance(op, arith.CmpIOp) else None
        outcome = ranges.outcome(op) if outcome is None else outcome
        return None if outcome is None else _constant(outcome, block, op)
    if isinstance(op, arith.MinSIOp | arith.MaxSIOp):
        return _extreme(op, ranges)
    return None


def position_folds(block: Block, extents: Extents) -> Callable[[Operation], Value | None]:
    """`fold_position` for the operations of one body."""
    ranges = ScalarRanges(extents)
    return lambda op: fold_position(op, block, extents, ranges)


def _extreme(op: Operation, ranges: ScalarRanges) -> Value | None:
    """The operand that an extreme is at every point."""
    one, other = op.operands
    below = ranges.of(one).hi <= ranges.of(other).lo
    if not below and not ranges.of(other).hi <= ranges.of(one).lo:
        return None
    return one if below is isinstance(op, arith.MinSIOp) else other


def _decide(op: Operation, extents: Extents) -> bool | None:
    left, right = position(op.operands[0]), position(op.operands[1])
    if left is None or right is None:
        return None
    return _outcome(op.attributes["predicate"].value, left, right, extents)  # type: ignore[attr-defined]


def _outcome(predicate: str, left: Dim, right: Dim, extents: Extents) -> bool | None:
    """What a comparison of positions gives at all points, if that is known."""
    if predicate in ("eq", "ne"):
        apart = _are_apart(left, right, extents)
        return apart if apart is None else apart is (predicate == "ne")
    if predicate not in _ORDERS:
        return None
    exchanged, strict = _ORDERS[predicate]
    if exchanged:
        left, right = right, left
    if provable_le(right + strict, left, {}, extents):
        return True
    if provable_le(left + 1, right + strict, {}, extents):
        return False
    return None


def _are_apart(left: Dim, right: Dim, extents: Extents) -> bool | None:
    """Whether two positions differ at every point, or at none; None if neither is known."""
    ordered = ((left, right), (right, left))
    if all(provable_le(a, b, {}, extents) for a, b in ordered):
        return False
    return True if any(provable_le(a + 1, b, {}, extents) for a, b in ordered) else None


def _constant(outcome: bool, block: Block, before: Operation) -> Value:
    constant = op_class("arith.constant")((), (i1,), {"value": A.BoolAttr(outcome)})
    block.insert_before(constant, before)
    return constant.results[0]


def is_true(value: Value) -> bool:
    """Whether a boolean scalar is the constant true."""
    maker = value.defining_op
    return (
        isinstance(maker, arith.ConstantOp)
        and bool(maker.attributes["value"].value)  # type: ignore[attr-defined]
    )


def _fold_index(op: loop.IndexOp, block: Block, extents: Extents) -> Value | None:
    known = {loop.placeholder(k): position(o) for k, o in enumerate(op.positions)}
    dims = {name: dim for name, dim in known.items() if dim is not None}
    if not dims or len(dims) < len(known):
        return None
    body = Body(block, op)
    body.location = op.location
    return body.index(simplify(substitute(op.expression, dims), {}, extents))


def _fold_mask(op: loop.ReadOp, block: Block) -> Value | None:
    mask = op.mask
    maker = None if mask is None else mask.defining_op
    if not isinstance(maker, arith.ConstantOp):
        return None
    body = Body(block, op)
    body.location = op.location
    if is_true(mask):
        return body.read(op.source, op.indices, op.positions)
    return body.zero(op.results[0].type) if op.other is None else op.other


def _fold_positions(op: loop.ReadOp, block: Block, extents: Extents) -> Value | None:
    known: dict[str, Dim] = {}
    for number, operand in enumerate(op.positions):
        dim = position(operand)
        if dim is not None:
            known[loop.placeholder(number)] = dim
    if not known:
        return None
    shape = op.source.type.shape  # type: ignore[attr-defined]
    known = known if op.mask is not None else _inside(op.indices, known, shape, extents)
    if not known:
        return None
    body = Body(block, op)
    body.location = op.location
    moved = [simplify(substitute(d, known), {}, extents) for d in op.indices]
    indices, positions = compress_all(moved, op.positions)
    return body.read(op.source, indices, positions, op.mask, op.other)


def _inside(
    indices: Sequence[Dim], known: Mapping[str, Dim], shape: Sequence[Dim], extents: Extents
) -> dict[str, Dim]:
    """Those of the known placeholders whose indices are in bounds, at every point."""
    outside: set[str] = set()
    for dim, size in zip(indices, shape, strict=True):
        names = {loop.placeholder(k) for k in placeholders_of(dim)}
        moved = simplify(substitute(dim, known), {}, extents)
        if not (provable_le(0, moved, {}, extents) and provable_le(moved + 1, size, {}, extents)):
            outside |= names
    return {name: dim for name, dim in known.items() if name not in outside}


def fold_scatters(op: loop.ComputeOp, extents: Extents) -> None:
    """Make index expressions of the positions of scatters that are some, and in bounds."""
    terminator = op.yield_op
    extra, outputs, kept = list(terminator.extra), list(op.output_list), []
    for number, output in enumerate(outputs):
        if output.kind != "scatter":
            continue
        dims = output.index_dims
        count = max(placeholders_of(*dims), default=-1) + 1
        mine, extra = extra[:count], extra[count:]
        dim_of = {loop.placeholder(k): position(value) for k, value in enumerate(mine)}
        known = {name: dim for name, dim in dim_of.items() if dim is not None}
        shape = op.results_of(number)[0].type.shape  # type: ignore[attr-defined]
        if not terminator.masks:
            known = _inside(dims, known, shape, extents)
        moved = [simplify(substitute(d, known), {}, extents) for d in dims]
        indices, operands = compress_all(moved, mine)
        outputs[number] = loop.ResultAttr(
            "scatter", output.combiner, output.accumulator, A.DimsAttr(indices)
        )
        kept += operands
    if len(kept) == len(terminator.extra):
        return
    values, masks = list(terminator.values), list(terminator.masks)
    terminator.operands = [*values, *kept, *masks]
    terminator.attributes[SEGMENTS] = A.DenseIntsAttr((len(values), len(kept), len(masks)))
    op.attributes["outputs"] = A.ArrayAttr(outputs)
    clean_block(op.block)
