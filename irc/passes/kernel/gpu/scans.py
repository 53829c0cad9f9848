"""Scans of a gpu kernel: along a tile, after what the tiles before it come to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irc.dialects import kernel, loop
from irc.ir import attributes as A
from irc.ir.attributes import Type
from irc.ir.diagnostics import InvalidIR
from irc.ir.symbols import Dim
from irc.passes.kernel.gpu.combine import Reduction, combine, convert, identity
from irc.passes.kernel.gpu.evaluate import Evaluator, Point
from irc.passes.kernel.gpu.plan import GpuMember, GpuPlan
from irc.passes.kernel.gpu.tiles import Tile, TileBuilder, TileDim


class Scans:
    """The scans of a kernel's members."""

    def __init__(self, b: TileBuilder, plan: GpuPlan, evaluator: Evaluator) -> None:
        self.b, self.plan, self.evaluator = b, plan, evaluator

    def needed(self, members: Sequence[GpuMember]) -> list[tuple[GpuMember, int]]:
        """The scans of `members` and those that they read through maps, in order."""
        needed: dict[tuple[GpuMember, int], None] = {}

        def visit(member: GpuMember) -> None:
            for read in member.compute.reads:
                origin = self.plan.origin(read.source)
                if origin is None or origin.attr.kind == "reduce":
                    continue
                visit(origin.member)
                if origin.attr.kind == "scan":
                    needed.setdefault((origin.member, origin.output))

        for member in members:
            visit(member)
            for number, output in enumerate(member.compute.output_list):
                if output.kind == "scan":
                    needed.setdefault((member, number))
        return list(needed)

    def _element(self, member: GpuMember, number: int) -> Type:
        """What a scan is computed in."""
        output = member.compute.output_list[number]
        element = output.accumulator or member.compute.yield_op.values[number].type
        if output.combiner in ("min", "max") and getattr(element, "unsigned", False):
            raise InvalidIR(f"a scan of {output.combiner} in {element} has no code on a gpu",
                            op=self.plan.op)  # fmt: skip
        return loop.signless(element)

    def start(self, member: GpuMember, number: int) -> Tile:
        """The total before the first tile, a scalar."""
        combiner = member.compute.output_list[number].combiner
        element = self._element(member, number)
        return self.b.constant(identity(combiner, element), element)

    def scan(
        self, member: GpuMember, number: int, point: Point, dims: tuple[TileDim, ...],
        dim: TileDim, total: Tile | None,
    ) -> tuple[Tile, Tile]:  # fmt: skip
        """A tile over `dims`, scanned along `dim` after `total` (of the tiles before), and the
        total after it."""
        b = self.b
        output = member.compute.output_list[number]
        combiner, computed = output.combiner, self._element(member, number)
        if combiner in ("argmin", "argmax", "moments"):
            raise InvalidIR(f"a scan of {combiner} has no code on a gpu", op=self.plan.op)
        if [a.kind for a in member.own] != ["scan"]:
            raise InvalidIR("a scan beside other own axes has no code on a gpu", op=self.plan.op)
        content = convert(b, self.evaluator.yielded(member, number, point), computed)
        content = b.select(dim.mask, b.expand(content, dims),
                           b.constant(identity(combiner, computed), computed))  # fmt: skip
        attributes: dict[str, A.Attribute] = {
            "combiner": A.StringAttr(combiner),
            "dim": A.IntegerAttr(dims.index(dim)),
        }
        scanned = b.make(kernel.KernelScanOp, [content], [(dims, computed)], attributes)[0]
        following = scanned
        if total is not None and combiner == "sort":
            raise InvalidIR("a row that is sorted has to be in one tile", op=self.plan.op)
        if total is not None:
            whole = self._total(output, content, dims, dim, member.points)
            following = combine(b, combiner, total, whole)
            scanned = combine(b, combiner, b.expand(total, dims), scanned)
        (result,) = member.compute.results_of(number)
        element: Any = result.type
        return convert(b, scanned, loop.signless(element.element)), following

    def _total(
        self, output: loop.ResultAttr, content: Tile, dims: tuple[TileDim, ...], dim: TileDim,
        points: Dim,
    ) -> Tile:  # fmt: skip
        """A tile (identities outside) combined as a whole."""
        reduction = Reduction(self.b, output, content.element, dims, dim, points)
        results = reduction.whole(content, content)
        if output.combiner == "logsumexp":
            return self.b.op("arith.addf", results[0], self.b.op("math.log", results[1]))
        return results[0]


__all__ = ["Scans"]
