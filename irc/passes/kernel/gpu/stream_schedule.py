"""The schedule of a gpu kernel of streamed products."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from irc.analysis.contraction import Contraction
from irc.analysis.loop import estimate
from irc.analysis.streams import FEWEST, LONGEST
from irc.dialects import loop
from irc.dialects.loop.schedule import STREAM_KEYS
from irc.ir import attributes as A
from irc.ir.diagnostics import InvalidIR
from irc.ir.symbols import dim_product
from irc.ir.types import element_bytes
from irc.passes.kernel.gpu.contraction_space import factor_of
from irc.passes.kernel.gpu.plan import GpuPlan
from irc.passes.kernel.gpu.stream_space import (
    StreamSpace,
    limit_of,
    stream_space,
    tiled_rows,
)
from irc.target.gpu import GpuFeatures

#: The most terms and columns of which a target's figures of streamed products have a number each.
WIDTHS = 64, 128, LONGEST


def stream_entries(
    plan: GpuPlan, gpu: GpuFeatures, preset: Mapping[str, A.Attribute]
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
    products = [contraction for _, contraction in space.products]
    wrong = [dot for each in products if isinstance(dot := factor_of(each, word), str)]
    widest = widest_tile(space)
    if widest is None:
        wrong.append(f"a tile has no room for more than {LONGEST} terms or columns")
    if asked and wrong:
        raise InvalidIR(f"its schedule is of streamed products, and {wrong[0]}", op=plan.op)
    if wrong or widest is None:
        return None
    rows = estimate(dim_product([axis.extent for axis in tiled_rows(plan, space)]))
    place = next(k for k, width in enumerate(WIDTHS) if widest <= width)
    place += len(WIDTHS) * (2 if len(space.sums) > 1 else len(space.scores) > 1)
    figures = (gpu.stream_rows, gpu.stream_columns, gpu.stream_warps, gpu.stream_stages)
    tile, columns, warps, stages = (figure[place] for figure in figures)
    tile = min(tile, max(FEWEST, 1 << max(rows - 1, 0).bit_length()))
    columns, stages = with_room(space, products, widest, tile, columns, stages, gpu)
    entries: dict[str, A.Attribute] = {
        "stream_m": A.IntegerAttr(tile),
        "stream_n": A.IntegerAttr(columns),
        "num_warps": A.IntegerAttr(warps),
        "num_stages": A.IntegerAttr(stages),
        "precision": precision,
        "edge_bytes": A.IntegerAttr(16),
        "rough_powers": A.TRUE,
        "index_bits": A.IntegerAttr(64),  # addresses that steps add to, and no multiplications
    }
    if limit_of(plan, space) is not None:
        # Keys, whose gradients are several sums, are seen by the queries behind them.
        entries["last_first"] = A.BoolAttr(len(space.sums) == 1)
    return {**entries, **preset}


def with_room(
    space: StreamSpace, products: Sequence[Contraction], widest: int, rows: int, columns: int,
    stages: int, gpu: GpuFeatures,
) -> tuple[int, int]:  # fmt: skip
    """As many columns of a step, and steps in flight, as a processor's memory has room for beside
    the rows: of what each product reads of the stream, which several may share."""
    size = max(element_bytes(each.right.narrow.type) for each in products)
    width = 1 << max(widest - 1, 0).bit_length()
    reads = [each.right.narrow.defining_op for each in products]
    streamed = len({r.source if isinstance(r, loop.ReadOp) else r for r in reads})
    kept = rows * width * size * len(space.scores)
    while kept + stages * streamed * columns * width * size > gpu.block_bytes:
        if stages > 1:
            stages -= 1
        elif columns > FEWEST:
            columns //= 2
        else:
            break
    return columns, stages


def widest_tile(space: StreamSpace) -> int | None:
    """The most terms of a score or columns of a sum; None where a tile has no room for them."""
    sizes = [dim_product([a.extent for a in c.depth]) for _, c in space.scores]
    for each in space.sums:
        par = [a.extent for a in each.origin.member.own if a.kind == "par"]
        sizes.append(dim_product(par))
    whole = [size for size in sizes if isinstance(size, int) and size <= LONGEST]
    return max(whole) if len(whole) == len(sizes) else None


__all__ = ["stream_entries", "widest_tile"]
