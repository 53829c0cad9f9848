"""The pass `hoist-assertions`."""

from __future__ import annotations

from irc.dialects import sym
from irc.ir.core import Block, Operation
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.symbols import free_symbols


@register_pass
class HoistAssertions(Pass):
    """Moves each assertion about sizes up to the first point where its symbols exist.

    Converting an operation may state a fact where the operation stands, after others that compute
    for nothing if it does not hold. Assertions that come to one point stay in order; of two that
    fail, the one whose symbols exist first tells.

    Before:
        %n = sym.bind %i {symbol = "u0"} : (index) -> index
        %e = graph.exp %x : (tensor<[s0] x f32>) -> tensor<[s0] x f32>
        sym.assert {relation = "lt", lhs = #sym<u0>, rhs = #sym<s0>, message = "u0 < s0"}
    After:
        %n = sym.bind %i {symbol = "u0"} : (index) -> index
        sym.assert {relation = "lt", lhs = #sym<u0>, rhs = #sym<s0>, message = "u0 < s0"}
        %e = graph.exp %x : (tensor<[s0] x f32>) -> tensor<[s0] x f32>
    """

    name = "hoist-assertions"
    summary = "move assertions about sizes to where their symbols first exist"
    anchor = "func.func"

    def run(self, op: Operation, context: PassContext) -> None:
        for region in op.regions:
            for block in region.blocks:
                context.count("moved", hoist(block, context))


def hoist(block: Block, context: PassContext) -> int:
    """Move the assertions of one block; how many moved."""
    numbers = {op: number for number, op in enumerate(block.ops)}
    binders: dict[str, Operation] = {}
    # The last of the assertions that follow a binder.
    ends: dict[Operation, Operation] = {}
    moved = 0
    for op in numbers:
        if isinstance(op, sym.Binder):
            binders[op.symbol] = op
        elif isinstance(op, sym.AssertOp):
            names = free_symbols(op.lhs) | free_symbols(op.rhs)
            ahead = [binders[name] for name in names if name in binders]
            if ahead:
                place = max(ahead, key=numbers.__getitem__)
                if _moves(op, ends.get(place, place)):
                    if not context.spend("hoist-assertions", op):
                        continue
                    _move(op, ends.get(place, place))
                    moved += 1
                ends[place] = op
    return moved


def _moves(op: Operation, place: Operation) -> bool:
    """Whether more than statements about symbols stand between `op` and a place before it."""
    between = op.prev
    while between is not place:
        assert between is not None, "the place is before the assertion"
        if not between.name.startswith("sym."):
            return True
        between = between.prev
    return False


def _move(op: Operation, place: Operation) -> None:
    """Put `op` behind `place`."""
    block = op.parent
    assert block is not None
    op.detach()
    block.insert_after(op, place)
