"""What a gpu kernel multiplies as matrices: the axes of its rows as those of its contractions."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from irc.analysis.contraction import Contraction, Side, contraction_of
from irc.dialects import loop
from irc.dialects.kernel.dots import Dot, dot_of
from irc.ir.attributes import Type
from irc.ir.symbols import Dim, coefficient, dim_product
from irc.ir.types import bf16, element_bytes, f16, f32
from irc.passes.kernel.gpu.plan import GpuMember, GpuPlan, offset_of

#: What factors of f32 are rounded to where a schedule says so.
ROUNDED = {"bf16": bf16, "f16": f16}


@attrs.frozen(eq=False)
class ContractionSpace:
    """The axes that a kernel's members share, as batch, rows and columns of its contractions, which
    all see them alike; the other members have none but these."""

    batch: tuple[loop.AxisAttr, ...]
    rows: tuple[loop.AxisAttr, ...]
    columns: tuple[loop.AxisAttr, ...]
    contractions: tuple[tuple[GpuMember, Contraction], ...]

    @property
    def sizes(self) -> tuple[Dim, Dim, Dim, Dim]:
        """Batch, rows, columns, and the depth of the first contraction."""
        depth = self.contractions[0][1].depth
        b, m, n, k = (
            dim_product([a.extent for a in axes])
            for axes in (self.batch, self.rows, self.columns, depth)
        )
        return b, m, n, k


def contraction_space(plan: GpuPlan) -> ContractionSpace | str:
    """The contractions of a kernel, or why it has none that it could multiply as matrices."""
    pairs: list[tuple[GpuMember, Contraction]] = []
    for member in plan.members:
        if member.folded:
            return "a member has par axes that the others lack"
        if not member.own:
            if any(o.kind != "map" for o in member.compute.output_list):
                return "a member combines what is no contraction"
            continue
        contraction = contraction_of(member.compute)
        if isinstance(contraction, str):
            return contraction
        if any(plan.origin(read.source) is not None for read in member.compute.reads):
            return "a contraction reads what the kernel computes"
        pairs.append((member, contraction))
    if not pairs:
        return "there is no contraction"
    spaces = {(c.batch, c.rows, c.columns) for _, c in pairs}
    if len(spaces) > 1:
        return "its contractions have other rows and columns"
    (batch, rows, columns) = spaces.pop()
    if [a.name for a in pairs[0][0].own] != [a.name for a in pairs[0][1].depth]:
        return "a member has par axes that the others lack"
    return ContractionSpace(batch, rows, columns, tuple(pairs))


def factor_of(contraction: Contraction, precision: str) -> Dot | str:
    """How the factors of a contraction are multiplied, or why they aren't.

    Both factors are of the element that both were before they were widened to multiply them; else
    of f32, or what `precision` rounds that to.
    """
    sides = (contraction.left, contraction.right)
    elements = {side.narrow.type for side in sides}
    element: Type = elements.pop() if len(elements) == 1 else contraction.product.results[0].type
    if dot_of("gpu", element) is None:
        element = contraction.product.results[0].type
    if element is f32:
        element = ROUNDED.get(precision, f32)
    dot = dot_of("gpu", element)
    if dot is None:
        return f"a gpu multiplies no matrices of {element}"
    if dot.accumulator is not contraction.accumulator:
        return f"sums of {element} are of {dot.accumulator}, not {contraction.accumulator}"
    return dot


def lies_along(side: Side, depth: Sequence[loop.AxisAttr]) -> bool:
    """Whether a factor is what is read, side by side along the last axis of depth."""
    read = side.plain
    if read is None or read.positions or not depth:
        return False
    return coefficient(offset_of(list(read.indices), read.source.type), depth[-1].name) == 1


def is_copied(side: Side, dot: Dot, depth: Sequence[loop.AxisAttr], ahead: bool) -> bool:
    """Whether tiles of a factor are copied into a processor's memory as they are read, or lie along
    the depth there. Others go through registers; of these Triton 3.6 multiplies a part of fewer
    than 64 columns beside a wider one wrongly, or reads memory that isn't there (an H200, 512x512
    by 512x1440, `x @ w.relu()` in tiles of 96, 144 and 160 columns, and `x @ w` in those of 144
    with one step in flight: all columns of the narrow part were wrong; those of 64, 128 and 192 are
    right). Elements of 16 bits alone are multiplied from there as they lie. ahead: several steps of
    the depth are in flight."""
    if ahead and element_bytes(dot.element) == 2 and side.reads_zero:
        if side.narrow.type is dot.element:
            return True
    name = depth[-1].name if depth else ""
    offsets = [offset_of(list(read.indices), read.source.type) for read in side.reads]
    return any(coefficient(offset, name) == 1 for offset in offsets)


__all__ = ["ContractionSpace", "contraction_space", "factor_of", "is_copied", "lies_along"]
