"""Schedules to measure: near the one that the cost model chose, by kind of kernel.

    candidates_for(op)          # of a compute or group with its complete schedule

    @generates("gpu", "contraction")
    def tiles(schedules): yield Variation({"tile_m": 128}), ...

A generator gives what to change; what no verifier of schedules accepts falls away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from irc.dialects import loop
from irc.dialects.loop.ops import ScheduleAttr
from irc.dialects.loop.schedule import CONTRACTION_KEYS
from irc.ir import attributes as A
from irc.ir.core import Operation
from irc.target import Target
from irc.tuning.applying import members_of
from irc.tuning.candidate import Candidate

MOST = 16
"""Candidates of an operation, the default among them: as many are built in some seconds."""
KINDS = ("pointwise", "reduction", "contraction")

Values = Mapping[str, Any]
"""Entries of a schedule as numbers, words and truth values."""


@attrs.frozen
class Variation:
    """What to change: entries of the operation's schedule, and of every member of a group that has
    the key, by a function of the value that it has. expected: as of a `Candidate`."""

    top: Values = attrs.field(factory=dict)
    members: Mapping[str, Callable[[Any], Any]] = attrs.field(factory=dict)
    expected: float = 0.0


@attrs.frozen
class Schedules:
    """The schedules of a compute or group: its own, and those of its members; the operation and
    what it is scheduled for, where that is known."""

    top: Values
    members: tuple[Values, ...] = ()
    op: Operation | None = None
    target: Target | None = None

    @property
    def entries(self) -> Mapping[str, A.Attribute]:
        """The operation's own schedule."""
        return _entries(self.op) if self.op is not None else {}

    def values(self, key: str) -> list[Any]:
        """The values of a key in all of them."""
        return [each[key] for each in (self.top, *self.members) if key in each]


Generator = Callable[[Schedules], Iterator[Variation]]

_generators: dict[tuple[str, str], list[Generator]] = {}


def generates(target: str, *kinds: str) -> Callable[[Generator], Generator]:
    """Register a generator for a target's kind ("cpu", "gpu") and kinds of kernels (`KINDS`)."""

    def register(generator: Generator) -> Generator:
        for word in kinds:
            assert word in KINDS, word
            _generators.setdefault((target, word), []).append(generator)
        return generator

    return register


def kind_of(op: Operation) -> str:
    """Which of `KINDS` a scheduled compute or group is."""
    computes = [inner for inner in op.walk() if isinstance(inner, loop.ComputeOp)]
    keys = {key for each in (op, *computes) for key in _entries(each)}
    if "tile_rows" in keys or keys.intersection(CONTRACTION_KEYS):
        return "contraction"
    reduces = any(axis.kind != "par" for each in computes for axis in each.axis_list)
    return "reduction" if reduces else "pointwise"


def _entries(op: Operation) -> Mapping[str, A.Attribute]:
    schedule = op.attributes.get("schedule")
    return schedule.entries.as_dict() if isinstance(schedule, ScheduleAttr) else {}


def candidates_for(op: Operation, target: Target | None = None) -> list[Candidate]:
    """What a compute or group with a complete schedule may run as: its own schedule first, then
    at most `MOST` - 1 others. target: what it is scheduled for, for those that its figures decide.
    """
    schedule = op.attributes.get("schedule")
    default = Candidate()
    if not isinstance(schedule, ScheduleAttr):
        return [default]
    members = members_of(op)
    inner = tuple(_plain(_entries(m)) for m in members)
    present = Schedules(_plain(_entries(op)), inner, op, target)
    distinct: dict[Candidate, None] = {default: None}
    for generator in _generators.get((schedule.target, kind_of(op)), ()):
        for variation in generator(present):
            candidate = _candidate(op, members, schedule.target, variation)
            if candidate is not None:
                distinct[candidate] = None
    return list(distinct)[:MOST]


def _plain(entries: Mapping[str, A.Attribute]) -> Values:
    """The numbers, words and truth values among entries."""
    kinds = A.IntegerAttr | A.StringAttr | A.BoolAttr
    return {key: value.value for key, value in entries.items() if isinstance(value, kinds)}


