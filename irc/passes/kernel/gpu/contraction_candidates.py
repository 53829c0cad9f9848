"""Tiles to measure for a gpu kernel of contractions: those that the model expects to be as good."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import attrs

from irc.analysis.tile_cost import FIRST, ROW, WIDE_OF_FEW, StagedTile, TileShape
from irc.dialects import loop
from irc.dialects.kernel.dots import Dot
from irc.ir import attributes as A
from irc.ir.core import Operation
from irc.passes.kernel.gpu.contraction_schedule import TileChoices, multiplied_of, tile_choices
from irc.passes.kernel.gpu.contraction_space import contraction_space, factor_of
from irc.passes.kernel.gpu.odd_rows import product_row_group
from irc.passes.kernel.gpu.plan import plan_for_gpu
from irc.passes.kernel.plan.plan import flatten
from irc.target import Target
from irc.tuning.candidates import Schedules, Values, Variation, generates

NEAR = 1.3
"""Tiles of so many times the expected time of the best ones are looked at ..."""
MOST_OF_A_SHAPE = 2
"""... and of a shape so many, with other steps in flight or other depths."""
GROUPED = 2
"""Times as many rows of tiles in a group, so that a factor's rows stay in the second-level cache
longer."""
PLACE_OF_GROUPED = 3
PARTED = 2
"""Of the best shapes so many are tried with what follows computed on two parts of their columns,
one after the other, which takes fewer registers (gelu of 2048x3072x768: 27.0 rather than 29.4 us
of an H200)."""
LASTING = ((2, 4), (3, 3))
"""Of few rows: so many program instances of a processor that go over all tiles, and the steps that
each has in flight (4x50304x768 takes 20.0 us of an H200 by two, 21.5 by as many as tiles)."""
IN_FLIGHT = (8, 4, 6)
"""Of few rows: steps in flight that are tried. What is best changes with the size, for no reason
that a model knows: of an H200 8x14336x4096 takes 29.9, 31.0 and 29.9 us, 8x28672x4096 57.6, 55.5
and 58.1."""
EIGHT_ROWS = (4, 3)
"""Of at most eight rows: steps in flight of tiles of as many (8x11008x4096 takes 23.3 us by 4, 24.2
by tiles of 16 rows, 8x18944x3584 33.2 by 3, 36.0)."""


@generates("gpu", "contraction")
def expected_tiles(schedules: Schedules) -> Iterator[Variation]:
    """Tiles with their warps and steps in flight, by the time that the model expects of them."""
    choices, target, top = choices_of(schedules), schedules.target, schedules.top
    if choices is None or target is None:
        return
    gpu, keys = target.gpu, choices.keys
    tilings, base = choices.tilings(gpu), choices.cost.time(_present(choices, top), gpu)
    if base == float("inf"):
        base = choices.cost.time(tilings[0], gpu)
    yield from _of_few_rows(choices, _present(choices, top), target)
    yield from _described(choices, target)
    counts: Counter[TileShape] = Counter()
    for place, tiling in enumerate(tilings):
        time = choices.cost.time(tiling, gpu)
        if place == PLACE_OF_GROUPED:
            yield Variation({"group_m": GROUPED * int(top.get("group_m", 1))}, expected=1.0)
        if time > NEAR * base or time == float("inf"):
            break
        counts[tiling.shape] += 1
        if counts[tiling.shape] <= MOST_OF_A_SHAPE:
            shape = {key: getattr(tiling.shape, name) for name, key in keys.items()}
            # What lasts has less memory for stages, and ends of rows in tiles of their own.
            alone = {"programs": 0, "flat": False, "row_group": choices.row_group}
            entries: Values = {"tile_k": tiling.step, "num_stages": tiling.stages, **alone}
            if choices.cost.apart:  # descriptors are for larger tiles
                entries = {**entries, "access": "pointers"}
            yield Variation({**shape, **entries}, expected=time / base)
            if choices.parted and counts[tiling.shape] == 1 and len(counts) <= PARTED:
                yield Variation({**shape, **entries, "column_parts": 2}, expected=time / base)


def _described(choices: TileChoices, target: Target) -> Iterator[Variation]:
    """Tiles of sums that are added to others, by descriptors and program instances that last."""
    gpu = target.gpu
    lasting = choices.cost.lasting_apart(gpu) if choices.products == "dot" else None
    if lasting is not None:
        tiling, _ = lasting
        sizes = {key: getattr(tiling.shape, name) for name, key in choices.keys.items()}
        lasts = {"programs": gpu.processors, "flat": True, "access": "descriptors"}
        entries = {"tile_k": tiling.step, "num_stages": tiling.stages, **lasts}
        yield Variation({**sizes, **entries}, expected=1.0)


def _of_few_rows(
    choices: TileChoices, tiling: StagedTile, target: Target
) -> Iterator[Variation]:
    """Tiles of few rows with other steps in flight, of eight rows, wider ones, and by program
    instances that last, where each processor has several of them."""
    gpu, cost = target.gpu, choices.cost
    if choices.products != "swapped" or cost.plain or cost.cut:
        return
    eight = WIDE_OF_FEW[0][0].second
    usual = TileShape(FIRST, max(tiling.shape.second, WIDE_OF_FEW[1][0].second), 4)

    def varied(
        shape: TileShape, stages: int, programs: int = 0, lines: int = 2
    ) -> Iterator[Variation]:
        step = gpu.step_bytes * lines // cost.element_bytes
        held = (shape.first + shape.second) * step * cost.element_bytes
        if stages * held <= gpu.block_bytes and cost.depth >= stages * step:
            sizes = {key: getattr(shape, name) for name, key in choices.keys.items()}
            lasts = {"programs": programs * gpu.processors, "flat": programs > 0}
            entries = {"tile_k": step, "num_stages": stages, **lasts}
            yield Variation({**sizes, **entries}, expected=1.0)

    for stages in EIGHT_ROWS if cost.second <= eight else ():
        yield from varied(TileShape(FIRST, eight, 4), stages)
    for stages in IN_FLIGHT:
        yield from varied(usual, stages)
    for programs, stages in LASTING if cost.turns(usual, gpu) > 1 else ():
        yield from varied(usual, stages, programs)
    for wide, lines, stages in WIDE_OF_FEW:
        if wide.second >= cost.second and cost.turns(wide, gpu) < cost.turns(usual, gpu):
            yield from varied(wide, stages, 0, lines)


def choices_of(schedules: Schedules) -> TileChoices | None:
    """What the tiles of an operation are chosen of; None for one that the model doesn't know."""
    if schedules.op is None or schedules.target is None:
        return None
    plan = plan_for_gpu(flatten(schedules.op))
    space = contraction_space(plan)
    if isinstance(space, str):
        return None
    precision, gpu = str(schedules.top.get("precision", "")), schedules.target.gpu
    every = [factor_of(contraction, precision) for _, contraction in space.contractions]
    dots = [dot for dot in every if isinstance(dot, Dot)]
    if len(dots) < len(every):
        return None
    described = schedules.top.get("access") == "descriptors"
    multiplied = multiplied_of(plan, space, dots, gpu, precision, described)
    if schedules.top.get("row_group", 1) == 1:
        return tile_choices(multiplied, gpu, schedules.entries)
    choices = tile_choices(attrs.evolve(multiplied, stored=ROW), gpu, schedules.entries)
    return attrs.evolve(choices, row_group=product_row_group(plan, space))


def slowed_by_pieces(op: Operation, target: Target) -> float:
    """How many times longer a contraction's tiles take by the model than if all rows of its factors
    were aligned, as they are where a library has copied them; 1 for what the model doesn't know."""
    schedule = op.attributes.get("schedule")
    if not isinstance(schedule, loop.ScheduleAttr):
        return 1.0
    entries = schedule.entries.as_dict()
    top = {key: value.value for key, value in entries.items() if isinstance(value, A.IntegerAttr)}
    choices = choices_of(Schedules(top, (), op, target))
    if choices is None:
        return 1.0
    aligned = attrs.evolve(choices, cost=attrs.evolve(choices.cost, loaded=(ROW, ROW)))
    times = [each.cost.time(each.tilings(target.gpu)[0], target.gpu) for each in (choices, aligned)]
    return times[0] / times[1]


def _present(choices: TileChoices, top: Values) -> StagedTile:
    """The tiles that a schedule says."""
    shape = TileShape(**{name: int(top.get(key, 1)) for name, key in choices.keys.items()})
    return StagedTile(shape, int(top.get("tile_k", 1)), int(top.get("num_stages", 1)))


__all__ = ["choices_of", "expected_tiles", "slowed_by_pieces"]
