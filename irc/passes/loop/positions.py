"""Scalars of a body that are known positions, and what the extents of the axes decide of them.

Indices made from iotas, sizes and constants become index expressions, so that a gather by them
is a plain read, its bounds checks are proven here, and masks of pads and concats vanish where
they always or never hold. A position that may be out of bounds stays data, so that what reads or
writes there waits for its check.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from irc.analysis.positions import placeholders_of
from irc.dialects import arith, loop
from irc.ir import attributes as A
from irc.ir.core import Block, Operation, Value
from irc.ir.symbols import Dim, provable_le, simplify, substitute
from irc.ir.types import i1, i64, index
from irc.passes.common.bodies import (
    SEGMENTS,
    Body,
    clean_block,
    compress_all,
    op_class,
)

Extents = Mapping[str, Dim]

_MAX_DEPTH = 12
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
    if not isinstance(maker, arith.AddIOp | arith.SubIOp | arith.MulIOp):
        return None
    left, right = (position(o, depth - 1) for o in maker.operands)
    if left is None or right is None:
        return None
    if isinstance(maker, arith.AddIOp):
        return left + right
    return left - right if isinstance(maker, arith.SubIOp) else left * right


def fold_position(op: Operation, block: Block, extents: Extents) -> Value | None:
    """A simpler value for one operation of a body, by what is known of positions: a decided
    comparison, a read with a decided mask, a read at positions that are index expressions."""
    if isinstance(op, loop.ReadOp):
        return _fold_mask(op, block) or _fold_positions(op, block, extents)
    if isinstance(op, arith.CmpIOp):
        outcome = _decide(op, extents)
        return None if outcome is None else _constant(outcome, block, op)
    return None


def _decide(op: Operation, extents: Extents) -> bool | None:
    order = _ORDERS.get(op.attributes["predicate"].value)  # type: ignore[attr-defined]
    if order is None:
        return None
    left, right = position(op.operands[0]), position(op.operands[1])
    if left is None or right is None:
        return None
    exchanged, strict = order
    if exchanged:
        left, right = right, left
    if provable_le(right + strict, left, {}, extents):
        return True
    if provable_le(left + 1, right + strict, {}, extents):
        return False
    return None


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
