"""The pass `elide-rounding`."""

from __future__ import annotations

from irc.dialects import loop
from irc.ir.core import Block, Operation, Value
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.types import TensorType
from irc.passes.loop.bodies import clean_block


@register_pass
class ElideRounding(Pass):
    """Drops round trips through narrow floats inside a kernel.

    A float that is narrowed and widened again keeps its wide value, and an array that only
    members of its group read, all widening what they read, keeps wide elements. What is stored
    for others is rounded as before. Without this pass every operation rounds as eager does.

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
        if op.name != "arith.extf":
            continue
        maker = op._operands[0].defining_op
        if maker is None or maker.name != "arith.truncf":
            continue
        if maker._operands[0].type is op.results[0].type:
            op.results[0].replace_all_uses_with(maker._operands[0])
            op.erase()
            elided += 1
    if elided:
        clean_block(block)
    return elided


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
    if narrowing is None or narrowing.name != "arith.truncf":
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
