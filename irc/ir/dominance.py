"""Dominance between the blocks of a region (Cooper, Harvey, Kennedy: A Simple, Fast Dominance
Algorithm, 2001)."""

from __future__ import annotations

from irc.ir.core import Block, Region


def dominator_tree(region: Region) -> tuple[dict[Block, list[Block]], list[Block]]:
    """The blocks that each block immediately dominates, and the blocks that the entry does not
    reach."""
    entry = region.blocks[0]
    order = _postorder(entry)
    number = {block: k for k, block in enumerate(order)}
    predecessors: dict[Block, list[Block]] = {block: [] for block in order}
    for block in order:
        for successor in _successors(block):
            if successor in predecessors:
                predecessors[successor].append(block)
    dominator: dict[Block, Block] = {entry: entry}

    def meet(a: Block, b: Block) -> Block:
        while a is not b:
            while number[a] < number[b]:
                a = dominator[a]
            while number[b] < number[a]:
                b = dominator[b]
        return a

    changed = True
    while changed:
        changed = False
        for block in reversed(order[:-1]):
            ready = [p for p in predecessors[block] if p in dominator]
            nearest = ready[0]
            for other in ready[1:]:
                nearest = meet(other, nearest)
            if dominator.get(block) is not nearest:
                dominator[block] = nearest
                changed = True
    children: dict[Block, list[Block]] = {block: [] for block in order}
    for block in region.blocks:
        if block in dominator and block is not entry:
            children[dominator[block]].append(block)
    return children, [block for block in region.blocks if block not in number]


def _successors(block: Block) -> tuple[Block, ...]:
    return block.last.successors if block.last is not None else ()


def _postorder(entry: Block) -> list[Block]:
    """The blocks that the entry reaches, each after its successors; the entry is last."""
    seen = {entry}
    order: list[Block] = []
    stack = [(entry, iter(_successors(entry)))]
    while stack:
        block, pending = stack[-1]
        following = next((s for s in pending if s not in seen), None)
        if following is None:
            order.append(block)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(_successors(following))))
    return order