def _candidate(
    op: Operation, members: Sequence[Operation], target: str, variation: Variation
) -> Candidate | None:
    """A variation as a candidate; None where it changes nothing, or a verifier refuses it."""
    texts = []
    for place, each in enumerate((op, *members)):
        entries = _entries(each)
        values = _plain(entries)
        asked = dict(variation.top) if not place else {}
        if place or not members:
            asked |= {key: change(values[key]) for key, change in variation.members.items()
                      if key in values}  # fmt: skip
        changes = {key: _attribute(value) for key, value in asked.items()
                   if key in values and value != values[key]}  # fmt: skip
        try:
            ScheduleAttr(target, A.DictAttr({**entries, **changes}))
            texts.append(str(ScheduleAttr(target, A.DictAttr(changes))) if changes else "")
        except ValueError:
            return None
    if not any(texts):
        return None
    inner = tuple(texts[1:]) if any(texts[1:]) else ()
    return Candidate("irc", texts[0], inner, variation.expected)


def _attribute(value: Any) -> A.Attribute:
    if isinstance(value, bool):
        return A.BoolAttr(value)
    return A.StringAttr(value) if isinstance(value, str) else A.IntegerAttr(value)


def times(factor: float) -> Callable[[Any], Any]:
    """A change: so many times the number, at least 1."""
    return lambda number: max(1, int(number * factor)) if isinstance(number, int) else number


def to(value: Any) -> Callable[[Any], Any]:
    """A change: this value."""
    return lambda _: value


def _scaled(values: Values, **factors: float) -> dict[str, Any]:
    """Numbers of a schedule, each times a factor; those that it has."""
    return {key: times(factor)(values[key]) for key, factor in factors.items() if key in values}


# -- CPU


@generates("cpu", "pointwise")
def cpu_maps(schedules: Schedules) -> Iterator[Variation]:
    """Wider and narrower vectors, blocks of more and of fewer of them, tiles."""
    top = schedules.top
    lanes, block = top.get("lanes", 0), top.get("block", 0)
    for factor in (0.5, 2):
        yield Variation(_scaled(top, lanes=factor), {"lanes": times(factor)})
    if block:
        for factor in (0.25, 4, 16):
            size = int(block * factor)
            if lanes and size % lanes == 0:
                yield Variation({"block": size})
        yield Variation({"block": 0})
    if top.get("tile_axis"):
        for factor in (0.25, 0.5, 2, 4):
            yield Variation(_scaled(top, tile_block=factor))
        for factor in (0.5, 2):
            yield Variation(_scaled(top, lanes=factor, tile_block=1))
    yield Variation(_flipped_tail(top), {"tail": _other_tail})


@generates("cpu", "reduction")
def cpu_reductions(schedules: Schedules) -> Iterator[Variation]:
    """More and fewer accumulators, wider and narrower vectors, of all members at once."""
    top = schedules.top
    for factor in (2, 0.5, 4, 0.25):
        block = {"block": factor} if top.get("block") else {}
        yield Variation(_scaled(top, copies=factor, **block), {"copies": times(factor)})
    for factor in (0.5, 2):
        yield Variation(_scaled(top, lanes=factor), {"lanes": times(factor)})
        yield Variation(
            _scaled(top, lanes=factor, copies=1 / factor),
            {"lanes": times(factor), "copies": times(1 / factor)},
        )
    yield Variation(_flipped_tail(top), {"tail": _other_tail})


def _other_tail(tail: Any) -> Any:
    return "peel" if tail == "mask" else "mask"


def _flipped_tail(values: Values) -> dict[str, Any]:
    return {"tail": _other_tail(values["tail"])} if "tail" in values else {}


def _of_parts(whole: Values, both: Callable[..., Variation]) -> Iterator[Variation]:
    """Other blocks of a product whose factors are cut into parts, and what follows its sums behind
    them."""
    if whole.get("woven"):
        yield both(woven=False)
    panel = whole["tile_vectors"] * whole["lanes"]
    if whole.get("pack_right"):
        for count in (0, 2, 8):
            if count * panel != whole["pack_columns"]:
                yield both(pack_columns=count * panel, inner="columns" if count else "rows")
    rows = whole["tile_rows"]
    for lines in (4 * rows, 8 * rows, 12 * rows, 0):
        if lines != whole["block_rows"]:
            yield both(block_rows=lines)
    for depth in (384, 512, 768, 1536):
        yield both(block_depth=depth, woven=False)


