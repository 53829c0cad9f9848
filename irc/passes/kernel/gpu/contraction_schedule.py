"""The schedule of a gpu kernel of contractions: its tiles, by a model of the time that they take.

A tile takes what its products take, or what a processor takes to get its factors from the second
cache, whichever is longer, and what every tile takes for itself; tiles of one processor at a time
share that, and go over the processors in waves.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from irc.analysis.loop import estimate
from irc.dialects.kernel.dots import Dot
from irc.dialects.loop.schedule import CONTRACTION_KEYS
from irc.ir import attributes as A
from irc.ir.diagnostics import InvalidIR
from irc.ir.symbols import Dim, Range, dim_product, dim_sum, range_of
from irc.ir.types import TensorType, bf16, element_bytes, f16, f32
from irc.passes.kernel.gpu.contraction_space import (
    ContractionSpace,
    contraction_space,
    factor_of,
)
from irc.passes.kernel.gpu.plan import INDEX_LIMIT, GpuPlan, strides_of
from irc.target.gpu import GpuFeatures


@attrs.frozen
class TileShape:
    """A tile: its size as [first, second] dimension, its warps, and the steps in flight."""

    first: int
    second: int
    warps: int
    stages: int

    @property
    def sums(self) -> int:
        """How many sums it has."""
        return self.first * self.second


SHAPES = tuple(TileShape(*row) for row in (
    (128, 256, 8, 3), (256, 128, 8, 3), (128, 192, 8, 3), (128, 128, 4, 3), (128, 128, 8, 4),
    (64, 256, 4, 3), (64, 192, 4, 3), (64, 128, 4, 4), (128, 96, 4, 3), (128, 64, 4, 4),
    (64, 96, 4, 4), (64, 64, 4, 5), (64, 32, 4, 6), (64, 16, 4, 6),
))  # fmt: skip
#: Of f32 as it is, whose factors are in registers, too.
PLAIN_SHAPES = tuple(TileShape(*row) for row in (
    (128, 64, 8, 3), (64, 64, 4, 3), (64, 32, 4, 3), (32, 32, 4, 3), (16, 32, 2, 3),
))  # fmt: skip


@attrs.frozen
class TileCost:
    """What decides how long tiles take: how many matrices of which size (first, second dimension,
    depth), the bytes of an element, the depth of a step, and the operations that a processor does
    in a us."""

    batch: int
    first: int
    second: int
    depth: int
    element_bytes: int
    step: int
    flops: int

    def time(self, shape: TileShape, gpu: GpuFeatures) -> float:
        """Microseconds of a kernel with tiles of a shape; infinity where they have no room."""
        moved = (shape.first + shape.second) * self.element_bytes
        held = moved * self.step * shape.stages
        room = min(gpu.shared_bytes // held, gpu.accumulators // shape.sums)
        if room == 0:
            return float("inf")
        tiles = self.batch * -(-self.first // shape.first) * -(-self.second // shape.second)
        together = min(room, -(-tiles // gpu.processors))
        waves = -(-tiles // (gpu.processors * together))
        depth = -(-self.depth // self.step) * self.step
        products = 2 * shape.sums * depth / self.flops
        reads = moved * depth / gpu.tile_bytes
        return waves * (together * max(products, reads) + gpu.tile_start)


def contraction_entries(
    plan: GpuPlan, gpu: GpuFeatures, preset: Mapping[str, A.Attribute], ranges: Mapping[str, Range]
) -> dict[str, A.Attribute] | None:
    """The entries of a plan's schedule as contractions, with those that are preset; None where
    nothing says that it is to be one and it is none, or ordinary reductions are as good. Raises
    InvalidIR."""
    space = contraction_space(plan)
    asked = not CONTRACTION_KEYS.isdisjoint(preset)
    precision = preset.get("precision", A.StringAttr("ieee"))
    wrong, multiplied = space if isinstance(space, str) else "", list[Dot]()
    for _, contraction in () if isinstance(space, str) else space.contractions:
        dot = factor_of(contraction, str(getattr(precision, "value", "")))
        if isinstance(dot, Dot):
            multiplied.append(dot)
        else:
            wrong = dot
    if wrong and asked:
        raise InvalidIR(f"its schedule is of a contraction, and {wrong}", op=plan.op)
    if wrong or isinstance(space, str) or not (asked or _is_worth(space, multiplied, gpu)):
        return None
    plain = multiplied[0].element is f32 and precision == A.StringAttr("ieee")
    entries = _tiles(space, multiplied[0], gpu, preset, plain)
    entries["programs"] = A.IntegerAttr(0)
    entries["precision"] = precision
    entries["column_parts"] = A.IntegerAttr(1)
    entries["access"] = A.StringAttr("pointers")
    entries["edge_bytes"] = A.IntegerAttr(16)
    entries["rough_powers"] = A.TRUE
    entries["index_bits"] = A.IntegerAttr(32 if _fits_32_bits(plan, space, ranges) else 64)
    return {**entries, **preset}


def _is_worth(space: ContractionSpace, dots: list[Dot], gpu: GpuFeatures) -> bool:
    """Whether what nobody asked for is multiplied as matrices: floats, and not too small."""
    _, m, n, k = (estimate(size) for size in space.sizes)
    if k < gpu.matrix_side or any(dot.element not in (bf16, f16, f32) for dot in dots):
        return False
    narrow = all(dot.element is not f32 for dot in dots)
    if min(m, n) >= gpu.matrix_side:
        return True
    return narrow and min(m, n) > 1 and max(m, n) >= gpu.narrow_side


def _tiles(
    space: ContractionSpace,
    dot: Dot,
    gpu: GpuFeatures,
    preset: Mapping[str, A.Attribute],
    plain: bool,
) -> dict[str, A.Attribute]:
    """The entries of the tiles that take the least time."""
    batch, m, n, k = (max(1, estimate(size)) for size in space.sizes)
    few = m <= gpu.swapped_rows < n
    products = getattr(preset.get("products"), "value", "swapped" if few else "dot")
    first, second = (n, m) if products == "swapped" else (m, n)
    size = element_bytes(dot.element)
    step = gpu.plain_step if plain else gpu.step_bytes // size
    step = max(dot.least[2], min(step, _power(k)))
    flops = gpu.plain_flops if plain else gpu.dot_flops * 2 // size
    cost = TileCost(batch, first, second, k, size, step, flops)
    shape = min(PLAIN_SHAPES if plain else SHAPES, key=lambda each: cost.time(each, gpu))
    tile_m, tile_n = shape.first, shape.second
    if products == "swapped":
        tile_m, tile_n = tile_n, tile_m
    return {
        "products": A.StringAttr(str(products)),
        "tile_m": A.IntegerAttr(tile_m),
        "tile_n": A.IntegerAttr(tile_n),
        "tile_k": A.IntegerAttr(step),
        "group_m": A.IntegerAttr(gpu.grouped_rows),
        "num_warps": A.IntegerAttr(shape.warps),
        "num_stages": A.IntegerAttr(shape.stages),
    }


def _power(count: int) -> int:
    return 1 << max(0, count - 1).bit_length()


def _fits_32_bits(plan: GpuPlan, space: ContractionSpace, ranges: Mapping[str, Range]) -> bool:
    """Whether every offset and position of the kernel is known to stay in 32 bits: arrays' reach,
    and each of rows, columns and depth by itself."""
    spans: list[Dim] = list(space.sizes)
    spans += [dim_product([a.extent for a in c.depth]) for _, c in space.contractions]
    for value in [*plan.inputs, *(result for result, _ in plan.outputs)]:
        type_ = value.type
        assert isinstance(type_, TensorType)
        steps = zip(type_.shape, strides_of(type_), strict=True)
        spans.append(dim_sum([n * (abs(s) if isinstance(s, int) else s) for n, s in steps]))
    most = [s if isinstance(s, int) else range_of(s, ranges).hi for s in spans]
    return all(m is not None and m < INDEX_LIMIT for m in most)


__all__ = ["contraction_entries"]
