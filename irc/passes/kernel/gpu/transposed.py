"""Tiles of pointwise kernels that write along other axes than they read along.

A tile has an edge along what is contiguous where it is read, and one along what is contiguous
where it is written; between the two, values change threads through shared memory. An edge spans
all axes that lie one in the other in every access, such as the two of a 3x3 window, or the rows
and columns of an image.

An H200 brings 512x512x3x3 weights of bf16 from memory into channels-last order in 5.1 us with edges
of 16 x 64 (a copy 4.3; a line of lanes along what is written, 7.6), 256x256x3x3 in 2.6 (2.0; 3.1).
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from irc.analysis.loop import estimate
from irc.ir.symbols import Dim, coefficient, dim_product
from irc.passes.kernel.gpu.plan import GpuPlan, accesses, offset_of, reads_in_memory
from irc.passes.kernel.gpu.reads_apart import is_looked_up
from irc.target.gpu import GpuFeatures

Run = tuple[int, ...]
"""Row axes that an edge spans, outermost first."""


@attrs.frozen
class Transposed:
    """Two edges: the axes of each, contiguous where read and where written, and their points."""

    read: Run
    written: Run
    edges: tuple[int, int]

    @property
    def axes(self) -> tuple[int, int]:
        """The innermost axis of each edge, which stands for all."""
        return self.read[-1], self.written[-1]

    @property
    def collapsed(self) -> list[int]:
        """Pairs of axes of which the second stands for both."""
        runs = (self.read, self.written)
        return [axis for run in runs for pair in zip(run, run[1:], strict=False) for axis in pair]

    @property
    def points(self) -> int:
        """Points of a tile."""
        return self.edges[0] * self.edges[1]


def transposed_tile(plan: GpuPlan, gpu: GpuFeatures) -> Transposed | None:
    """The tile of a pointwise kernel; None where it reads along what it writes along, or an edge
    would be too short."""
    written = _written_axis(plan)
    read = None if written is None else _read_axis(plan, written)
    if written is None or read is None:
        return None
    outer, inner = _run(plan, read, {written}, gpu), _run(plan, written, {read}, gpu)
    if set(outer) & set(inner):
        outer, inner = (read,), (written,)
    sizes = [estimate(dim_product([plan.rows[k] for k in run])) for run in (outer, inner)]
    if min(sizes) < gpu.transpose_least:
        return None
    return Transposed(outer, inner, _edges(plan, sizes, gpu))


def contiguous_axis(offset: Dim, names: Sequence[str]) -> str | None:
    """The axis along which an offset moves by one element."""
    return next((n for n in reversed(names) if coefficient(offset, n) == 1), None)


def _written_axis(plan: GpuPlan) -> int | None:
    """The number of the axis that the first result is contiguous along."""
    for member, offset, _, stored in accesses(plan):
        name = contiguous_axis(offset, member.rows) if stored else None
        if name is not None:
            return member.rows.index(name)
    return None


def _read_axis(plan: GpuPlan, written: int) -> int | None:
    """The number of another axis that something is contiguous along which is strided along the
    written one."""
    across = [(m, offset) for m, offset, _, _ in accesses(plan)
              if coefficient(offset, m.rows[written]) not in (None, 0, 1)]  # fmt: skip
    for member, read in reads_in_memory(plan):
        offset = offset_of(read.indices, read.source.type)  # type: ignore[arg-type]
        name = member.rows[written]
        if coefficient(offset, name) == 0 and is_looked_up(read, name):
            across.append((member, offset))
    axes = ((m, contiguous_axis(offset, m.rows)) for m, offset in across)
    return next((m.rows.index(name) for m, name in axes if name is not None), None)


def _run(plan: GpuPlan, axis: int, taken: set[int], gpu: GpuFeatures) -> Run:
    """The axes that `axis` lies in, one in the other, in every access, but those taken. Where they
    are short, in every access that moves along it: channels of a group, whose mean is looked up."""
    run: Run = (axis,)
    while (around := _around(plan, run, taken, loosely=False)) is not None:
        run = (around, *run)
    while (
        estimate(dim_product([plan.rows[k] for k in run])) < gpu.transpose_blocks[-1]
        and (around := _around(plan, run, taken, loosely=True)) is not None
    ):
        run = (around, *run)
    return run


def _around(plan: GpuPlan, run: Run, taken: set[int], loosely: bool) -> int | None:
    """The axis of which each step goes over the whole run in every access; loosely: in every one
    that moves along the run."""
    points = dim_product([plan.rows[k] for k in run])
    for axis, extent in enumerate(plan.rows):
        if axis in run or axis in taken or estimate(extent) < 2:
            continue
        for member, offset, _, _ in accesses(plan):
            step = coefficient(offset, member.rows[run[-1]])
            if loosely and step == 0:
                continue
            if step is None or coefficient(offset, member.rows[axis]) != points * step:
                break
        else:
            return axis
    return None


def _edges(plan: GpuPlan, sizes: Sequence[int], gpu: GpuFeatures) -> tuple[int, int]:
    """Points of the edges: those of a square, or where one of the axes is short, as many of the
    other as a tile has; fewer where processors would be left idle."""
    least = gpu.transpose_blocks[-1]
    edges = [_edge(size, gpu) for size in sizes]
    if min(edges) >= least:
        edges = [min(edges)] * 2
        if _tiles(plan, sizes, edges) < gpu.parallel:
            edges = [least] * 2
        return edges[0], edges[1]
    long = 0 if sizes[0] > sizes[1] else 1
    edges[long] = max(least, gpu.transpose_points // edges[1 - long])
    while edges[long] > least and (
        edges[long] >= 2 * sizes[long] or _tiles(plan, sizes, edges) < gpu.parallel
    ):
        edges[long] //= 2
    return edges[0], edges[1]


def _tiles(plan: GpuPlan, sizes: Sequence[int], edges: Sequence[int]) -> int:
    """How many tiles with such edges cover all rows."""
    own = -(-sizes[0] // edges[0]) * -(-sizes[1] // edges[1])
    return own * estimate(dim_product(plan.rows)) // max(1, sizes[0] * sizes[1])


def _edge(size: int, gpu: GpuFeatures) -> int:
    """The largest edge that leaves few lanes outside."""
    fitting = [e for e in gpu.transpose_blocks if e <= size]
    if not fitting:
        return 1 << max(0, size - 1).bit_length()
    covered = {e: -(-size // e) * e for e in fitting}
    return next(e for e in fitting if covered[e] <= min(covered.values()) * gpu.line_spare)


__all__ = ["Transposed", "contiguous_axis", "transposed_tile"]
