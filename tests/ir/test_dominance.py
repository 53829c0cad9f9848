"""The tree of dominators, against what dominance means: no way around."""

from __future__ import annotations

import random

import pytest

from irc.ir.core import Block, Region
from irc.ir.dominance import dominator_tree
from irc.ir.registry import unregistered_op

Jump = unregistered_op("t.jump")


def region(edges: list[list[int]]) -> Region:
    """A region of blocks, each with the numbers of those that it may go on to."""
    blocks = [Block() for _ in edges]
    for block, targets in zip(blocks, edges, strict=True):
        if targets:
            block.append(Jump((), (), {}, (), successors=[blocks[t] for t in targets]))
    return Region(blocks)


def reached(edges: list[list[int]], without: int | None = None) -> set[int]:
    """The blocks that the entry reaches, not going through one of them."""
    found: set[int] = set()
    ahead = [] if without == 0 else [0]
    while ahead:
        block = ahead.pop()
        if block not in found:
            found.add(block)
            ahead += [t for t in edges[block] if t != without]
    return found


def tree(edges: list[list[int]]) -> tuple[dict[int, list[int]], list[int]]:
    made = region(edges)
    number = {block: k for k, block in enumerate(made.blocks)}
    children, lost = dominator_tree(made)
    named = {number[b]: [number[c] for c in inner] for b, inner in children.items()}
    return named, [number[b] for b in lost]


@pytest.mark.parametrize(
    ("edges", "children", "lost"),
    [
        ([[]], {0: []}, []),
        ([[1], []], {0: [1], 1: []}, []),
        ([[1, 2], [3], [3], []], {0: [1, 2, 3], 1: [], 2: [], 3: []}, []),
        ([[1], [2, 3], [1], []], {0: [1], 1: [2, 3], 2: [], 3: []}, []),
        ([[2], [], []], {0: [2], 2: []}, [1]),
        ([[2], [2], []], {0: [2], 2: []}, [1]),
        # Two ways into a loop: neither of its blocks dominates the other.
        ([[1, 2], [2], [1]], {0: [1, 2], 1: [], 2: []}, []),
    ],
)
def test_small_ones(edges, children, lost):
    assert tree(edges) == (children, lost)


def test_a_block_dominates_what_is_reached_through_it_alone():
    choose = random.Random(4)
    for _ in range(300):
        count = choose.randint(2, 9)
        edges = [
            sorted({choose.randrange(1, count) for _ in range(choose.choice([0, 1, 1, 2, 3]))})
            for _ in range(count)
        ]
        found, lost = tree(edges)
        alive = reached(edges)
        assert lost == [b for b in range(count) if b not in alive]
        assert sorted(found) == sorted(alive)
        below: dict[int, set[int]] = {}

        def under(block: int, found=found, below=below) -> set[int]:
            below[block] = {block}.union(*map(under, found[block]))
            return below[block]

        assert under(0) == alive, "each block has one parent, and the entry is above all"
        for block in alive:
            assert below[block] == alive - reached(edges, without=block)
            assert found[block] == sorted(found[block]), "in the order of the region"
