"""The pass `elide-rounding`."""

from __future__ import annotations

from typing import cast

from irc.dialects import loop
from irc.ir.attributes import StringAttr, Type
from irc.ir.core import Block, Operation, Value
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.types import FloatType, TensorType
from irc.passes.loop.bodies import clean_block

# How many choices deep a rounding is looked for.
_MAX_DEPTH = 16


@register_pass
class ElideRounding(Pass):
    """Drops round trips through 16-bit floats inside a kernel.

    A float that is narrowed and widened again keeps its wide value, also where it is chosen from
    several in between, and an array that only members of its group read, all widening what they
    read, keeps wide elements. What is stored for others is rounded as before, and what is compared
    for equality, since the other side may be stored: the gradient of a maximum looks for it among
    values computed anew. Without this pass every operation rounds as eager does.

    Before:
        %n = arith.truncf %x : (f32) -> bf16
        %w = arith.extf %n : (bf16) -> f32
    After: every use of %w is a use of %x.
    """

    name = "elide-rounding"
    summary = "drop round trips through 16-bit floats inside kernels"
    anchor = "func.func"
    preserves = "real"

    def run(self, op: Operation, context: PassContext) -> None:
        elided = 0
        for inner in op.regions[0].blocks[0].ops:
            if isinstance(inner, loop.GroupOp):
                elided += _widen_locals(inner.block)
                for member in inner.regions[0].walk():
                    if isinstance(member, loop.ComputeOp):
                        elided += elide(member.block)
            elif isinstance(inner, loop.ComputeOp):
                elided += elide(inner.block)
        context.count("elided", elided)


def elide(block: Block) -> int:
    """Drop the round trips in one scalar body; how many went."""
    elided = 0
    for op in block.ops:
        if op.name == "arith.extf" and _is_rounded(op._operands[0], op.results[0].type):
            widened = op.results[0]
            exact = [_asks_whether_equal(user) for user in widened.users]
            if exact and all(exact):
                continue
            wide = _unrounded(op._operands[0], op)
            if any(exact):
                widened.replace_uses_if(wide, lambda user: not _asks_whether_equal(user))
            else:
                widened.replace_all_uses_with(wide)
                op.erase()
            elided += 1
    if elided:
        clean_block(block)
    return elided


def _asks_whether_equal(op: Operation) -> bool:
    """Whether an operation compares two values for equality (one with itself: is it NaN?)."""
    if op.name != "arith.cmpf" or op._operands[0] is op._operands[1]:
        return False
    return cast(StringAttr, op.attributes["predicate"]).value in ("oeq", "ueq", "one", "une")


def _is_rounded(value: Value, wide: Type, depth: int = _MAX_DEPTH) -> bool:
    """Whether a narrow float is, or is chosen among others from, one narrowed from `wide`."""
    maker = value.defining_op
    if maker is None or depth == 0:
        return False
    if maker.name == "arith.select":
        return any(_is_rounded(o, wide, depth - 1) for o in maker._operands[1:])
    return _drops_digits(maker) and maker._operands[0].type is wide


def _drops_digits(op: Operation) -> bool:
    """Whether an operation narrows to 16 bits. Nobody narrows to 8 but for the rounding."""
    return op.name == "arith.truncf" and cast(FloatType, op.results[0].type).width == 16


def _unrounded(value: Value, user: Operation, depth: int = _MAX_DEPTH) -> Value:
    """The narrow `value` before its rounding, in the type that `user` widens it to."""
    wide = user.results[0].type
    maker = value.defining_op
    if maker is not None and _is_rounded(value, wide, depth):
        if maker.name == "arith.truncf":
            return maker._operands[0]
        chosen = [_unrounded(o, user, depth - 1) for o in maker._operands[1:]]
        made = type(maker)((maker._operands[0], *chosen), (wide,), {}, (), maker.location)
    else:
        made = type(user)((value,), (wide,), {}, (), user.location)
    assert user.parent is not None
    user.parent.insert_before(made, user)
    return made.results[0]


def _widen_locals(block: Block) -> int:
    widened = 0
    for op in block.ops:
        if isinstance(op, loop.ComputeOp):
            for number, output in enumerate(op.output_list):
                if output is loop.MAP:
                    widened += _widen(op, number)
    return widened


def _widen(op: loop.ComputeOp, number: int) -> int:
    (array,) = op.results_of(number)
    narrowing = op.yield_op.values[number].defining_op
    if narrowing is None or not _drops_digits(narrowing):
        return 0
    source: Value = narrowing._operands[0]
    reads = list(array.users)
    widenings: list[Operation] = []
    for read in reads:
        if not isinstance(read, loop.ReadOp) or read.other is not None or not read.value.has_uses:
            return 0
        widenings.extend(read.value.users)
    if any(w.name != "arith.extf" or w.results[0].type is not source.type for w in widenings):
        return 0
    if any(_asks_whether_equal(user) for w in widenings for user in w.results[0].users):
        return 0
    assert isinstance(array.type, TensorType)
    array.type = array.type.with_element(source.type)
    op.yield_op.set_operand(number, source)
    for read in reads:
        read.results[0].type = source.type
    for widening in widenings:
        widening.results[0].replace_all_uses_with(widening._operands[0])
        widening.erase()
    if not narrowing.results[0].has_uses:
        narrowing.erase()
    return len(widenings)
