"""How long a gpu kernel of contractions takes by its tiles: a model, and the tiles it chooses of.

A processor has a few tiles at a time, as many as its memory and registers have room for. A tile's
step takes what its products take, or what getting its factors from the second-level cache takes, or
what the processor's own memory takes that they lie in (written once, and read for each `FIRST` rows
and each part of the columns), or its share of the way there and back: steps in flight are a ring,
whose places are filled again when what was in them is multiplied. A tile begins with a wait and
ends with its stores, under which the others multiply, if there are any. Rows that aren't aligned
are moved in pieces of fewer than `ROW` bytes: a processor gets so many pieces of factors in a us,
those of fewer than `LEAST_COPIED` bytes through registers, with no step in flight meanwhile, and
stores sums at another rate.

Products of 8-bit floats are summed up in too few bits for long: after each step their sums are
added to others, which threads hold as well (`apart`), and nothing is multiplied meanwhile but by
another tile.

Factors of f32 that are cut into three of bf16 (`cut`) are in registers meanwhile, those of the
second dimension go back to a processor's memory, and a step's sums are added to others: with that a
processor multiplies nothing, and what a step waits for is another tile's time.

One program instance in each processor that goes over all of its tiles (`lasting`) reads the next
tile's factors while it stores: little of a store's time is left.

`python -m bench.gpu_products` shows what it chooses beside what is fastest.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import attrs

from irc.target.gpu import GpuFeatures

ROW = 16
"""Bytes that a GPU moves at once: no row need be a multiple of more."""
LEAST_COPIED = 4
"""Bytes of a piece at least that memory copies to a processor's own by itself (`cp.async`)."""
FIRST = 64
"""Rows of the first dimension that are multiplied at once."""


@attrs.frozen
class TileShape:
    """A tile's size as [first, second] dimension, and its warps."""

    first: int
    second: int
    warps: int

    @property
    def sums(self) -> int:
        """How many sums it has."""
        return self.first * self.second


@attrs.frozen
class StagedTile:
    """A tile, the depth of a step, and the steps in flight."""

    shape: TileShape
    step: int
    stages: int


SHAPES = tuple(TileShape(*row) for row in (
    (256, 192, 8), (256, 160, 8), (256, 144, 8), (128, 256, 8), (256, 128, 8), (128, 192, 8),
    (128, 160, 8), (128, 144, 8), (128, 128, 8), (128, 128, 4), (128, 96, 8), (128, 96, 4),
    (128, 64, 4), (64, 256, 4), (64, 192, 4), (64, 160, 4), (64, 144, 4), (64, 128, 4),
    (64, 96, 4), (64, 64, 4), (64, 32, 4), (64, 16, 4),
))  # fmt: skip
#: Of f32 as it is, whose factors are in registers, too.
PLAIN_SHAPES = tuple(TileShape(*row) for row in (
    (128, 64, 8), (64, 64, 4), (64, 32, 4), (32, 32, 4), (16, 32, 2),
))  # fmt: skip
#: Of f32 that is cut into bf16: each thread has few sums, as it holds three for each.
CUT_SHAPES = tuple(TileShape(*row) for row in (
    (128, 64, 8), (64, 64, 4), (64, 32, 4), (64, 16, 4),
))  # fmt: skip
DESCRIBED_SUMS = TileShape(256, 128, 8)
"""Of sums that are added to others, by descriptors."""
WIDE_OF_FEW = ((TileShape(128, 8, 8), 2, 4), (TileShape(128, 16, 8), 1, 6),
               (TileShape(128, 32, 8), 1, 6))  # fmt: skip
"""Tiles of few rows, their steps in lines of memory, and those in flight: of an H200 8x11008x4096
takes 23.5 us by the first one, 16x11008x4096 24.2 and 16x14336x4096 30.0 by the second one."""
PARTS_BYTES = 6
"""Of an element's three parts of bf16."""


