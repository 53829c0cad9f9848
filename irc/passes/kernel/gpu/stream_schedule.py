"""The schedule of a gpu kernel of streamed products."""

from __future__ import annotations

from collections.abc import Mapping

from irc.analysis.loop import estimate
from irc.analysis.streams import LONGEST
from irc.dialects.loop.schedule import STREAM_KEYS
from irc.ir import attributes as A
from irc.ir.diagnostics import InvalidIR
from irc.ir.symbols import Range, dim_product
from irc.passes.kernel.gpu.contraction_space import factor_of
from irc.passes.kernel.gpu.plan import GpuPlan, fits_32_bits
from irc.passes.kernel.gpu.stream_space import StreamSpace, stream_space
from irc.target.gpu import GpuFeatures

#: The most terms and columns of which a target's figures of streamed products have a number each.
WIDTHS = 64, 128, LONGEST


def stream_entries(
    plan: GpuPlan, gpu: GpuFeatures, preset: Mapping[str, A.Attribute], ranges: Mapping[str, Range]
) -> dict[str, A.Attribute] | None:
    """The entries of a plan's schedule as streamed products, with those that are preset; None where
    it is none. Raises InvalidIR where it is to be one."""
    space = stream_space(plan)
    asked = not STREAM_KEYS.isdisjoint(preset)
    if isinstance(space, str):
        if asked:
            raise InvalidIR(f"its schedule is of streamed products, and {space}", op=plan.op)
        return None
    precision = preset.get("precision") or A.StringAttr("ieee")
    word = str(getattr(precision, "value", ""))
    products = [c for _, c in space.scores]
    products += [each.contraction for each in space.sums if each.contraction is not None]
    wrong = [dot for each in products if isinstance(dot := factor_of(each, word), str)]
    widest = widest_tile(space)
    if widest is None:
        wrong.append(f"a tile has no room for more than {LONGEST} terms or columns")
    if asked and wrong:
        raise InvalidIR(f"its schedule is of streamed products, and {wrong[0]}", op=plan.op)
    if wrong or widest is None:
        return None
    rows = estimate(plan.rows[-1])
    kinds = [gpu.stream_rows, gpu.stream_columns, gpu.stream_warps, gpu.stream_stages]
    if len(space.scores) > 1 or len(space.sums) > 1:
        kinds = [gpu.several_rows, gpu.several_columns, gpu.several_warps, gpu.several_stages]
    place = next(k for k, width in enumerate(WIDTHS) if widest <= width)
    tile, columns, warps, stages = (figures[place] for figures in kinds)
    tile = min(tile, max(16, 1 << max(rows - 1, 0).bit_length()))
    entries: dict[str, A.Attribute] = {
        "stream_m": A.IntegerAttr(tile),
        "stream_n": A.IntegerAttr(columns),
        "num_warps": A.IntegerAttr(warps),
        "num_stages": A.IntegerAttr(stages),
        "precision": precision,
        "edge_bytes": A.IntegerAttr(16),
        "rough_powers": A.TRUE,
        "index_bits": A.IntegerAttr(32 if fits_32_bits(plan, ranges) else 64),
    }
    return {**entries, **preset}


def widest_tile(space: StreamSpace) -> int | None:
    """The most terms of a score or columns of a sum; None where a tile has no room for them."""
    sizes = [dim_product([a.extent for a in c.depth]) for _, c in space.scores]
    for each in space.sums:
        par = [a.extent for a in each.origin.member.own if a.kind == "par"]
        sizes.append(dim_product(par))
    whole = [size for size in sizes if isinstance(size, int) and size <= LONGEST]
    return max(whole) if len(whole) == len(sizes) else None


__all__ = ["stream_entries", "widest_tile"]
