"""Building IR: a builder holds a place in a block and a location."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from irc.ir.core import Block, Operation, Value
from irc.ir.definition import Op
from irc.ir.location import UNKNOWN, Location

OpT = TypeVar("OpT", bound=Operation)


class Builder:
    """Inserts operations before `anchor` in `block`, or at its end when `anchor` is None."""

    __slots__ = ("block", "anchor", "location")

    def __init__(
        self, block: Block, anchor: Operation | None = None, location: Location = UNKNOWN
    ) -> None:
        self.block = block
        self.anchor = anchor
        self.location = location

    @classmethod
    def at_end(cls, block: Block, location: Location = UNKNOWN) -> Builder:
        """Insert after the last operation of `block`."""
        return cls(block, None, location)

    @classmethod
    def at_start(cls, block: Block, location: Location = UNKNOWN) -> Builder:
        """Insert before the first operation of `block`."""
        return cls(block, block.first, location)

    @classmethod
    def before(cls, op: Operation) -> Builder:
        """Insert before `op`, with its location."""
        assert op.parent is not None, "op is in no block"
        return cls(op.parent, op, op.location)

    @classmethod
    def after(cls, op: Operation) -> Builder:
        """Insert after `op`, with its location."""
        assert op.parent is not None, "op is in no block"
        return cls(op.parent, op.next, op.location)

    def insert(self, op: OpT) -> OpT:
        """Put `op` at the builder's place; an op without a location gets the builder's."""
        if op.location is UNKNOWN:
            op.location = self.location
        anchor = self.anchor
        if anchor is None:
            self.block.append(op)
        else:
            self.block.insert_before(op, anchor)
        return op

    def create(self, cls: type[Op], *operands: Value | Sequence[Value] | None, **rest: Any) -> Any:
        """`insert(cls.make(...))`."""
        return self.insert(cls.make(*operands, **rest))

    def value(self, cls: type[Op], *operands: Value | Sequence[Value] | None, **rest: Any) -> Any:
        """The only result of `create(...)`."""
        return self.insert(cls.make(*operands, **rest)).results[0]
