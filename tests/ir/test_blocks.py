"""Blocks own their operations; copies of regions refer to what was copied."""

from __future__ import annotations

import pytest

from irc.ir import types as T
from irc.ir.core import Block, Region
from irc.ir.registry import unregistered_op

pytestmark = pytest.mark.fault("V14")

Use = unregistered_op("t.use")
Make = unregistered_op("t.make")


def made(block: Block):
    return block.append(Make((), (T.i32,))).results[0]


def test_an_operation_of_a_block_is_put_into_no_other() -> None:
    first, second = Block(), Block()
    op = made(first).defining_op
    anchor = made(second).defining_op
    for put in (
        lambda: second.append(op),
        lambda: first.append(op),
        lambda: second.insert_before(op, anchor),
        lambda: second.insert_after(op, anchor),
    ):
        with pytest.raises(ValueError, match="detach it first"):
            put()
    assert list(first.ops) == [op] and list(second.ops) == [anchor]
    op.detach()
    second.insert_before(op, anchor)
    assert list(second.ops) == [op, anchor] and not list(first.ops)


@pytest.mark.parametrize("blocks", [1, 2])
def test_a_mapping_may_swap_values(blocks: int) -> None:
    outer = Block([T.i32, T.i32])
    a, b = outer.arguments
    bodies = [Block() for _ in range(blocks)]
    bodies[-1].append(Use([a, b]))
    copy = Region(bodies).clone({a: b, b: a})
    (use,) = copy.blocks[-1].ops
    assert list(use.operands) == [b, a]


def test_forward_references_in_nested_regions_are_mapped() -> None:
    """The entry jumps to the last block, which makes what the middle one uses inside a region."""
    entry, middle, last = Block(), Block([T.i32]), Block()
    value = made(last)
    inner = Block()
    inner.append(Use([value, value]))
    middle.append(Use((), (), {}, [Region([inner])]))
    entry.append(Use((), (), {}, (), successors=[last]))
    last.append(Use((), (), {}, (), successors=[middle]))
    copy = Region([entry, middle, last]).clone({})
    new = copy.blocks[2].first.results[0]
    (use,) = copy.blocks[1].first.regions[0].blocks[0].ops
    assert new is not value and list(use.operands) == [new, new]
    assert value.use_count == 2 and new.use_count == 2
