"""The schedule of a gpu kernel of contractions: its tiles, by how many of them keep a GPU busy.

A first cost model: a tile's time is that of its products at a rate that larger tiles come nearer
to, and of what every tile takes for itself; tiles run in waves over the processors.
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

LEAST = 16
"""Rows, columns and depth from which on floats are multiplied as matrices where a schedule doesn't
say."""
FEW = 32
"""Rows up to which the columns are the first dimension of tiles: it has at least 64 lanes where
four warps share it."""
STEP_BYTES = 128
"""Bytes of the depth in a step: what a line of memory has."""
GROUP = 8
"""Rows of tiles that go over the columns together."""
OVERHEAD = 6
"""Steps of the depth that a tile takes for itself: its first reads, and what follows."""


@attrs.frozen
class TileShape:
    """A tile: its size as [first, second] dimension, warps, steps in flight for 128 bytes of depth,
    and the part of a processor's rate that it reaches."""

    first: int
    second: int
    warps: int
    stages: int
    rate: float


#: From the largest to the smallest.
SHAPES = (
    TileShape(128, 256, 8, 3, 1.0),
    TileShape(128, 128, 4, 4, 0.85),
    TileShape(128, 64, 4, 4, 0.65),
    TileShape(64, 128, 4, 4, 0.65),
    TileShape(64, 64, 4, 5, 0.45),
    TileShape(64, 32, 4, 6, 0.25),
    TileShape(64, 16, 4, 6, 0.13),
)
#: Of f32 as it is, which is multiplied one by one: sums take the registers.
PLAIN_SHAPES = (
    TileShape(128, 64, 8, 3, 1.0),
    TileShape(64, 64, 4, 3, 0.9),
    TileShape(64, 32, 4, 3, 0.7),
    TileShape(32, 32, 4, 3, 0.5),
    TileShape(16, 32, 2, 3, 0.3),
)
PLAIN_STEP = 16
"""The depth of a step of these."""


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
    if wrong or isinstance(space, str) or not (asked or _is_worth(space, multiplied)):
        return None
    plain = multiplied[0].element is f32 and precision == A.StringAttr("ieee")
    entries = _tiles(space, multiplied[0], gpu, preset, plain)
    entries["programs"] = A.IntegerAttr(0)
    entries["precision"] = precision
    entries["column_parts"] = A.IntegerAttr(1)
    entries["edge_bytes"] = A.IntegerAttr(16)
    entries["rough_powers"] = A.TRUE
    entries["index_bits"] = A.IntegerAttr(32 if _fits_32_bits(plan, space, ranges) else 64)
    return {**entries, **preset}


def _is_worth(space: ContractionSpace, dots: list[Dot]) -> bool:
    """Whether what nobody asked for is multiplied as matrices: floats, and not too small."""
    _, m, n, k = (estimate(size) for size in space.sizes)
    return min(m, n, k) >= LEAST and all(dot.element in (bf16, f16, f32) for dot in dots)


def _tiles(
    space: ContractionSpace,
    dot: Dot,
    gpu: GpuFeatures,
    preset: Mapping[str, A.Attribute],
    plain: bool,
) -> dict[str, A.Attribute]:
    """The entries of the tiles that take the least time."""
    batch, m, n, k = (max(1, estimate(size)) for size in space.sizes)
    products = getattr(preset.get("products"), "value", "swapped" if m <= FEW < n else "dot")
    first, second = (n, m) if products == "swapped" else (m, n)
    bytes_each = element_bytes(dot.element)
    step = max(dot.least[2], min(PLAIN_STEP if plain else STEP_BYTES // bytes_each, _power(k)))
    width = 2 if dot.element is f32 else 1  # registers and memory of f32 hold half of a tile

    def time(shape: TileShape) -> float:
        if shape.first * shape.second * width > 128 * 256:
            return float("inf")
        tiles = batch * -(-first // shape.first) * -(-second // shape.second)
        waves = -(-tiles // (gpu.parallel // 2))
        return waves * shape.first * shape.second / shape.rate * (k / step + OVERHEAD)

    shape = min(PLAIN_SHAPES if plain else SHAPES, key=time)
    tile_m, tile_n = shape.first, shape.second
    if products == "swapped":
        tile_m, tile_n = tile_n, tile_m
    return {
        "products": A.StringAttr(str(products)),
        "tile_m": A.IntegerAttr(tile_m),
        "tile_n": A.IntegerAttr(tile_n),
        "tile_k": A.IntegerAttr(step),
        "group_m": A.IntegerAttr(GROUP),
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
