"""The schedule of a kernel for a cpu as Python values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irc.dialects import loop
from irc.dialects.loop.schedule import CPU
from irc.ir import attributes as A
from irc.ir.attributes import Attribute
from irc.ir.core import Operation
from irc.ir.diagnostics import InvalidIR

Pairs = list[tuple[str, str]]


class CpuSchedule:
    """The entries of a cpu schedule; `irc.dialects.loop.schedule` says what each means.

    It has what it was given. Asking for anything else is an InvalidIR about `op`: there are no
    defaults, so that a text says all that decides.
    """

    collapse: Pairs
    outer: list[str]
    scratch: int
    vector_axis: str
    lanes: int
    copies: int
    tail: str
    spans: int
    strided: int
    block: int
    tile_axis: str
    tile_block: int
    unroll: bool
    order: list[str]
    written_out: list[str]
    fetch_axis: str
    fetch_points: int
    jam_axis: str
    jam_points: int
    jam_ahead: int
    beside_sums: bool
    chunks: dict[str, int]
    streams: bool
    partial: list[str]
    compensated: bool
    position_bits: int
    tile_rows: int
    tile_vectors: int
    row_axis: str
    outer_rows: list[str]
    depth_order: list[str]
    point_rows: int
    point_columns: int
    block_rows: int
    block_depth: int
    inner: str
    pack_left: bool
    pack_right: bool
    pack_ahead: int
    rows_ahead: int
    pack_columns: int
    products: str
    group: int
    offset: int
    tile_columns: int
    terms: int
    in_turn: bool
    woven: bool
    skew: int
    measured: bool
    copying: CpuSchedule

    def __init__(self, op: Operation | None = None, **entries: Any) -> None:
        self._op = op
        vars(self).update(entries)

    def __getattr__(self, name: str) -> Any:
        if name not in CPU:
            raise AttributeError(name)
        raise InvalidIR(f"its schedule has no entry '{name}'; the pass 'schedule' writes it",
                        op=self._op)  # fmt: skip

    @property
    def in_matrices(self) -> bool:
        """Whether registers that hold whole tiles multiply."""
        return self.products in ("matrix", "bf16x6")

    @property
    def is_split(self) -> bool:
        """Whether they multiply parts that factors are cut into."""
        return bool(self.products == "bf16x6")

    @property
    def packed_columns(self) -> int:
        """Columns of a point that are packed together; 0: all."""
        return self.pack_columns if self.is_split and self.pack_right else 0

    def has(self, name: str) -> bool:
        """Whether it has an entry."""
        return name in vars(self)

    def to_attribute(self) -> loop.ScheduleAttr:
        """The attribute with these entries. Raises ValueError for one that makes no sense."""
        return loop.ScheduleAttr("cpu", self.entries())

    def entries(self) -> A.DictAttr:
        """The entries."""
        return A.DictAttr({k: _written(v) for k, v in vars(self).items() if k != "_op"})


def vectors_along(axis: str, size: int, lanes: int, order: Sequence[str]) -> CpuSchedule:
    """The schedule of a stage's loops with vectors along an axis of so many points, up to four at a
    time, in an order of axes."""
    copies = min(4, max(1 << (max(size // lanes, 1).bit_length() - 1), 1))
    return CpuSchedule(
        collapse=[], vector_axis=axis, lanes=lanes, copies=copies, tail="mask", spans=1,
        order=list(order), chunks={}, streams=False, partial=[],
    )  # fmt: skip


def _written(value: Any) -> Attribute:
    if isinstance(value, CpuSchedule):
        return value.entries()
    if isinstance(value, bool):
        return A.BoolAttr(value)
    if isinstance(value, int):
        return A.IntegerAttr(value)
    if isinstance(value, str):
        return A.StringAttr(value)
    if isinstance(value, dict):
        value = [f"{axis} {points}" for axis, points in value.items()]
    return A.ArrayAttr([A.StringAttr(t if isinstance(t, str) else " ".join(t)) for t in value])


def read_schedule(attr: Attribute | None, op: Operation | None = None) -> CpuSchedule:
    """The Python form of the schedule of an operation. Raises InvalidIR where there is none."""
    if not isinstance(attr, loop.ScheduleAttr):
        raise InvalidIR("there is no schedule here; run the pass 'schedule' first", op=op)
    if attr.is_gpu:
        raise InvalidIR(f"the schedule is for a {attr.target}, not a cpu", op=op)
    return _read(attr.entries, op)


def _read(entries: A.DictAttr, op: Operation | None) -> CpuSchedule:
    settings: dict[str, Any] = {}
    value: Any
    for name, value in entries.items:
        if name == "variants":
            continue  # form-kernels makes a kernel of each
        if isinstance(value, A.DictAttr):
            settings[name] = _read(value, op)
        elif isinstance(value, A.ArrayAttr):
            texts = [entry.value for entry in value]  # type: ignore[attr-defined]
            if name == "collapse":
                settings[name] = [tuple(text.split()) for text in texts]
            elif name == "chunks":
                settings[name] = {axis: int(n) for axis, n in map(str.split, texts)}
            else:
                settings[name] = texts
        else:
            settings[name] = value.value
    return CpuSchedule(op, **settings)
