"""Stride arithmetic: dense orders, views, and how sizes regroup in a reshape."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from irc.ir.symbols import Dim, Expr, known_nonnegative, value_at
from irc.ir.types import TensorType, contiguous_strides

Dims = Sequence[Dim]
#: What symbols count as where sizes are compared for a decision, whatever their hints.
SYMBOLIC_SIZE = 61


def estimate(dim: Dim) -> int:
    """A size for decisions: symbols count as `SYMBOLIC_SIZE`."""
    if not isinstance(dim, Expr):
        return dim
    known = value_at(dim, SYMBOLIC_SIZE)
    return SYMBOLIC_SIZE if known is None else known


def same_layout(shape: Dims, a: Dims, b: Dims) -> bool:
    """Whether two lists of strides place every element alike (strides of size-1 dimensions don't
    count)."""
    return all(
        x == y or (isinstance(size, int) and size <= 1)
        for size, x, y in zip(shape, a, b, strict=True)
    ) or any(isinstance(size, int) and size == 0 for size in shape)


def is_contiguous(shape: Dims, strides: Dims) -> bool:
    """Whether the strides are row-major without gaps."""
    return same_layout(shape, strides, contiguous_strides(shape))


def channels_last_strides(shape: Dims) -> tuple[Dim, ...]:
    """The strides of sizes (N, C, spatial...) with C the fastest dimension."""
    strides: list[Dim] = [1] * len(shape)
    running: Dim = shape[1]
    for dim in (*range(len(shape) - 1, 1, -1), 0):
        strides[dim] = running
        running = running * shape[dim]
    return tuple(strides)


def dense_like(shape: Dims, operands: Sequence[Dims]) -> tuple[Dim, ...]:
    """Strides without gaps in the order of the operands' strides, as eager PyTorch chooses for
    pointwise results: the first operand that tells two dimensions apart decides; dimensions of
    stride 0 tell nothing."""
    if all(is_contiguous(shape, strides) for strides in operands) or len(shape) < 2:
        return contiguous_strides(shape)
    if len(shape) in (4, 5):
        last = channels_last_strides(shape)
        if all(same_layout(shape, strides, last) for strides in operands):
            return last
    first = tuple(operands[0])
    if all(tuple(strides) == first for strides in operands) and is_dense(shape, first):
        return first
    rank = len(shape)
    fastest_first: list[int] = list(range(rank - 1, -1, -1))
    for i in range(1, rank):
        low = i
        for j in range(i - 1, -1, -1):
            verdict = _order(shape, operands, fastest_first[j], fastest_first[low])
            if verdict > 0:
                fastest_first[j], fastest_first[low] = fastest_first[low], fastest_first[j]
                low = j
            elif verdict < 0:
                break
    strides: list[Dim] = [1] * rank
    running: Dim = 1
    for dim in fastest_first:
        strides[dim] = running
        if not (isinstance(shape[dim], int) and shape[dim] <= 1):  # type: ignore[operator]
            running = running * shape[dim]
    return tuple(strides)


def is_dense(shape: Dims, strides: Dims) -> bool:
    """Whether the elements fill their memory without gaps and without sharing a place."""
    steps = {stride: size for size, stride in zip(shape, strides, strict=True) if size != 1}
    running: Dim = 1
    for _ in range(len(steps)):
        size = steps.pop(running, None)
        if size is None:
            return False
        running = running * size
    return len({d for d, s in enumerate(shape) if s != 1}) == len(
        {s for d, s in zip(shape, strides, strict=True) if d != 1}
    )


def keeps_apart(shape: Dims, strides: Dims) -> bool:
    """Whether no two elements share a place, as far as sizes and strides tell: each stride steps
    over all that the smaller ones reach."""
    pairs = [(t, n) for n, t in zip(shape, strides, strict=True) if n != 1]
    pairs.sort(key=lambda pair: estimate(pair[0]))
    reached: Dim = 1
    for stride, size in pairs:
        if not known_nonnegative(stride - reached, {}):
            return False
        reached = stride * size
    return True


def _order(shape: Dims, operands: Sequence[Dims], a: int, b: int) -> int:
    """Positive when dimension `b` should be the faster one, negative when `a` should stay."""
    for strides in operands:
        x, y = strides[a], strides[b]
        if x == 0 or y == 0:
            continue
        if x != y:
            fast, slow = estimate(x), estimate(y)
            if fast != slow:
                return -1 if fast < slow else 1
        elif estimate(shape[a]) > estimate(shape[b]):
            return 1
    return 0


def ordered_like(shape: Dims, strides: Dims) -> tuple[Dim, ...]:
    """Strides without gaps in the order of `strides`."""
    return dense_like(shape, [strides])


def regroup(source: Dims, target: Dims) -> Iterator[tuple[list[int], list[int]]]:
    """How row-major sizes regroup: pairs of source and target dimensions with equal products,
    as small as can be seen. Dimensions of size 1 belong to no pair."""
    left = [d for d, size in enumerate(source) if size != 1]
    right = [d for d, size in enumerate(target) if size != 1]
    ends: dict[Dim, int] = {}
    running: Dim = 1
    for position, d in enumerate(right):
        running = running * target[d]
        ends.setdefault(running, position + 1)
    running = 1
    first_left = first_right = 0
    for position, d in enumerate(left):
        running = running * source[d]
        end = ends.get(running)
        last = position + 1 == len(left)
        if end is not None and end > first_right and not (last and end != len(right)):
            yield left[first_left : position + 1], right[first_right:end]
            first_left, first_right = position + 1, end
    if first_left < len(left) or first_right < len(right):
        yield left[first_left:], right[first_right:]


def reshape_strides(source: Dims, strides: Dims, target: Dims) -> tuple[Dim, ...] | None:
    """The strides of a view with other sizes, or None where only a copy can give it."""
    if is_contiguous(source, strides):
        return contiguous_strides(target)
    steps: list[Dim] = [1] * len(target)
    for left, right in regroup(source, target):
        for outer, inner in zip(left, left[1:], strict=False):
            if strides[outer] != strides[inner] * source[inner]:
                return None
        running: Dim = strides[left[-1]] if left else 1
        for dim in reversed(right):
            steps[dim] = running
            running = running * target[dim]
    # A dimension of size 1 steps over everything inside it, as eager shows it.
    following: Dim = 1
    for dim in range(len(target) - 1, -1, -1):
        if target[dim] == 1:
            steps[dim] = following
        following = steps[dim] * target[dim]
    return tuple(steps)


def last_element(type_: TensorType) -> int | None:
    """The place of a tensor's last element, -1 for none; None where that isn't known."""
    if type_.strides is None or not all(isinstance(d, int) for d in (*type_.shape, *type_.strides)):
        return None
    if 0 in type_.shape:
        return -1
    return sum((n - 1) * s for n, s in zip(type_.shape, type_.strides, strict=True))  # type: ignore[return-value]


def same_places(type_: TensorType, strides: Sequence[Dim | None]) -> bool:
    """Whether strides place every element as a type's do: those of sizes up to 1 don't count."""
    assert type_.strides is not None
    if len(strides) != type_.rank:
        return False
    return 0 in type_.shape or all(
        have == want or (isinstance(size, int) and size <= 1)
        for size, have, want in zip(type_.shape, type_.strides, strides, strict=True)
    )


def words(dims: Sequence[Dim | None]) -> str:
    """Dims as a message lists them."""
    return f"[{', '.join(map(str, dims))}]"
