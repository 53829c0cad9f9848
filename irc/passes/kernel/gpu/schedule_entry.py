"""The gpu side of the pass `schedule`; the keys are listed at `irc.dialects.loop.schedule.GPU`."""

from __future__ import annotations

from collections.abc import Mapping

from irc.dialects import loop
from irc.dialects.loop.schedule import CONTRACTION_KEYS, STREAM_KEYS
from irc.ir import attributes as A
from irc.ir.core import Operation
from irc.ir.symbols import Range
from irc.passes.common.bodies import clean_block, extents_of
from irc.passes.common.substitution import substitute_read
from irc.passes.kernel.gpu.schedule import default_schedule
from irc.target import Target


def schedule_for_gpu(op: Operation, target: Target, ranges: Mapping[str, Range]) -> bool:
    """Give a top-level compute or group its default gpu schedule; one with keys of contractions
    (a group's, or those of its members) keeps what it says and gets the rest. `ranges` bounds
    symbols. False where it has a schedule already. Raises InvalidIR."""
    schedule = op.attributes.get("schedule")
    preset = entries_of(op)
    members = op.block.ops if isinstance(op, loop.GroupOp) else ()
    for member in [m for m in members if "schedule" in m.attributes]:
        preset = {**entries_of(member), **preset}
        del member.attributes["schedule"]
    asked = (CONTRACTION_KEYS | STREAM_KEYS) & preset.keys()
    if schedule is not None and entries_of(op) and not asked:
        return False
    if isinstance(op, loop.GroupOp):
        evaluate_once_members_where_read(op)
    op.attributes["schedule"] = default_schedule(
        op, gpu=target.gpu, ranges=ranges, preset=preset
    )
    return True


def entries_of(op: Operation) -> dict[str, A.Attribute]:
    """The entries of an operation's schedule."""
    schedule = op.attributes.get("schedule")
    return schedule.entries.as_dict() if isinstance(schedule, loop.ScheduleAttr) else {}


def evaluate_once_members_where_read(group: loop.GroupOp) -> None:
    """Put what a group computes once into the members that read it: program instances have no
    memory of their own for it, and it stays in their registers."""
    once = [op for op in group.block.ops if isinstance(op, loop.ComputeOp) and group.is_once(op)]
    for member in reversed(once):
        readers: dict[loop.ComputeOp, None] = {}
        for result in member.results:
            for read in list(result.users):
                assert isinstance(read, loop.ReadOp)
                reader = read.parent_op
                assert isinstance(reader, loop.ComputeOp)
                value = substitute_read(read, member, extents_of(reader))
                read.results[0].replace_all_uses_with(value)
                read.erase()
                readers[reader] = None
        for reader in readers:
            clean_block(reader.block)
        member.erase()
