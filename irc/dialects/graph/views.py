"""What a view op of the graph level does: to indices, and to strides where it needs no copy."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from irc.dialects.graph import shapes
from irc.ir.core import Operation
from irc.ir.strides import is_contiguous, regroup, reshape_strides
from irc.ir.symbols import Dim, dim_sum, floordiv, mod, simplify
from irc.ir.types import TensorType, contiguous_strides

Dims = Sequence[Dim]
Extents = dict[str, Dim]


def delinearize(linear: Dim, shape: Dims, extents: Extents) -> list[Dim]:
    """The row-major position number `linear` as one index per dimension of `shape`."""
    if 0 in shape:
        return [0] * len(shape)
    indices: list[Dim] = []
    suffix = contiguous_strides(shape)
    for dim, size in enumerate(shape):
        if size == 1:
            indices.append(0)
            continue
        index = floordiv(linear, suffix[dim])
        if dim and any(outer != 1 for outer in shape[:dim]):
            index = mod(index, size)
        indices.append(simplify(index, {}, extents))
    return indices


def linearize(indices: Dims, shape: Dims) -> Dim:
    """The row-major position number of `indices`."""
    strides = contiguous_strides(shape)
    return dim_sum([i * s for i, s in zip(indices, strides, strict=True)])


def _types(op: Operation) -> tuple[TensorType, TensorType]:
    source, result_type = op.operands[0].type, op.results[0].type
    assert isinstance(source, TensorType) and isinstance(result_type, TensorType)
    return source, result_type


# -- indices: where element (i0, i1, ...) of the result is in the source


def _reshape_indices(op: shapes.Reshape, at: Dims, extents: Extents) -> list[Dim]:
    source, result_type = _types(op)
    indices: list[Dim] = [0] * source.rank
    for left, right in regroup(source.shape, result_type.shape):
        linear = linearize([at[d] for d in right], [result_type.shape[d] for d in right])
        parts = delinearize(linear, [source.shape[d] for d in left], extents)
        for dim, part in zip(left, parts, strict=True):
            indices[dim] = part
    return indices


def _permute_indices(op: shapes.Permute, at: Dims, extents: Extents) -> list[Dim]:
    indices: list[Dim] = [0] * len(at)
    for position, dim in enumerate(op.permutation):
        indices[dim] = at[position]
    return indices


def _broadcast_indices(op: shapes.Broadcast, at: Dims, extents: Extents) -> list[Dim]:
    source, _ = _types(op)
    return [0 if size == 1 else at[d] for size, d in zip(source.shape, op.dims, strict=True)]


def _slice_indices(op: shapes.Slice, at: Dims, extents: Extents) -> list[Dim]:
    return [at[d] * op.step + op.start if d == op.dim else at[d] for d in range(len(at))]


def _reverse_indices(op: shapes.Reverse, at: Dims, extents: Extents) -> list[Dim]:
    source, _ = _types(op)
    return [source.shape[d] - 1 - at[d] if d in op.dims else at[d] for d in range(len(at))]


def _window_indices(op: shapes.Window, at: Dims, extents: Extents) -> list[Dim]:
    indices = list(at[:-1])
    indices[op.dim] = at[op.dim] * op.step + at[-1] * op.dilation
    return indices


def _diagonal_indices(op: shapes.Diagonal, at: Dims, extents: Extents) -> list[Dim]:
    source, _ = _types(op)
    rest = iter(at[:-1])
    indices: list[Dim] = []
    for dim in range(source.rank):
        if dim == op.dim1:
            indices.append(at[-1] + max(-op.offset, 0))
        elif dim == op.dim2:
            indices.append(at[-1] + max(op.offset, 0))
        else:
            indices.append(next(rest))
    return indices


def _strided_window_indices(op: shapes.StridedWindow, at: Dims, extents: Extents) -> list[Dim]:
    source, _ = _types(op)
    linear = dim_sum([op.offset, *[i * s for i, s in zip(at, op.strides, strict=True)]])
    return delinearize(linear, source.shape, extents)


INDICES: dict[type[Operation], Callable[..., list[Dim]]] = {
    shapes.Reshape: _reshape_indices,
    shapes.Permute: _permute_indices,
    shapes.Broadcast: _broadcast_indices,
    shapes.Slice: _slice_indices,
    shapes.Reverse: _reverse_indices,
    shapes.Window: _window_indices,
    shapes.Diagonal: _diagonal_indices,
    shapes.StridedWindow: _strided_window_indices,
}


def source_indices(op: Operation, at: Dims, extents: Extents) -> list[Dim]:
    """The source's index of the element of a view op's result at `at` (one Dim per dimension)."""
    return INDICES[type(op)](op, at, extents)


# -- strides: (strides, offset) of the result as a view of the source, None where it can't be one


def view_strides(
    op: Operation, held: TensorType | None = None
) -> tuple[tuple[Dim, ...], Dim] | None:
    """The strides and the offset (in elements, from the source's first element) that make the
    result of a view op a view of its source; None where only a copy can be it.

    held: the type with the strides of the source in memory, if the operand's are not these.
    """
    source, result_type = _types(op)
    strides = (held or source).strides
    assert strides is not None, "strides of the source are not decided"
    if isinstance(op, shapes.Reshape):
        reshaped = reshape_strides(source.shape, strides, result_type.shape)
        return None if reshaped is None else (reshaped, 0)
    if isinstance(op, shapes.Reverse):
        return None
    if isinstance(op, shapes.StridedWindow):
        if not is_contiguous(source.shape, strides):
            return None
        return tuple(op.strides), op.offset
    if isinstance(op, shapes.Permute):
        return tuple(strides[d] for d in op.permutation), 0
    if isinstance(op, shapes.Broadcast):
        spread: list[Dim] = [0] * result_type.rank
        for dim, (size, stride) in zip(op.dims, zip(source.shape, strides, strict=True),
                                       strict=True):  # fmt: skip
            spread[dim] = stride if size == result_type.shape[dim] else 0
        return tuple(spread), 0
    if isinstance(op, shapes.Slice):
        stepped = [s * op.step if d == op.dim else s for d, s in enumerate(strides)]
        return tuple(stepped), op.start * strides[op.dim]
    if isinstance(op, shapes.Window):
        windows = [s * op.step if d == op.dim else s for d, s in enumerate(strides)]
        return (*windows, strides[op.dim] * op.dilation), 0
    assert isinstance(op, shapes.Diagonal)
    rest = [s for d, s in enumerate(strides) if d not in (op.dim1, op.dim2)]
    start = strides[op.dim1] * max(-op.offset, 0) + strides[op.dim2] * max(op.offset, 0)
    return (*rest, strides[op.dim1] + strides[op.dim2]), start
