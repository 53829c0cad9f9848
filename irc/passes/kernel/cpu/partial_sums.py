"""How the loops of a reduction are cut, so that its sums are of partial sums and read memory fast.

Sums of many numbers round less as sums of partial sums, and along the vectors each accumulator
may read a part of its own. What is chosen here stands in the schedule: `chunks`, `streams`,
`partial`, `compensated`, and the width of positions.
"""

from __future__ import annotations

from collections.abc import Sequence

from irc.analysis.loop import estimate
from irc.dialects import loop
from irc.ir.attributes import Type
from irc.ir.symbols import Dim, dim_product
from irc.ir.types import FloatType
from irc.passes.kernel.cpu.plan import Axis, CpuMember
from irc.passes.kernel.cpu.schedule import CpuSchedule

MAX_I32 = 2**31 - 1
LONG_SUM = 512
"""A reduction of more steps than this is taken in chunks of `SUM_CHUNK` steps, so that a float sum
is one of partial sums. Along the vectors each accumulator reads a part of its own: a core reads
several places at once faster than one (`python -m bench.kernels --filter sum_all/1.6e7/1000/f32` on
a Zen 4: 0.88 of Inductor's speed from one place, 0.96 to 1.48 from eight)."""
SUM_CHUNK = 128
COLUMN_CHUNK = 32
"""The same where each lane is a result of its own: its values are added one after the other, where
along the vectors there are as many partial sums as lanes."""
SHORT_SUM = 8
"""An inner loop of so many steps or more makes a partial sum of its own."""
FEW_BLOCKS = 16
"""A running mean over so many blocks of values rounds little."""


def cut_sums(member: CpuMember, schedule: CpuSchedule, shared: bool) -> None:
    """Write how the loops that a member combines over are cut. `shared`: vectors run along an axis
    that its group shares; else its own schedule says what they run along."""
    outputs = [o for o in member.compute.output_list if o.kind in ("reduce", "scan")]
    if not outputs:
        return
    own = "" if shared else schedule.vector_axis
    loops = [a for n in schedule.order for a in member.own if a.name == n and a.kind != "par"]
    scans = any(o.kind == "scan" for o in outputs)
    along = not shared and (not own or any(a.name == own for a in loops))
    restarts = any(
        sums_restart(o.combiner, o.accumulator, o.kind == "scan", along and not scans)
        for o in outputs
    )
    schedule.chunks, schedule.partial = {}, []
    for number, axis in enumerate(loops):
        vectors = axis.name == own
        block = schedule.lanes * schedule.copies if vectors else 1
        steps = -(-estimate(axis.extent) // block)
        is_long = steps > (LONG_SUM if vectors else 2 * COLUMN_CHUNK)
        if number and restarts and steps >= SHORT_SUM:
            schedule.partial.append(axis.name)
        streams = vectors and schedule.copies > 1 and not scans
        if vectors:
            schedule.streams = False
        if streams and (is_long or not isinstance(axis.extent, int)):
            schedule.streams = True
            schedule.chunks[axis.name] = SUM_CHUNK * block
        elif is_long and restarts:
            schedule.chunks[axis.name] = SUM_CHUNK * block if vectors else COLUMN_CHUNK
    if any(o.combiner in ("argmin", "argmax") for o in outputs):
        points = combined_points(member.compute)
        small = isinstance(points, int) and points <= MAX_I32
        schedule.position_bits = 32 if small else 64
    if along and any(o.combiner == "moments" for o in outputs):
        block = schedule.lanes * schedule.copies if own else 1
        schedule.compensated = not _are_few(combined_points(member.compute), block)


def sums_restart(combiner: str, accumulator: Type | None, scans: bool, along: bool) -> bool:
    """Whether rounding asks for sums of partial sums; `along`: one result of all lanes."""
    if combiner == "moments":
        return not along
    return combiner == "sum" and not scans and isinstance(accumulator, FloatType)


def _are_few(points: Dim, block: int) -> bool:
    return isinstance(points, int) and points <= FEW_BLOCKS * block


def combined_points(op: loop.ComputeOp) -> Dim:
    """How many points are combined into each result."""
    return dim_product([a.extent for a in op.axis_list if a.kind != "par"])


def loop_axes(member: CpuMember, order: Sequence[str]) -> list[Axis]:
    """The axes of a member's loops in an order of names."""
    named = {a.name: a for a in member.own}
    return [named[n] for n in order if n in named]
