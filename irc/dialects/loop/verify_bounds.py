"""Places that a compute reaches for certain and that are in no array, where sizes are numbers.

An index that is a sum of multiples of axes, whose ranges don't depend on each other, takes its
least and its greatest value at some point: one outside of its array is an error. What is read or
written under a mask, and indices that are data, are not looked at here; a build with
`check_bounds` checks all of them when it runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from irc.dialects.loop.ops import ComputeOp, ReadOp
from irc.ir.symbols import Dim, Expr, affine_parts, evaluate
from irc.ir.types import TensorType

#: Corners of a space at which an index that is no sum of multiples is tried.
CORNERS = 64

# Indices, sizes and axes that passed.
_passed: set[Any] = set()


def verify_read_bounds(op: ReadOp, indices: Sequence[Dim], source: TensorType) -> None:
    """An unmasked read at indices of its compute's axes. Raises InvalidIR."""
    compute: Any = op.parent_op
    if not isinstance(compute, ComputeOp):
        return
    key = (indices, source.shape, compute.attributes["axes"])
    if key not in _passed:
        _verify_indices(op, indices, source, compute)
        _passed.add(key)


def verify_scatter_bounds(op: ComputeOp, indices: Sequence[Dim], array: TensorType) -> None:
    """The places of a scatter without masks. Raises InvalidIR."""
    if not op.yield_op.masks:
        _verify_indices(op, indices, array, op)


def _verify_indices(op: Any, indices: Sequence[Dim], array: TensorType, compute: Any) -> None:
    axes = compute.axis_list
    extents = {a.name: a.extent for a in axes}
    if len(extents) != len(axes) or any(not isinstance(n, int) or n < 1 for n in extents.values()):
        return  # no axes of a compute, or a space that may have no points
    for dim, (index, size) in enumerate(zip(indices, array.shape, strict=True)):
        if not isinstance(size, int):
            continue
        ends = _ends(index, extents)
        if ends is not None and (ends[0] < 0 or ends[1] >= size):
            place = ends[0] if ends[0] < 0 else ends[1]
            op.fail(f"index {dim}, {index}, is {place} at a point of its space; the size is {size}")


def _ends(index: Dim, extents: Mapping[str, Dim]) -> tuple[int, int] | None:
    """Values that an index takes, the least and the greatest found; None where that isn't known."""
    if not isinstance(index, Expr):
        return index, index
    sizes: dict[str, int] = {}
    for name in index.symbols:
        extent = extents.get(name)
        if not isinstance(extent, int):
            return None
        sizes[name] = extent
    parts = affine_parts(index, sizes)
    if parts is not None:
        assert isinstance(parts[1], int)  # the index mentions sized axes alone
        low = high = parts[1]
        for name, step in parts[0].items():
            assert isinstance(step, int)
            reach = step * (sizes[name] - 1)
            low, high = low + min(reach, 0), high + max(reach, 0)
        return low, high
    if 2 ** len(sizes) > CORNERS:
        return None
    values = [
        evaluate(index, dict(zip(sizes, corner, strict=True)))
        for corner in product(*({0, n - 1} for n in sizes.values()))
    ]
    return min(values), max(values)
