"""The pass `cse`."""

from __future__ import annotations

from typing import Any

from irc.ir.core import Block, Operation, Region, Value
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.rewrite.fuel import Fuel
from irc.ir.traits import Commutative, IsolatedFromAbove, Pure, Terminator


@register_pass
class CommonSubexpressionElimination(Pass):
    """Merges pure operations with equal operands, attributes, result types and regions.

    Before:
        %a = arith.addi %x, %y : i32
        %b = arith.addi %x, %y : i32
    After: every use of %b is a use of %a.
    """

    name = "cse"
    summary = "merge equal pure operations, in the scope of the dominating one"
    anchor = "any"

    def run(self, op: Operation, context: PassContext) -> None:
        merged = 0
        for region in op.regions:
            merged += _visit_region(region, [], context.fuel)
        context.count("merged", merged)


def _visit_region(region: Region, scopes: list[dict[Any, Operation]], fuel: Fuel | None) -> int:
    """Merge in each block by itself: it sees what dominates the whole region."""
    return sum(_visit_block(block, [*scopes, {}], fuel) for block in region.blocks)


def _visit_block(block: Block, scopes: list[dict[Any, Operation]], fuel: Fuel | None) -> int:
    merged = 0
    known = scopes[-1]
    outer = scopes[-2::-1]
    kinds = _kinds
    op = block.first
    while op is not None:
        following = op.next
        for region in op.regions:
            seen = [] if IsolatedFromAbove in op.traits else scopes
            merged += _visit_region(region, seen, fuel)
        commutes = kinds.get(op.__class__)
        if commutes is None:
            commutes = kinds[op.__class__] = _kind(op.__class__)
        if commutes >= 0 and op.results:
            key = operation_key(op, commutes == 1)
            earlier = known.get(key)
            for scope in outer if earlier is None else ():
                earlier = scope.get(key)
                if earlier is not None:
                    break
            if earlier is None:
                known[key] = op
            elif fuel is None or fuel.spend("cse", op):
                for old, new in zip(op.results, earlier.results, strict=True):
                    old.replace_all_uses_with(new)
                op.erase()
                merged += 1
        op = following
    return merged


_kinds: dict[type[Operation], int] = {}


def _kind(cls: type[Operation]) -> int:
    """-1: never merged; 0: merged where equal; 1: and the two operands may be exchanged."""
    traits = cls.traits
    if Pure not in traits or Terminator in traits:
        return -1
    return int(Commutative in traits)


def operation_key(op: Operation, commutes: bool) -> Any:
    """A hashable key: equal keys mean equal results. Regions count with their structure, values
    defined inside by their position. commutes: whether two operands may be exchanged."""
    if not op.regions:
        operands, attributes, results = op.operands, op.attributes, op.results
        outcome = results[0].type if len(results) == 1 else op.result_types
        named: Any = None
        if attributes:
            entries = attributes.items()
            named = tuple(entries if len(attributes) == 1 else sorted(entries, key=_name))
        if len(operands) == 2:
            first, second = sorted(operands, key=id) if commutes else operands
            return op.__class__, outcome, named, first, second
        return op.__class__, outcome, named, *operands
    numbers: dict[Value, int] = {}
    return _structure(op, numbers)


def _name(entry: tuple[str, Any]) -> str:
    return entry[0]


def _structure(op: Operation, numbers: dict[Value, int]) -> Any:
    operands = tuple(numbers.get(o, o) for o in op.operands)
    bodies = []
    for region in op.regions:
        for block in region.blocks:
            for argument in block.arguments:
                numbers[argument] = len(numbers)
            types = tuple(a.type for a in block.arguments)
            bodies.append((types, tuple(_structure(inner, numbers) for inner in block.ops)))
    for result in op.results:
        numbers[result] = len(numbers)
    attributes = tuple(sorted(op.attributes.items(), key=_name))
    return type(op), operands, attributes, op.result_types, tuple(bodies)
