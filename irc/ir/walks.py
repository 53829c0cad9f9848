"""Walks over operations: what `Operation.walk` and `Region.walk` are.

Every operation of a program goes through them again and again: one generator does it, whatever the
depth, and a leaf is given without one of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from irc.ir.core import Block, Operation

#: What waits: a block, or an operation and those behind it.
Waiting = list[tuple["Block | None", "Operation | None"]]


def walk(waiting: Waiting, root: Operation | None = None) -> Iterator[Operation]:
    """`root` and all inside it; then what waits, the last first."""
    if root is not None:
        yield root
        _push(waiting, root)
    while waiting:
        block, op = waiting.pop()
        if block is not None:
            op = block.first
        while op is not None:
            following = op.next
            yield op
            if op.regions:
                if following is not None:
                    waiting.append((None, following))
                _push(waiting, op)
                break
            op = following


def _push(waiting: Waiting, op: Operation) -> None:
    for region in reversed(op.regions):
        for block in reversed(region.blocks):
            waiting.append((block, None))


def walk_back(root: Operation) -> Iterator[Operation]:
    """All inside `root`, the last first, each behind what is inside it; then `root`."""
    for region in reversed(root.regions):
        for block in reversed(region.blocks):
            op = block.last
            while op is not None:
                following = op.prev
                if op.regions:
                    yield from walk_back(op)
                else:
                    yield op
                op = following
    yield root


__all__ = ["walk", "walk_back"]
