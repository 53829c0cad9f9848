"""Which axes of a contraction its tiles have as rows and as columns, where no schedule says it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from irc.analysis.contraction import Side, grouped
from irc.analysis.loop import estimate
from irc.passes.kernel.cpu.contraction.tiling import TiledPlan
from irc.passes.kernel.cpu.plan import Axis, lane_stride
from irc.target import Target


def points_of(axes: Any) -> int:
    """How many points axes have together, by their sizes or estimates."""
    total = 1
    for axis in axes:
        total *= estimate(axis.extent)
    return total


def axes_of(
    products: TiledPlan, target: Target, preset: dict[str, Any]
) -> tuple[list[Axis], Axis] | None:
    """The axes of rows that tiles go over together, and the axis of columns: the largest of its
    side, where results are written one after the other. Where windows are multiplied, what has one
    axis has the columns: the others' are too short for vectors. So is a side of fewer points than a
    vector has lanes, beside one whose factor fills it."""
    contraction, shared = products.contraction, {a.name: a for a in products.plan.shared}
    sides = [[shared[a.name] for a in axes if a.name in shared]
             for axes in (contraction.rows, contraction.columns)]  # fmt: skip
    if not all(sides) or not products.depth:
        return None
    stores = list(products.stores())

    def along(axis: Axis) -> tuple[int, int]:
        steps = [lane_stride(s.expression, axis.name, 16) for s in stores]
        return steps.count(1), estimate(axis.extent)

    best = [max(side, key=along) for side in sides]
    few = target.features.few_rows
    short = [len(side) > 1 and estimate(axis.extent) < few
             for side, axis in zip(sides, best, strict=True)]  # fmt: skip
    chosen = int(along(best[1]) >= along(best[0]))
    lanes = target.lanes(contraction.accumulator)
    thin = [estimate(axis.extent) < lanes for axis in best]
    if thin[0] != thin[1]:
        narrow = thin.index(True)
        if _fills_along(products, best[narrow], best[1 - narrow], target):
            chosen = 1 - narrow
    if short[0] != short[1]:
        chosen = int(short[0])
    if preset.get("products") == "bf16x6":
        chosen = _lies_plain(products, chosen)
    if "vector_axis" in preset:
        chosen = next((k for k in (0, 1) if preset["vector_axis"] in {a.name for a in sides[k]}),
                      chosen)  # fmt: skip
    columns, rows = best[chosen], sides[1 - chosen]
    if "vector_axis" in preset:
        columns = shared.get(preset["vector_axis"], columns)
    together = len(products.depth) > 1 or short[1 - chosen]
    return rows if together else [best[1 - chosen]], columns


def _lies_plain(products: TiledPlan, chosen: int) -> int:
    """The side of the columns where factors are cut into parts: one that is read as it lies, which
    is packed in registers; the other one is evaluated element by element anyway."""
    contraction = products.contraction
    plain = [side.plain is not None or bool(side.parts)
             for side in (contraction.left, contraction.right)]  # fmt: skip
    return chosen if plain[chosen] or not any(plain) else 1 - chosen


def _fills_along(products: TiledPlan, thin: Axis, wide: Axis, target: Target) -> bool:
    """Whether vectors are read where a factor lies with an axis that they would run along in place
    of one of fewer points than they have lanes: along the axis, or along the depth if there are
    enough terms. Then each sum costs the lanes of a vector, combined, and otherwise most lanes of
    each vector are idle (512 x 768 by 4 columns on a Zen 4: 32 us against 110; 8192 x 8 by 4:
    55 against 20)."""
    sides = products.sides_along(thin.name, wide.name)
    if sides is None:
        return False
    features, lanes = target.features, target.lanes(products.contraction.accumulator)

    def moves_by_one(side: Side, axes: Iterable[Axis]) -> bool:
        access = None if side.plain is None else products.member.reads[side.plain]
        if access is None or access.positions:
            return False
        return any(lane_stride(access.expression, axis.name, lanes) == 1 for axis in axes)

    if moves_by_one(sides[1], [wide]):
        return True
    if not moves_by_one(sides[1], products.depth):
        return False
    if estimate(wide.extent) <= features.unpacked_rows and moves_by_one(sides[0], products.depth):
        return False  # sums along the depth they are, and the wide side fills more registers
    dot = grouped(sides[1].narrow.type, target)
    group = 1 if dot is None else dot.group
    terms = points_of(products.depth)
    vectors = -(-terms // (lanes * group))
    return estimate(thin.extent) * (vectors + features.horizontal) <= terms / group


__all__ = ["axes_of", "points_of"]
