"""The pass `elide-rounding`."""

from __future__ import annotations

from collections.abc import Set
from typing import cast

from irc.analysis.contraction import tiled
from irc.dialects import arith, loop
from irc.ir.attributes import Attribute, StringAttr, Type
from irc.ir.core import Block, Operation, Value
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.types import FloatType, TensorType
from irc.passes.common.bodies import clean_block
from irc.target import Target, target_of

# How many choices deep a rounding is looked for.
_MAX_DEPTH = 16


@register_pass
class ElideRounding(Pass):
    """Drops round trips through 16-bit floats inside a kernel.

    A float that is narrowed and widened again keeps its wide value, also where it is chosen from
    several in between, and an array that only members of its group read, all widening what they
    read, keeps wide elements. What is stored for others is rounded as before, and all that is
    computed from it is computed from the rounded number, or a softmax would take the difference of
    a stored element and the maximum of elements with more digits: a `rounding` is dropped nowhere
    if one copy of it stays. What is compared for equality stays rounded, too, since the other side
    may be stored by another program: the gradient of a maximum looks for it among values computed
    anew. So do the factors of a contraction whose kernel multiplies tiles. Without this pass every
    operation rounds as eager does.

    Before:
        %n = arith.truncf %x : f32 to bf16
        %w = arith.extf %n : bf16 to f32
    After: every use of %w is a use of %x.
    """

    name = "elide-rounding"
    summary = "drop round trips through 16-bit floats inside kernels"
    anchor = "func.func"
    preserves = "real"
    asks_target = True

    def run(self, op: Operation, context: PassContext) -> None:
        target = target_of(context)
        groups, computes = [], []
        for inner in op.regions[0].blocks[0].ops:
            if isinstance(inner, loop.GroupOp):
                groups.append(inner)
                computes += [m for m in inner.regions[0].walk() if isinstance(m, loop.ComputeOp)]
            elif isinstance(inner, loop.ComputeOp):
                computes.append(inner)
        numbered = [
            narrowing
            for compute in computes
            for narrowing in compute.block.ops
            if isinstance(narrowing, arith.TruncFOp) and "rounding" in narrowing.attributes
        ]
        stay = frozenset(
            n.attributes["rounding"]
            for n in numbered
            if _stays(n.results[0], n.operands[0].type, target)
        )
        elided = sum(_widen_locals(group.block, target, stay, context) for group in groups)
        elided += sum(_elide(compute.block, target, stay, context) for compute in computes)
        for narrowing in numbered:
            del narrowing.attributes["rounding"]
        context.count("elided", elided)


# -- which roundings stay


def _stays(value: Value, wide: Type, target: Target, depth: int = _MAX_DEPTH) -> bool:
    """Whether anything but a widening to `wide` takes a narrow float, itself or chosen from
    others."""
    for user in value.users:
        if isinstance(user, arith.ExtFOp) and user.results[0].type is wide:
            continue
        if isinstance(user, arith.SelectOp) and depth:
            if _stays(user.results[0], wide, target, depth - 1):
                return True
        elif not isinstance(user, loop.YieldOp) or _is_stored(user, value, wide, target):
            return True
    return False


def _is_stored(op: loop.YieldOp, value: Value, wide: Type, target: Target) -> bool:
    """Whether a yielded narrow float is in an array whose elements can't be `wide`."""
    compute, maker = op.parent_op, value.defining_op
    assert isinstance(compute, loop.ComputeOp) and maker is not None
    if not isinstance(compute.parent_op, loop.GroupOp) or not isinstance(maker, arith.TruncFOp):
        return True
    outputs = compute.output_list
    return any(
        outputs[number] is not loop.MAP or _widenings(compute, number, wide, target) is None
        for number, yielded in enumerate(op.values)
        if yielded is value
    )


def _drops_digits(op: Operation, stay: Set[Attribute]) -> bool:
    """Whether an operation is a narrowing to 16 bits that may go. Nobody narrows to 8, or says how
    it is to be rounded, but for the rounding."""
    if not isinstance(op, arith.TruncFOp) or cast(FloatType, op.results[0].type).width != 16:
        return False
    mode = op.attributes.get("roundingmode")
    if isinstance(mode, StringAttr) and mode.value not in arith.ROUNDING:
        return False
    return op.attributes.get("rounding") not in stay


def _asks_whether_equal(op: Operation) -> bool:
    """Whether an operation compares two values for equality (one with itself: is it NaN?)."""
    if not isinstance(op, arith.CmpFOp) or op.operands[0] is op.operands[1]:
        return False
    return cast(StringAttr, op.attributes["predicate"]).value in ("oeq", "ueq", "one", "une")


# -- in one body


