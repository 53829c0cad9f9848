"""The pass `flatten-concats`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from irc.dialects import graph
from irc.ir.core import Operation, Value
from irc.ir.passes import register_pass
from irc.ir.rewrite.driver import pattern
from irc.ir.rewrite.passes import PatternPass
from irc.ir.symbols import Dim

Stretch = tuple[Value, int, int]


# concat(slice(concat(a, b, c)), d) -> concat(a, b, d), where nothing else reads the inner one
@pattern(graph.Concat, name="graph.flatten_concat", counted="flattened")
def flatten(op: graph.Concat, rw: Any) -> Any:
    passed: set[Operation] = {op}
    pieces = list(pieces_of(op, passed))
    if len(passed) == 1:
        return rw.no_match("no piece is a concatenation along that dimension, for it alone")
    values = [_cut(rw, stretch, op.dim) for stretch in pieces]
    type_ = op.joined.type
    rw.replace(op, rw.builder.value(graph.Concat, values, dim=op.dim, result_types=type_))
    return True


def pieces_of(op: graph.Concat, passed: set[Operation]) -> Iterator[Stretch]:
    """The stretches that a concatenation is put together of, in order. `passed` grows by the
    concatenations that it needs no longer."""
    pending = [(source, 0, _size(source, op.dim)) for source in reversed(op.operands)]
    while pending:
        value, begin, end = pending.pop()
        inner, first = _inner(value, op.dim)
        if inner is None or begin is None or end is None or not _is_alone(inner, passed):
            yield value, begin, end
            continue
        passed.add(inner)
        pending += reversed(list(_within(inner, first + begin, first + end)))


def _size(value: Value, dim: int) -> Any:
    """The size of a value along a dimension; None if it is not known."""
    size: Dim = value.type.shape[dim]  # type: ignore[attr-defined]
    return size if isinstance(size, int) else None


def _inner(value: Value, dim: int) -> tuple[graph.Concat | None, int]:
    """The concatenation along `dim` that a value is a stretch of, and where that begins."""
    maker: Any = value.defining_op
    first = 0
    if _is_stretch(maker, dim):
        first, maker = maker.start, maker.source.defining_op
    if not isinstance(maker, graph.Concat) or maker.dim != dim or "view" in maker.attributes:
        return None, 0
    known = all(_size(source, dim) is not None for source in maker.operands)
    return (maker, first) if known else (None, 0)


def _is_stretch(op: Any, dim: int) -> bool:
    plain = isinstance(op, graph.Slice) and op.dim == dim and op.step == 1
    return plain and isinstance(op.start, int) and "view" not in op.attributes


def _is_alone(inner: graph.Concat, passed: set[Operation]) -> bool:
    """Whether only concatenations that are passed read one, or stretches of it."""
    for user in inner.joined.users:
        readers = user.results[0].users if _is_stretch(user, inner.dim) else (user,)
        if any(reader not in passed for reader in readers):
            return False
    return True


def _within(inner: graph.Concat, begin: int, end: int) -> Iterator[Stretch]:
    """What lies from `begin` to `end` in a concatenation."""
    place = 0
    for source in inner.operands:
        size = _size(source, inner.dim)
        first, last = max(begin - place, 0), min(end - place, size)
        if first < last:
            yield source, first, last
        place += size


def _cut(rw: Any, stretch: Stretch, dim: int) -> Value:
    value, begin, end = stretch
    type_: Any = value.type
    if begin is None or (begin, end) == (0, type_.shape[dim]):
        return value
    type_ = type_.with_shape((*type_.shape[:dim], end - begin, *type_.shape[dim + 1 :]))
    part: Value = rw.builder.value(
        graph.Slice, value, dim=dim, start=begin, step=1, result_types=type_
    )
    return part


@register_pass
class FlattenConcats(PatternPass):
    """Makes one concatenation of those that are put together of stretches of another.

    Slices that are written one after the other are such: each is a concatenation of what was
    before it, of what is written, and of what was behind it. As one it is written once, however
    many slices there are. What something else reads stays: it is computed anyway.

    Before:
        %a = graph.concat %p, %q, %r {dim = 0 : i64} : (tensor<2xf32>, tensor<2xf32>, tensor<4xf32>) -> tensor<8xf32>
        %b = graph.slice %a {dim = 0 : i64, start = #sym<0>, step = 1 : i64} : (tensor<8xf32>) -> tensor<4xf32>
        %y = graph.concat %b, %s {dim = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
    After:
        %y = graph.concat %p, %q, %s {dim = 0 : i64} : (tensor<2xf32>, tensor<2xf32>, tensor<4xf32>) -> tensor<8xf32>
    """  # noqa: E501

    name = "flatten-concats"
    summary = "concatenations of stretches of concatenations become one"
    anchor = "func.func"
    patterns = (flatten,)
    backward = True