@attrs.frozen
class TileCost:
    """What decides how long tiles take: how many matrices of which size (first, second dimension,
    depth), the bytes of an element, the operations that a processor does in a us, those that are
    done to every sum, and whether f32 is multiplied as it is. loaded, stored: what the beginnings
    of rows of both factors and of what is stored are multiples of, in bytes. lasts: whether one
    program instance may go over tiles so that it reads the next one's factors while it stores.
    apart: whether a step's sums are added to others. cut: whether factors are cut into parts.
    lasts_few: the same as lasts, where the columns are the first dimension."""

    batch: int
    first: int
    second: int
    depth: int
    element_bytes: int
    flops: int
    behind: int = 0
    plain: bool = False
    loaded: tuple[int, int] = (ROW, ROW)
    stored: int = ROW
    lasts: bool = False
    apart: bool = False
    cut: bool = False
    lasts_few: bool = False

    def tilings(
        self, shapes: Iterable[TileShape], steps: Sequence[int], gpu: GpuFeatures
    ) -> Iterator[StagedTile]:
        """Tiles of shapes with steps of some depths (of large tiles, of the first one), as many in
        flight as one, two, ... of them have room for in a processor, but no fewer than keep the
        products going."""
        for shape in shapes:
            small = shape.first + shape.second <= gpu.deep_tile
            for step in steps if small else steps[:1]:
                held = (shape.first + shape.second) * self.element_bytes * step
                most = gpu.least_stages if self.plain else gpu.most_stages
                most = min(most, max(2, -(-self.depth // step)))
                least = min(gpu.least_stages, most)
                free = [gpu.block_bytes // room - self._parts(shape, step) for room in (1, 2, 3, 4)]
                counts = {min(most, size // held + self._spare) for size in free}
                yield from (StagedTile(shape, step, n) for n in sorted(counts) if n >= least)

    def time(self, tiling: StagedTile, gpu: GpuFeatures) -> float:
        """Microseconds of a kernel with such tiles, without what every kernel takes; infinity where
        they have no room."""
        shape, stages = tiling.shape, tiling.stages
        line = self.element_bytes * tiling.step
        moved = (shape.first + shape.second) * line
        held = (gpu.cut_registers if self.cut else 2 if self.apart else 1) * shape.sums
        memory = moved * (stages - self._spare) + self._parts(shape, tiling.step)
        room = min(gpu.block_bytes // memory, gpu.accumulators // held)
        if room == 0:
            return float("inf")
        if self.cut and shape.sums > gpu.cut_sums * gpu.warp * shape.warps:
            return float("inf")
        if self.apart and held > gpu.apart_sums * gpu.warp * shape.warps:
            return float("inf")
        if self.behind and shape.sums > gpu.held_sums * gpu.warp * shape.warps:
            return float("inf")
        widths = [1 << k for k in range(shape.second.bit_length()) if shape.second >> k & 1]
        again = -(-shape.first // FIRST) * sum(FIRST + width for width in widths) * line
        products = 2 * shape.sums * tiling.step / self.flops
        step = max(products, moved / gpu.tile_bytes, (moved + again) / gpu.product_bytes)
        step = max(step, self._pieces(shape) * line / gpu.odd_pieces) + gpu.step_start
        steps = -(-self.depth // tiling.step)
        turn = (gpu.step_latency + step) / max(1, stages - 1)
        if min(self.loaded) < LEAST_COPIED:
            turn = gpu.odd_latency
        stored = at_rows(self.stored, gpu.odd_stores, gpu.stored_bytes)
        stores = shape.sums * (2 / stored + self.behind / gpu.scalar_flops)
        most = self.turns(shape, gpu)
        if self.stored < ROW and self.lasting(tiling, gpu) is not None:
            each = steps * max(step, turn) + stores * gpu.lasting_stores
            return gpu.tile_start + most * each
        together = min(room, most)
        added = shape.sums / gpu.added_sums if self.apart else 0.0
        if self.cut:
            points = (shape.first + shape.second) * tiling.step
            step += points / gpu.cut_points + shape.sums / gpu.cut_added
            added = gpu.cut_wait
        alone = gpu.tile_start + steps * (max(step, turn) + added) + stores
        under = stores / 2 if together > 1 else stores  # half of them, where another multiplies
        busy = gpu.tile_start + most * (steps * step + under)
        return max(-(-most // together) * alone, busy)

    @property
    def _spare(self) -> int:
        """Steps in flight that have no memory of their own: what is in registers while it is
        multiplied has left it."""
        return 1 if self.cut else 0

    def _parts(self, shape: TileShape, step: int) -> int:
        """Bytes of a step's parts of factors in a processor's memory."""
        return PARTS_BYTES * shape.second * step if self.cut else 0

    def _pieces(self, shape: TileShape) -> float:
        """The pieces for each byte along the depth of rows of factors that aren't aligned."""
        sides = zip((shape.first, shape.second), self.loaded, strict=True)
        return sum(side / size for side, size in sides if size < ROW)

    def turns(self, shape: TileShape, gpu: GpuFeatures) -> int:
        """The most tiles that a processor has, together or one after the other."""
        tiles = self.batch * -(-self.first // shape.first) * -(-self.second // shape.second)
        return -(-tiles // gpu.processors)

    def of_few(self, tiling: StagedTile, gpu: GpuFeatures) -> tuple[StagedTile, int]:
        """Tiles of few rows, whose time is that of reading the other factor, and how many program
        instances of each processor last (0: each tile has its own). Where there are more tiles than
        processors and few steps, some last with the fewest steps in flight; of many steps tiles are
        wider where that makes them no more than processors, or each processor has one at a time,
        with many steps in flight."""
        shape, step = tiling.shape, tiling.step
        if self.turns(shape, gpu) < 2:
            return tiling, 0
        held = (shape.first + shape.second) * self.element_bytes * step
        if self.lasts_few and self.depth <= gpu.few_depth and (
            gpu.few_programs * gpu.least_stages * held <= gpu.block_bytes
        ):
            return attrs.evolve(tiling, stages=gpu.least_stages), gpu.few_programs
        for wide, lines, stages in WIDE_OF_FEW:
            if wide.second >= min(self.second, shape.second) and self.turns(wide, gpu) < 2:
                return StagedTile(wide, lines * gpu.step_bytes // self.element_bytes, stages), 0
        stages = min(gpu.few_stages, gpu.block_bytes // held, -(-self.depth // step))
        return attrs.evolve(tiling, stages=max(2, stages)), 0

    def lasting_apart(self, gpu: GpuFeatures) -> tuple[StagedTile, float] | None:
        """Tiles of sums that are added to others, by one program instance in each processor, of
        factors that the hardware copies, so that their places take no registers; and their time."""
        shape, step = DESCRIBED_SUMS, gpu.step_bytes // self.element_bytes
        if not (self.apart and self.lasts) or min(self.loaded) < ROW or self.turns(shape, gpu) < 2:
            return None
        moved = (shape.first + shape.second) * self.element_bytes * step
        if moved * gpu.least_stages + gpu.stored_tile > gpu.block_bytes:
            return None
        products = max(2 * shape.sums * step / self.flops, moved / gpu.tile_bytes)
        each = products + gpu.step_start + shape.sums / gpu.added_sums
        stores = 2 * shape.sums / gpu.stored_bytes * gpu.lasting_stores
        time = self.turns(shape, gpu) * (-(-self.depth // step) * each + stores)
        return StagedTile(shape, step, gpu.least_stages), gpu.tile_start + time

    def together(self, shape: TileShape, gpu: GpuFeatures) -> int:
        """So many rows of tiles (a power of two) that go over the columns together that the tiles
        of all processors at a time read the least: r rows and p / r columns of them read
        r * first + p / r * second lines."""
        return 1 << round(math.log2(gpu.processors * shape.second / shape.first) / 2)

    def lasting(self, tiling: StagedTile, gpu: GpuFeatures) -> StagedTile | None:
        """The same for one program instance in each processor that goes over its tiles, and reads
        the next one's factors while it stores; None where more tiles are there together, each
        processor has one alone, or Triton makes no pipeline of them."""
        if not self.lasts:
            return None
        shape = tiling.shape
        moved = (shape.first + shape.second) * self.element_bytes * tiling.step
        stages = min(tiling.stages, (gpu.block_bytes - gpu.stored_tile) // moved)
        fits = gpu.block_bytes // (moved * tiling.stages) == 1 and stages >= gpu.least_stages
        if not fits or self.turns(shape, gpu) < 2:
            return None
        return attrs.evolve(tiling, stages=stages)


def narrow_parts(columns: int) -> bool:
    """Whether so many columns of a tile have several parts, and one of fewer than `FIRST`."""
    return 0 < columns & -columns < min(FIRST, columns)


def at_rows(row: int, odd: Sequence[int], usual: int) -> int:
    """The rate for rows that begin at multiples of so many bytes: of those for 2, 4, 8, or the
    usual one."""
    return usual if row >= ROW else odd[max(0, row.bit_length() - 2)]


__all__ = ["CUT_SHAPES", "DESCRIBED_SUMS", "FIRST", "PLAIN_SHAPES", "ROW", "SHAPES",
           "WIDE_OF_FEW", "StagedTile", "TileCost", "TileShape", "at_rows",
           "narrow_parts"]  # fmt: skip
