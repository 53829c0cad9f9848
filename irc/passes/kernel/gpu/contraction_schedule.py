"""The schedule of a gpu kernel of contractions: the tiles that take the least time by a model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import attrs

from irc.analysis.cost import op_cost
from irc.analysis.loop import points
from irc.analysis.multiplied import Multiplied, length_bytes, multiplied_by, row_bytes
from irc.analysis.tile_cost import ROW, StagedTile, TileCost, TileShape
from irc.dialects import arith, loop
from irc.dialects.kernel.dots import Dot
from irc.dialects.loop.schedule import CONTRACTION_KEYS
from irc.ir import attributes as A
from irc.ir.diagnostics import InvalidIR
from irc.ir.symbols import Dim, Range, dim_product, dim_sum, known_divisible, range_of
from irc.ir.types import FloatType, TensorType, bf16, element_bytes, f8E4M3FN, f8E5M2, f16, f32
from irc.passes.kernel.gpu.contraction_space import (
    ContractionSpace,
    contraction_space,
    factor_of,
    is_copied,
    lies_along,
)
from irc.passes.kernel.gpu.cut_sums import CUT
from irc.passes.kernel.gpu.odd_rows import product_row_group
from irc.passes.kernel.gpu.plan import INDEX_LIMIT, GpuPlan, strides_of
from irc.target.gpu import GpuFeatures

LINES = 2
"""The most lines of memory that a step of the depth has of a tile."""
DESCRIBED = 90
"""The compute capability from which on the hardware copies tiles."""


def contraction_entries(
    plan: GpuPlan, gpu: GpuFeatures, preset: Mapping[str, A.Attribute], ranges: Mapping[str, Range]
) -> dict[str, A.Attribute] | None:
    """The entries of a plan's schedule as contractions, with those that are preset; None where
    nothing says that it is to be one and it is none, or ordinary reductions are as good. Raises
    InvalidIR."""
    space = contraction_space(plan)
    asked = not CONTRACTION_KEYS.isdisjoint(preset)
    precision = preset.get("precision") or A.StringAttr("ieee")
    wrong, dots = space if isinstance(space, str) else "", list[Dot]()
    for _, contraction in () if isinstance(space, str) else space.contractions:
        dot = factor_of(contraction, str(getattr(precision, "value", "")))
        if isinstance(dot, Dot):
            dots.append(dot)
        else:
            wrong = dot
    if wrong and asked:
        raise InvalidIR(f"its schedule is of a contraction, and {wrong}", op=plan.op)
    if wrong or isinstance(space, str):
        return None
    access = preset.get("access") or A.StringAttr(_access(space, dots, gpu))
    described = access == A.StringAttr("descriptors")
    word = str(getattr(precision, "value", ""))
    ahead = preset.get("num_stages") != A.IntegerAttr(1)
    multiplied = multiplied_of(plan, space, dots, gpu, word, described, ahead)
    if multiplied.plain and "precision" not in preset:
        multiplied = multiplied.exactly(gpu)
        precision = A.StringAttr(CUT if multiplied.cut else "ieee")
    group = preset.get("row_group")
    if group is None:
        group = A.IntegerAttr(_row_group(plan, space, multiplied, gpu, preset, described))
    if group != A.IntegerAttr(1):
        multiplied = attrs.evolve(multiplied, stored=ROW)
    if not (asked or _is_worth(multiplied, dots, gpu)):
        return None
    entries = _tiles(space, dots, multiplied, gpu, preset)
    entries["precision"] = precision
    entries["column_parts"] = A.IntegerAttr(1)
    entries.setdefault("access", access)
    entries["row_group"] = group if "row_group" in preset else A.IntegerAttr(
        _wide_row_group(plan, space, group.value, entries, gpu))  # type: ignore[attr-defined]
    entries["edge_bytes"] = A.IntegerAttr(16)
    entries["rough_powers"] = A.TRUE
    entries["index_bits"] = A.IntegerAttr(32 if _fits_32_bits(plan, space, ranges) else 64)
    return {**entries, **preset}


def _row_group(
    plan: GpuPlan,
    space: ContractionSpace,
    multiplied: Multiplied,
    gpu: GpuFeatures,
    preset: Mapping[str, A.Attribute],
    described: bool,
) -> int:
    """The group of elements at which the rows of a tile begin alike, where rows of the result are
    odd and there is one; 1 else. Descriptors copy rows that follow each other."""
    products = str(getattr(preset.get("products"), "value", multiplied.products(gpu)))
    if multiplied.stored == ROW or products == "swapped" or described:
        return 1
    return product_row_group(plan, space)


def _wide_row_group(
    plan: GpuPlan,
    space: ContractionSpace,
    group: int,
    entries: Mapping[str, A.Attribute],
    gpu: GpuFeatures,
) -> int:
    """The largest multiple of a row group, up to a line of memory, of which there are as many rows
    that begin alike as tiles have, or a multiple; where a flat loop goes over the tiles, which
    stores what rows share in its own tiles whatever the group (8192x768 @ 768x30523: 592 us of an
    H200 by groups of 16 bytes, 585 by lines)."""
    if group == 1 or entries["flat"] != A.TRUE:
        return group
    values = {key: value.value for key, value in entries.items() if key in ("tile_m", "tile_n")}  # type: ignore[attr-defined]
    size = min(element_bytes(result.type.element) for result, _ in plan.outputs)  # type: ignore[attr-defined]
    (row,), (column,) = space.rows, space.columns
    assert isinstance(column.extent, int)
    wider = 2 * group
    while wider * size <= gpu.step_bytes and values["tile_n"] % wider == 0:
        rows = values["tile_m"] * (wider // math.gcd(column.extent, wider))
        if not known_divisible(row.extent, rows) or product_row_group(plan, space, wider) != wider:
            break
        group, wider = wider, 2 * wider
    return group


def _is_worth(multiplied: Multiplied, dots: list[Dot], gpu: GpuFeatures) -> bool:
    """Whether what nobody asked for is multiplied as matrices: floats, and not too small."""
    floats = all(dot.element in (bf16, f16, f32) for dot in dots)
    return floats and multiplied.is_worth(gpu)


def multiplied_of(
    plan: GpuPlan,
    space: ContractionSpace,
    dots: Sequence[Dot],
    gpu: GpuFeatures,
    precision: str,
    described: bool,
    ahead: bool = True,
) -> Multiplied:
    """What a plan's contractions multiply, with how its rows lie in memory. ahead: steps of the
    depth are in flight beside the one that is multiplied, where there are several."""
    whole = dots[0].element is f32
    longest = LINES * gpu.step_bytes // min(element_bytes(dot.element) for dot in dots)
    behind = sum(
        op_cost(op, gpu) for member in plan.members if not member.own
        for op in member.compute.block.ops
    )  # fmt: skip
    return multiplied_by(
        [contraction for _, contraction in space.contractions],
        [result.type for result, _ in plan.outputs],
        max(element_bytes(dot.element) for dot in dots),
        plain=whole and precision in ("", "ieee"), cut=whole and precision == CUT, behind=behind,
        lasts=_can_last(plan, space) and not described, described=described,
        least_step=dots[0].least[2], apart=any(dot.element in (f8E4M3FN, f8E5M2) for dot in dots),
        read=max(_float_bytes(read) for member in plan.members for read in member.compute.reads
                 if member.own),
        copied=all(is_copied(contraction.right, dot, contraction.depth,
                             ahead and points(a.extent for a in contraction.depth) > longest)
                   for (_, contraction), dot in zip(space.contractions, dots, strict=True)),
    )  # fmt: skip


def _float_bytes(read: loop.ReadOp) -> int:
    """Bytes of a float that is read; 0 for other elements."""
    element = read.value.type
    return element_bytes(element) if isinstance(element, FloatType) else 0


def _access(space: ContractionSpace, dots: Sequence[Dot], gpu: GpuFeatures) -> str:
    """How factors are read: by descriptors where they are matrices of 16 bits whose rows begin at
    multiples of 16 bytes and end between these, so that a mask would cut what a thread reads at
    once (4096x50257 bf16, rows 50264 apart, by 50257x768: 474 us of an H200, 2019 by pointers)."""
    if not describable(space, dots, gpu) or any(d.element not in (bf16, f16) for d in dots):
        return "pointers"
    sides = [side for _, c in space.contractions for side in (c.left, c.right)]
    cut = any(row_bytes(side) == ROW > length_bytes(side) for side in sides)
    return "descriptors" if cut else "pointers"


def describable(space: ContractionSpace, dots: Sequence[Dot], gpu: GpuFeatures) -> bool:
    """Whether factors are matrices that the hardware copies tiles of, as far as their elements and
    dimensions say."""
    axes = [len(space.rows), len(space.columns), *(len(c.depth) for _, c in space.contractions)]
    if space.batch or max(axes) > 1 or gpu.capability < DESCRIBED:
        return False
    for (_, contraction), dot in zip(space.contractions, dots, strict=True):
        for side in (contraction.left, contraction.right):
            read = side.plain
            if read is None or read.value.type is not dot.element:
                return False
    return True


@attrs.frozen
class TileChoices:
    """What tiles are chosen of: shapes, depths of a step, the order of the dimensions ("dot" or
    "swapped"), and the model of their time. row_group: the least group of a result's odd rows,
    where the schedule has any. stages: steps in flight, where that is decided (0: it isn't)."""

    cost: TileCost
    shapes: tuple[TileShape, ...]
    steps: tuple[int, ...]
    products: str
    row_group: int = 1
    stages: int = 0

    @property
    def keys(self) -> dict[str, str]:
        """The key of a schedule by what it says of a shape."""
        first, second = ("tile_m", "tile_n") if self.products == "dot" else ("tile_n", "tile_m")
        return {"first": first, "second": second, "warps": "num_warps"}

    @property
    def parted(self) -> bool:
        """Whether what follows may be computed on parts of a tile's columns, one by one."""
        return bool(self.cost.behind) and self.products == "dot" and not (
            self.cost.plain or self.cost.cut
        )

    def tilings(self, gpu: GpuFeatures) -> list[StagedTile]:
        """All tiles, those first that take the least time."""
        every = self.cost.tilings(self.shapes, self.steps, gpu)
        if self.stages:
            every = iter({attrs.evolve(each, stages=self.stages): 0 for each in every})
        return sorted(every, key=lambda each: self.cost.time(each, gpu))


def tile_choices(
    multiplied: Multiplied, gpu: GpuFeatures, preset: Mapping[str, A.Attribute]
) -> TileChoices:
    """What the tiles of products are chosen of, as far as nothing is preset of them."""
    products = str(getattr(preset.get("products"), "value", multiplied.products(gpu)))
    cost, steps = multiplied.cost(gpu, products), multiplied.steps(gpu)
    return TileChoices(cost, multiplied.shapes, steps, products)


def _tiles(
    space: ContractionSpace,
    dots: Sequence[Dot],
    multiplied: Multiplied,
    gpu: GpuFeatures,
    preset: Mapping[str, A.Attribute],
) -> dict[str, A.Attribute]:
    """The entries of the tiles that take the least time."""
    choices = tile_choices(multiplied, gpu, preset)
    keys, cost = choices.keys, choices.cost
    fixed = {name: preset[key].value for name, key in keys.items() if key in preset}  # type: ignore[attr-defined]
    shapes = dict.fromkeys(attrs.evolve(shape, **fixed) for shape in choices.shapes)
    steps = (preset["tile_k"].value,) if "tile_k" in preset else choices.steps  # type: ignore[attr-defined]
    stages = preset["num_stages"].value if "num_stages" in preset else 0  # type: ignore[attr-defined]
    possible = attrs.evolve(choices, shapes=tuple(shapes), steps=steps, stages=stages)
    tiling = possible.tilings(gpu)[0]
    told = {"programs", "flat", "num_stages", "tile_k", *keys.values()} & {*preset}
    lasting, programs, access = None, 0, dict[str, A.Attribute]()
    if not told:
        lasting, programs = cost.lasting(tiling, gpu), 1
    if not told and choices.products == "swapped" and not (cost.plain or cost.cut):
        lasting, programs = cost.of_few(tiling, gpu)
    apart = None
    if not told and "access" not in preset and describable(space, dots, gpu):
        apart = cost.lasting_apart(gpu)
    if apart is not None and apart[1] < cost.time(tiling, gpu):
        lasting, access = apart[0], {"access": A.StringAttr("descriptors")}
    programs = programs * gpu.processors if lasting is not None else 0
    tiling = lasting or tiling
    return {
        "products": A.StringAttr(choices.products),
        keys["first"]: A.IntegerAttr(tiling.shape.first),
        keys["second"]: A.IntegerAttr(tiling.shape.second),
        "tile_k": A.IntegerAttr(tiling.step),
        "group_m": A.IntegerAttr(
            cost.together(tiling.shape, gpu) if programs else gpu.grouped_rows),
        "num_warps": A.IntegerAttr(tiling.shape.warps),
        "num_stages": A.IntegerAttr(tiling.stages),
        "programs": A.IntegerAttr(programs),
        "flat": A.BoolAttr(programs > 0),
        **access,
    }


def _can_last(plan: GpuPlan, space: ContractionSpace) -> bool:
    """Whether Triton makes one pipeline of all tiles of a program instance, with room for sums that
    are stored: of a lone product whose sums are rounded at most, of known sizes and 16 bits, of
    factors that lie along the depth."""
    _, contraction = space.contractions[0]
    known = len(space.contractions) == 1 and all(isinstance(size, int) for size in space.sizes)
    rounded = all(member.own or _rounds(member.compute) for member in plan.members)
    narrow = all(element_bytes(r.type.element) <= 2 for r, _ in plan.outputs)  # type: ignore[attr-defined]
    return known and rounded and narrow and all(
        lies_along(side, contraction.depth) for side in (contraction.left, contraction.right)
    )  # fmt: skip


def _rounds(compute: loop.ComputeOp) -> bool:
    """Whether a map does nothing but round what it reads."""
    reads = sum(isinstance(op, loop.ReadOp) for op in compute.block.ops)
    kinds = loop.ReadOp | loop.YieldOp | arith.TruncFOp
    return reads == 1 and all(isinstance(op, kinds) for op in compute.block.ops)


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


__all__ = ["TileChoices", "contraction_entries", "multiplied_of", "tile_choices"]
