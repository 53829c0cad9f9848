"""Making a `loop.group` of computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from irc.analysis.loop import reads_by_source
from irc.dialects import loop, sym
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import Block, Operation, Region, Value
from irc.ir.location import Location, fuse
from irc.ir.symbols import Dim
from irc.passes.common.bodies import axes_of, make_axes


def group_members(
    members: Sequence[Operation], prefixes: dict[Operation, tuple[Dim, ...]]
) -> loop.GroupOp:
    """One group in the place of adjacent computes that share the axes of `prefixes`."""
    inside = set(members)
    extents = prefixes[members[0]]
    stored = [
        result
        for member in members
        for result in member.results
        if any(user.parent_op not in inside for user in result.users)
    ]
    block = Block()
    location = fuse([m.location for m in members], "group-computes")
    group = _group(block, extents, stored, location, sym.range_entry(members[0]))
    first = members[0]
    assert first.parent is not None
    first.parent.insert_before(group, first)
    for old, new in zip(stored, group.results, strict=True):
        new.name_hint = old.name_hint
        old.replace_uses_if(new, lambda user: user.parent_op not in inside)
    for member in members:
        member.detach()
        member.attributes.pop(sym.WHEN, None)  # the group's now
        block.append(member)
        name_unit_axes(member, group)
    _store(block, stored)
    return group


def make_group(
    builder: Builder, extents: Sequence[Dim], block: Block, stored: Sequence[Value]
) -> loop.GroupOp:
    """Insert a group of the computes of a block, which share axes of such extents first, and of
    which it stores such results."""
    location = fuse([member.location for member in block.ops], "group-computes")
    group = builder.insert(_group(block, extents, stored, location, {}))
    _store(block, stored)
    return group


def _group(
    block: Block, extents: Sequence[Dim], stored: Sequence[Value], location: Location,
    entries: Mapping[str, A.Attribute],
) -> loop.GroupOp:  # fmt: skip
    types = [value.type for value in stored]
    attributes = {"axes": make_axes(extents), **entries}
    return loop.GroupOp((), types, attributes, (Region([block]),), location)


def _store(block: Block, stored: Sequence[Value]) -> None:
    segments = A.DenseIntsAttr((len(stored), 0, 0))
    block.append(loop.YieldOp(stored, (), {"operandSegmentSizes": segments}))


def name_unit_axes(member: Operation, group: loop.GroupOp) -> None:
    """Read other members at the shared axes by name, where 0 stood for an axis of one point."""
    shared = len(group.axis_list)
    for source, reads in reads_by_source(member).items():
        maker = source.defining_op
        if maker is None or maker.parent is not group.block or group.is_once(maker):
            continue
        for read in reads:
            indices = (*axes_of(shared), *tuple(read.indices)[shared:])
            if indices != tuple(read.indices):
                read.attributes["indices"] = A.DimsAttr(indices)


def prepend(block: Block, op: Operation) -> None:
    """Put an operation before all others of a block."""
    first = block.first
    assert first is not None
    block.insert_before(op, first)
