"""Which memory the arguments of a gpu kernel may share, and which they must."""

from __future__ import annotations

from irc.dialects import kernel, loop
from irc.ir import attributes as A
from irc.ir.symbols import free_symbols, symbol
from irc.passes.kernel.gpu.plan import GpuPlan, Origin, offset_of
from irc.passes.kernel.plan.updates import is_undefined


def set_sharing(func: kernel.KernelFuncOp, plan: GpuPlan) -> None:
    """`inplace` and `initialized`: which memory may, and which must, be shared."""
    shared: list[int] = []
    must: list[int] = []
    first = len(plan.inputs)
    for number, (_, value) in enumerate(plan.outputs):
        origin = plan.origin(value)
        assert origin is not None
        if origin.attr.kind == "scatter":
            init = origin.member.compute.inits[scatter_number(origin)]
            if is_undefined(init):
                continue
            pair = [plan.inputs.index(init), first + number]
            must += pair
            if not any(r.source is init for m in plan.members for r in m.compute.reads):
                shared += pair
    if not must:
        of_rows = any(m.own for m in plan.members)
        shared += _row_sharing(plan, first) if of_rows else _pointwise_sharing(plan, first)
    if shared:
        func.attributes["inplace"] = A.DenseIntsAttr(shared)
    if must:
        func.attributes["initialized"] = A.DenseIntsAttr(must)


def _pointwise_sharing(plan: GpuPlan, first: int) -> list[int]:
    """Pairs of equal type: the input is read where the output is written, and each read of
    it is needed for the output.

    Outputs are stored one after the other, each as soon as it is computed: what only a later
    one reads would be overwritten before.
    """
    pairs: list[int] = []
    if len(plan.members) > 1 or plan.members[0].folded:
        return []
    member = plan.members[0]
    axes = [symbol(n) for n in member.rows]
    for number, (result, value) in enumerate(plan.outputs):
        written = offset_of(axes, result.type)
        origin = plan.origin(value)
        assert origin is not None
        needed = member.needed_for(origin.output)
        for position, array in enumerate(plan.inputs):
            reads = [r for r in member.compute.reads if r.source is array]
            same = all(offset_of(r.indices, array.type) == written for r in reads)
            if same and array.type is result.type and needed.issuperset(reads):
                pairs += [position, first + number]
    return pairs


def _row_sharing(plan: GpuPlan, first: int) -> list[int]:
    """Pairs of equal type among what is computed once for each row, as the running statistics of a
    batch norm are: one member alone reads the input, where it writes the output, which no member
    reads."""
    pairs: list[int] = []
    for number, (result, value) in enumerate(plan.outputs):
        origin = plan.origin(value)
        assert origin is not None
        member = origin.member
        others = [r.source for m in plan.members if m is not member for r in m.compute.reads]
        if origin.attr.kind != "map" or member.own or member.folded or value in others:
            continue
        written = offset_of([symbol(n) for n in member.rows], result.type)
        needed = member.needed_for(origin.output)
        for position, array in enumerate(plan.inputs):
            reads = [r for r in member.compute.reads if r.source is array]
            same = all(offset_of(r.indices, array.type) == written for r in reads)
            alone = bool(reads) and array not in others and needed.issuperset(reads)
            if same and alone and array.type is result.type:
                pairs += [position, first + number]
    return pairs


def placeholders(output: loop.ResultAttr) -> int:
    """How many numbers of a scatter's indices are read from data."""
    assert output.indices is not None
    names = {n for d in output.indices for n in free_symbols(d)}  # type: ignore[arg-type]
    return max((int(n[1:]) for n in names if n[0] == "_" and n[1:].isdigit()), default=-1) + 1


def scatter_number(origin: Origin) -> int:
    """Which of the compute's scatter outputs this is."""
    before = origin.member.compute.output_list[: origin.output]
    return sum(1 for o in before if o.kind == "scatter")


__all__ = ["placeholders", "scatter_number", "set_sharing"]