def _elide(block: Block, target: Target, stay: Set[Attribute], context: PassContext) -> int:
    """Drop the round trips in one scalar body; how many went."""
    elided, factors = 0, _narrow_factors(block, target)
    for op in block.ops:
        if op in factors:
            continue
        if isinstance(op, arith.ExtFOp) and _is_rounded(op.operands[0], op.results[0].type, stay):
            widened = op.results[0]
            exact = [_asks_whether_equal(user) for user in widened.users]
            if exact and all(exact) or not context.spend("elide-rounding", op):
                continue
            wide = _unrounded(op.operands[0], op, stay)
            if any(exact):
                widened.replace_uses_if(wide, lambda user: not _asks_whether_equal(user))
            else:
                widened.replace_all_uses_with(wide)
                op.erase()
            elided += 1
    if elided:
        clean_block(block)
    return elided


def _narrow_factors(block: Block, target: Target) -> set[Operation]:
    """What widens the factors of tiles: of narrow ones these are faster, and a library's are."""
    contraction = tiled(block.parent_op, target)
    if contraction is None:
        return set()
    makers = [side.value.defining_op for side in (contraction.left, contraction.right)]
    return {m for m in makers if isinstance(m, arith.ExtFOp) and m.results[0].use_count == 1}


def _is_rounded(value: Value, wide: Type, stay: Set[Attribute], depth: int = _MAX_DEPTH) -> bool:
    """Whether a narrow float is, or is chosen among others from, one narrowed from `wide`."""
    maker = value.defining_op
    if maker is None or depth == 0:
        return False
    if isinstance(maker, arith.SelectOp):
        return any(_is_rounded(o, wide, stay, depth - 1) for o in maker.operands[1:])
    return _drops_digits(maker, stay) and maker.operands[0].type is wide


def _unrounded(
    value: Value, user: Operation, stay: Set[Attribute], depth: int = _MAX_DEPTH
) -> Value:
    """The narrow `value` before its rounding, in the type that `user` widens it to."""
    wide = user.results[0].type
    maker = value.defining_op
    if maker is not None and _is_rounded(value, wide, stay, depth):
        if isinstance(maker, arith.TruncFOp):
            return maker.operands[0]
        chosen = [_unrounded(o, user, stay, depth - 1) for o in maker.operands[1:]]
        wider = type(maker)((maker.operands[0], *chosen), (wide,), {}, (), maker.location)
    else:
        wider = type(user)((value,), (wide,), {}, (), user.location)
    assert user.parent is not None
    user.parent.insert_before(wider, user)
    return wider.results[0]


# -- between the members of a group


def _widen_locals(
    block: Block, target: Target, stay: Set[Attribute], context: PassContext
) -> int:
    widened = 0
    for op in block.ops:
        if isinstance(op, loop.ComputeOp):
            for number, output in enumerate(op.output_list):
                if output is loop.MAP:
                    widened += _widen(op, number, target, stay, context)
    return widened


def _widenings(
    op: loop.ComputeOp, number: int, wide: Type, target: Target
) -> list[Operation] | None:
    """What widens the elements of a narrowed array to `wide`, where all its readers do and may do
    without; None: some may not, as factors of tiles."""
    (array,) = op.results_of(number)
    widenings: list[Operation] = []
    for read in array.users:
        if not isinstance(read, loop.ReadOp) or read.other is not None or not read.value.has_uses:
            return None
        widenings.extend(read.value.users)
    if any(not isinstance(w, arith.ExtFOp) or w.results[0].type is not wide for w in widenings):
        return None
    if any(_asks_whether_equal(user) for w in widenings for user in w.results[0].users):
        return None
    blocks = {w.parent for w in widenings if w.parent is not None}
    if any(w in _narrow_factors(block, target) for block in blocks for w in widenings):
        return None
    return widenings


def _widen(
    op: loop.ComputeOp, number: int, target: Target, stay: Set[Attribute], context: PassContext
) -> int:
    narrowing = op.yield_op.values[number].defining_op
    if narrowing is None or not _drops_digits(narrowing, stay):
        return 0
    source: Value = narrowing.operands[0]
    widenings = _widenings(op, number, source.type, target)
    if widenings is None or not context.spend("elide-rounding", op):
        return 0
    (array,) = op.results_of(number)
    assert isinstance(array.type, TensorType)
    reads = list(array.users)
    array.type = array.type.with_element(source.type)
    op.yield_op.set_operand(number, source)
    for read in reads:
        read.results[0].type = source.type
    for widening in widenings:
        widening.results[0].replace_all_uses_with(widening.operands[0])
        widening.erase()
    if not narrowing.results[0].has_uses:
        narrowing.erase()
    return len(widenings)
