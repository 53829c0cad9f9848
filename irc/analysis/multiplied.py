"""What a gpu multiplies, and the tiles that take the least time for it.

    multiplied = multiplied_by([contraction], [result.type], size)
    multiplied.least(gpu).parts         # in so many parts of the depth it is summed up

Tiles go over the whole depth, or over parts of it whose sums another kernel adds up (`split_k`),
where the sums alone are too few tiles to keep a GPU busy.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Sequence

import attrs

from irc.analysis.contraction import Contraction, Side
from irc.analysis.loop import estimate
from irc.analysis.products import common_bytes
from irc.analysis.tile_cost import (
    CUT_SHAPES,
    PLAIN_SHAPES,
    ROW,
    SHAPES,
    StagedTile,
    TileCost,
    TileShape,
    narrow_parts,
)
from irc.dialects import loop
from irc.ir.attributes import Type
from irc.ir.symbols import coefficient, dim_product, dim_sum, simplify
from irc.ir.types import TensorType, contiguous_strides
from irc.target.costs import Cost
from irc.target.gpu import GpuFeatures

CUT_PRODUCTS = 6
"""Of the parts of two factors of f32, that are added up."""
CUTS = 90
"""The compute capability from which on f32 is cut into parts of bf16 where nobody asks."""


@attrs.frozen
class Fastest:
    """Tiles, in how many parts of the depth, and the microseconds that these take."""

    tiling: StagedTile | None
    parts: int
    time: float


@attrs.frozen(cache_hash=True)
class Multiplied:
    """What is multiplied: `batch` matrices of m x k by as many of k x n, of elements of `size`
    bytes. The rest is as in `TileCost`; lengths: what those of the factors' rows are multiples of,
    in bytes: where that is less than what they begin at, the hardware alone copies tiles of them as
    fast (descriptors), which it does of no parts of the depth. least_step: the least depth that is
    multiplied at once. plain, cut: f32 as it is, or cut into parts of bf16. read: bytes of an
    element where it is read, if that is more, as of f32 that is rounded on the way. far: bytes in
    memory, where windows read elements several times; 0: of all matrices. copied: whether tiles of
    the second factor are copied into a processor's memory as they are read, or lie along the depth:
    else none have narrow parts of columns."""

    batch: int
    m: int
    n: int
    k: int
    size: int
    plain: bool = False
    behind: int = 0
    loaded: tuple[int, int] = (ROW, ROW)
    stored: int = ROW
    lengths: tuple[int, int] = (ROW, ROW)
    lasts: bool = False
    least_step: int = 16
    apart: bool = False
    cut: bool = False
    read: int = 0
    far: int = 0
    copied: bool = True

    @property
    def operations(self) -> int:
        """Multiplications and additions."""
        return 2 * self.batch * self.m * self.n * self.k

    @property
    def bytes(self) -> int:
        """Bytes of the factors and of the result."""
        elements = self.m * self.k + self.k * self.n + self.m * self.n
        return self.far or self.size * self.batch * elements

    def in_row_groups(self) -> Multiplied:
        """The same where tiles have rows of the result that begin alike in a group of elements, so
        that odd rows are stored as fast as others (`row_group`); as it is where there are none."""
        group = ROW // self.size
        if self.stored == ROW or self.n < 4 * group or self.m <= 1:
            return self
        if self.m % (group // math.gcd(self.n, group)):
            return self
        return attrs.evolve(self, stored=ROW)

    def is_worth(self, gpu: GpuFeatures) -> bool:
        """Whether it is multiplied as matrices where nobody asks: floats, and not too small."""
        if self.k < gpu.matrix_side:
            return False
        if self.cut and max(self.m, self.n) >= gpu.narrow_side:
            return min(self.m, self.n) >= gpu.exact_side
        if min(self.m, self.n) >= gpu.matrix_side:
            return True
        return self.size <= 2 and min(self.m, self.n) > 1 and max(self.m, self.n) >= gpu.narrow_side

    def products(self, gpu: GpuFeatures) -> str:
        """Which dimension of tiles comes first: "dot" for rows, "swapped" for columns."""
        return "swapped" if self.m <= gpu.swapped_rows < self.n else "dot"

    def cost(self, gpu: GpuFeatures, products: str, parts: int = 1) -> TileCost:
        """What decides how long tiles take, of so many parts of the depth each."""
        turned = products == "swapped"
        first, second = (self.n, self.m) if turned else (self.m, self.n)
        loaded = self.loaded
        if parts > 1:
            loaded = min(loaded[0], self.lengths[0]), min(loaded[1], self.lengths[1])
        flops = gpu.plain_flops if self.plain else gpu.dot_flops * 2 // self.size
        if self.cut:
            flops = gpu.dot_flops // CUT_PRODUCTS
        return TileCost(
            self.batch * parts, first, second, -(-self.k // parts), max(self.size, self.read),
            flops, self.behind,
            self.plain, loaded[::-1] if turned else loaded,
            self.stored if parts == 1 else ROW, self.lasts and parts == 1 and not turned,
            self.apart, self.cut, self.lasts and turned,
        )  # fmt: skip

    @property
    def shapes(self) -> tuple[TileShape, ...]:
        """The tiles that are thought of."""
        every = PLAIN_SHAPES if self.plain else CUT_SHAPES if self.cut else SHAPES
        if self.copied:
            return every
        return tuple(shape for shape in every if not narrow_parts(shape.second))

    def exactly(self, gpu: GpuFeatures) -> Multiplied:
        """The same f32 as it is multiplied where 24 bits are asked for: cut into parts of bf16,
        where the depth is worth it, or as it is."""
        cut = gpu.capability >= CUTS and self.k >= gpu.exact_depth
        few, many = sorted((self.m, self.n))
        cut = cut and few >= gpu.exact_side and many >= gpu.narrow_side
        return attrs.evolve(self, plain=not cut, cut=cut)

    def steps(self, gpu: GpuFeatures) -> tuple[int, ...]:
        """The depths of a step that are thought of."""
        step = gpu.plain_step if self.plain else gpu.step_bytes // self.size
        step = max(self.least_step, min(step, 1 << max(0, self.k - 1).bit_length()))
        once = self.plain or self.apart or 2 * step > self.k
        return (step,) if once else (step, 2 * step)

    def least(self, gpu: GpuFeatures) -> Fastest:
        """The tiles that take the least time, in the fewest parts that do."""
        return self.by_parts(gpu)[0]

    def by_parts(self, gpu: GpuFeatures) -> tuple[Fastest, ...]:
        """For each number of parts of the depth the tiles that take the least time; the fastest
        first."""
        return _by_parts(self, gpu)

    def _by_parts(self, gpu: GpuFeatures) -> tuple[Fastest, ...]:
        products, times = self.products(gpu), []
        for parts in self._parts(gpu):
            cost = self.cost(gpu, products, parts)
            tiling = min(
                cost.tilings(self.shapes, self.steps(gpu), gpu), key=lambda t: cost.time(t, gpu)
            )
            time = max(cost.time(tiling, gpu), self.reading(gpu)) + self._summing(parts, gpu)
            times.append(Fastest(tiling, parts, time))
        return tuple(sorted(times, key=lambda each: each.time))

    def _parts(self, gpu: GpuFeatures) -> Iterator[int]:
        """In how many parts the depth may be summed up."""
        yield 1
        line = self.steps(gpu)[0]
        most = 1 if self.plain else min(gpu.most_parts, self.k // gpu.part_depth)
        for parts in range(2, most + 1):
            if (parts - 1) * -(-self.k // (parts * line)) * line < self.k:  # the last has something
                yield parts

    def reading(self, gpu: GpuFeatures) -> float:
        """Microseconds in which memory gives the factors and takes the result."""
        return gpu.operations(Cost(far=self.bytes), gpu.parallel) * gpu.femtoseconds / 1e9

    def _summing(self, parts: int, gpu: GpuFeatures) -> float:
        """Microseconds of the kernel that adds parts up, whose sums are written and read."""
        if parts == 1:
            return 0.0
        sums = self.batch * self.m * self.n
        cost = Cost(far=sums * (4 * parts + self.size), launches=1)
        return gpu.operations(cost, gpu.parallel) * gpu.femtoseconds / 1e9


@functools.lru_cache(256)
def _by_parts(multiplied: Multiplied, gpu: GpuFeatures) -> tuple[Fastest, ...]:
    return multiplied._by_parts(gpu)


# -- of contractions


def multiplied_by(
    contractions: Sequence[Contraction],
    stored: Iterable[Type],
    size: int,
    *,
    plain: bool = False,
    behind: int = 0,
    lasts: bool = False,
    described: bool = False,
    least_step: int = 16,
    apart: bool = False,
    cut: bool = False,
    read: int = 0,
    copied: bool = True,
) -> Multiplied:
    """What contractions of the same rows and columns multiply, elements of `size` bytes, with how
    rows lie in memory: those of factors that are read, and of the arrays that are stored.
    described: whether the hardware copies tiles of the factors."""
    first = contractions[0]
    batch, m, n, k = (
        max(1, estimate(dim_product([a.extent for a in axes])))
        for axes in (first.batch, first.rows, first.columns, first.depth)
    )
    sides = [[c.left for c in contractions], [c.right for c in contractions]]
    left, right = (min(map(row_bytes, each)) for each in sides)
    lengths = tuple(min(map(length_bytes, each)) for each in sides)
    if not described:
        left, right = min(left, lengths[0]), min(right, lengths[1])
    rows = min((stored_bytes(type_) for type_ in stored), default=ROW)
    return Multiplied(
        batch, m, n, k, size, plain, behind, (left, right), rows, (lengths[0], lengths[1]), lasts,
        least_step, apart, cut, read, copied=copied,
    )  # fmt: skip


def row_bytes(side: Side) -> int:
    """What the beginnings of a factor's rows in memory are multiples of, in bytes up to `ROW`;
    `ROW` for what is computed on the way."""
    read = side.plain
    if read is None:
        return ROW
    type_ = read.source.type
    assert isinstance(type_, TensorType)
    strides = contiguous_strides(type_.shape) if type_.strides is None else type_.strides
    offset = simplify(dim_sum([i * s for i, s in zip(read.indices, strides, strict=True)]))
    steps = [coefficient(offset, name) for name in sorted(side.axes)]
    return common_bytes([step for step in steps if step not in (None, 0)], type_)  # type: ignore[misc]


def length_bytes(side: Side) -> int:
    """What the length of a factor's rows in memory is a multiple of, in bytes up to `ROW`; `ROW`
    for what is computed on the way, or not of known size."""
    read = side.plain
    if read is None:
        return ROW
    type_, compute = read.source.type, read.parent_op
    assert isinstance(type_, TensorType) and isinstance(compute, loop.ComputeOp)
    strides = contiguous_strides(type_.shape) if type_.strides is None else type_.strides
    offset = simplify(dim_sum([i * s for i, s in zip(read.indices, strides, strict=True)]))
    lengths = [a.extent for a in compute.axis_list if coefficient(offset, a.name) == 1]
    return common_bytes([*lengths[-1:], 1], type_)


def stored_bytes(type_: Type) -> int:
    """What the beginnings of an array's rows are multiples of, in bytes up to `ROW`."""
    assert isinstance(type_, TensorType)
    strides = contiguous_strides(type_.shape) if type_.strides is None else type_.strides
    pairs = zip(type_.shape, strides, strict=True)
    return common_bytes([stride for size, stride in pairs if size != 1], type_)


__all__ = ["Fastest", "Multiplied", "multiplied_by", "length_bytes", "row_bytes",
           "stored_bytes"]  # fmt: skip
