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
                context.count("moved", hoist(block))


def hoist(block: Block) -> int:
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
                moved += _move(op, ends.get(place, place))
                ends[place] = op
    return moved


def _move(op: Operation, place: Operation) -> bool:
    """Put `op` behind `place`, unless only statements about symbols stand between them."""
    between, block = op.prev, op.parent
    assert block is not None
    while between is not place:
        assert between is not None, "the place is before the assertion"
        if not between.name.startswith("sym."):
            op.detach()
            block.insert_after(op, place)
            return True
        between = between.prev
    return False
