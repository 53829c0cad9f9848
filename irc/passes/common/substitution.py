"""Putting the body of a map in the place of a read of its result."""

from __future__ import annotations

from irc.dialects import loop
from irc.ir.core import Value
from irc.ir.symbols import Dim
from irc.passes.common.bodies import Body, Transplant, ops_needed


def substitute_read(read: loop.ReadOp, producer: loop.ComputeOp, extents: dict[str, Dim]) -> Value:
    """The value that `read` gives, computed in place from the producer's body."""
    assert read.parent is not None
    into = Body(read.parent, read)
    mapping = {a.name: d for a, d in zip(producer.axis_list, read.indices, strict=True)}
    mask, other = read.mask, read.other
    copier = Transplant(into, mapping, extents, read.positions, mask)
    yielded = producer.yield_op.values[read.source.index]
    for op in ops_needed(producer.block, yielded):
        copier.copy(op)
    value = copier.values.get(yielded, yielded)
    into.location = read.location
    if mask is None:
        return value
    maker = value.defining_op
    only = yielded.defining_op
    if other is None:
        other = into.zero(value.type)
    if isinstance(maker, loop.ReadOp) and isinstance(only, loop.ReadOp):
        # The masked read gives `other` by itself; where only the inner mask fails, its own.
        if only.mask is None:
            inner: Value | None = other
        else:
            own = copier.values[only.other] if only.other is not None else into.zero(value.type)
            inner = into.select(mask, own, other)
        return into.read(maker.source, maker.indices, maker.positions, maker.mask, inner)
    return into.select(mask, value, other)