@generates("cpu", "contraction")
def cpu_tiles(schedules: Schedules) -> Iterator[Variation]:
    """Other tiles of registers, other blocks, and packing the one or the other factor."""
    whole = next((s for s in (schedules.top, *schedules.members) if "tile_rows" in s), {})
    rows, vectors = whole.get("tile_rows", 1), whole.get("tile_vectors", 1)

    # Panels that are packed one at a time fit no other tiles and blocks.
    ahead = whole.get("pack_ahead", 0)

    def both(**entries: Any) -> Variation:
        if ahead:
            entries = {"pack_ahead": 0, **entries}
        if entries.get("pack_left") or entries.get("products", "lanes") != "lanes":
            entries = {"rows_ahead": 0, **entries}
        return Variation(entries, {key: to(value) for key, value in entries.items()})

    if whole.get("products") == "depth":
        yield both(products="lanes", pack_right=True, tile_vectors=2)
        for columns in (2, 3, 6, 8):
            yield both(tile_columns=columns, tile_rows=max(4 * rows // columns, 1))
        for more in (2, 4):
            yield both(tile_vectors=more)
        return
    if whole.get("products") == "matrix":
        yield both(woven=not whole["woven"])
    if whole.get("products") == "bf16x6":
        yield from _of_parts(whole, both)
        return
    if ahead:
        yield both(pack_ahead=ahead // 2)
        yield both(pack_ahead=0)
    for key in ("pack_right", "pack_left"):
        if key in whole:
            yield both(**{key: not whole[key]})
    for tiles in (0, 1, 2):
        if whole.get("rows_ahead", tiles) != tiles:
            yield both(rows_ahead=tiles)
    area = rows * vectors
    for other in (1, 2, 3, 4):
        if other != vectors and area // other >= 1:
            yield both(tile_vectors=other, tile_rows=area // other, block_rows=0)
    for fewer in (rows - 1, rows - 2, rows // 2):
        if fewer >= 1 and fewer != rows:
            yield both(tile_rows=fewer, block_rows=0)
    for depth in (0, 256, 512, 1024):
        yield both(block_depth=depth)
    for lines in (rows * 4, rows * 16, 0):
        yield both(block_rows=lines)
    for points in (rows * 4, rows * 16):
        yield both(point_rows=points)
    inner = whole.get("inner")
    yield both(inner="rows" if inner == "columns" else "columns")
    for terms in (1, 4):
        yield both(terms=terms)


# -- GPU


@generates("gpu", "pointwise")
def gpu_maps(schedules: Schedules) -> Iterator[Variation]:
    """Larger and smaller tiles, more and fewer warps."""
    top = schedules.top
    for tile in (1, 2, 0.5, 4):
        for warps in (1, 2, 0.5, 4):
            yield Variation(_scaled(top, x_block=tile, num_warps=warps))


@generates("gpu", "reduction")
def gpu_reductions(schedules: Schedules) -> Iterator[Variation]:
    """More and fewer rows and warps; where a loop goes over tiles, their size and stages."""
    top = schedules.top
    for warps in (2, 0.5, 4):
        yield Variation(_scaled(top, num_warps=warps))
    for rows in (2, 0.5, 4):
        for warps in (1, 2):
            yield Variation(_scaled(top, x_block=rows, num_warps=warps))
    if not top.get("persistent") and not top.get("unrolled"):
        for points in (2, 0.5):
            yield Variation(_scaled(top, r_block=points))
            yield Variation(_scaled(top, r_block=points, num_warps=points))
        for stages in (1, 2, 4):
            yield Variation({"num_stages": stages})
        for abreast in (1, 2, 4, 8):
            yield Variation({"abreast": abreast})
    yield Variation({"early_reads": not top.get("early_reads")})


__all__ = ["KINDS", "Schedules", "Variation", "candidates_for", "generates", "kind_of", "times"]
