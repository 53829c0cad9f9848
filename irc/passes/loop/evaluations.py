"""How often, and along which axes, a compute evaluates a map that is inlined into it."""

from __future__ import annotations

from irc.analysis.contraction import times_evaluated
from irc.analysis.loop import estimate, is_unit, points
from irc.dialects import loop
from irc.ir.symbols import Dim, Expr, free_symbols
from irc.ir.types import TensorType, element_bytes
from irc.target import Target


def reads_across(read: loop.ReadOp, op: loop.ComputeOp, as_stored: bool = False) -> bool:
    """Whether the elements of an array that the points along the innermost axis read lie apart.
    `as_stored`: kernels walk along the axis in which the map's elements are adjacent."""
    type_ = read.source.type
    assert isinstance(type_, TensorType)
    if not op.axis_list or type_.strides is None:
        return False
    name = op.axis_list[adjacent_axis(op) if as_stored else -1].name
    apart = False
    for index, stride, size in zip(read.indices, type_.strides, type_.shape, strict=True):
        if name in free_symbols(index):
            if stride == 1 and size != 1:
                return False
            apart = True
    return apart


def run_bytes(read: loop.ReadOp) -> int:
    """The bytes that lie side by side along one dimension of the array that is read."""
    type_ = read.source.type
    assert isinstance(type_, TensorType)
    size, pairs = element_bytes(type_.element), zip(type_.shape, type_.strides or (), strict=False)
    return max((size * estimate(n) for n, step in pairs if step == 1), default=size)


def adjacent_axis(op: loop.ComputeOp) -> int:
    """The axis along which a map's elements are adjacent in its array; the last, if none is."""
    array = op.results[0].type
    assert isinstance(array, TensorType)
    pairs = enumerate(zip(array.shape, array.strides or (), strict=False))
    adjacent = [dim for dim, (size, stride) in pairs if stride == 1 and size != 1]
    return adjacent[-1] if adjacent and len(op.axis_list) == array.rank else -1


def repeated_axes(read: loop.ReadOp, producer: loop.ComputeOp) -> set[str]:
    """The axes of what is read along which the reader evaluates points again, as windows that
    overlap do; all of them where it repeats whole arrays."""
    compute = read.parent_op
    assert isinstance(compute, loop.ComputeOp)
    axes = {a.name for a in compute.axis_list if not is_unit(a.extent)}
    mentioned = [free_symbols(dim) & axes for dim in read.indices]
    if read.positions or axes - set().union(*mentioned):
        return {a.name for a in producer.axis_list}
    pairs = zip(producer.axis_list, mentioned, strict=True)
    return {a.name for a, names in pairs if len(names) > 1}


def evaluated_points(read: loop.ReadOp, target: Target) -> int:
    """How often a reader evaluates what stands at `read`: its points, without the innermost axes
    that the read doesn't depend on. Factors of tiles are evaluated for each tile."""
    compute = read.parent_op
    assert isinstance(compute, loop.ComputeOp)
    times = times_evaluated(read, target)
    if times is not None:
        return times
    names: set[str] = set()
    for dim in read.indices:
        names |= free_symbols(dim)
    if read.positions or read.mask is not None:
        return points(a.extent for a in compute.axis_list)
    extents: list[Dim] = [a.extent for a in compute.axis_list]
    used = [k for k, a in enumerate(compute.axis_list) if a.name in names]
    last = used[-1] + 1 if used else 0
    return points(extents[:last])


def depth_of(op: loop.ComputeOp) -> set[str]:
    """The axes that a contraction sums over."""
    return {a.name for a in op.axis_list if a.kind == "red"}


def is_quotient(dim: Dim) -> bool:
    """Whether an index has quotients or remainders."""
    return isinstance(dim, Expr) and not dim.polynomial


__all__ = [
    "adjacent_axis", "depth_of", "evaluated_points", "is_quotient", "reads_across",
    "repeated_axes", "run_bytes",
]  # fmt: skip
