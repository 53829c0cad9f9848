"""The meaning of the loop dialect: whole spaces at once, in chunks of points.

The body of a compute is executed with every axis as a tensor of coordinates: the axes that are
not combined (rows) along the first dimension, the red or scan axes along the second. So a scalar
of the body is a tensor that broadcasts to [rows, points].
"""

from __future__ import annotations

import math
from typing import Any

import torch

from irc.dialects import loop
from irc.interp.core import Frame, interprets
from irc.ir.diagnostics import InvalidIR
from irc.ir.symbols import Dim, evaluate_with
from irc.ir.types import TensorType, Type

CHUNK_POINTS = 65_536

INDEX_OPERATIONS: dict[str, Any] = {
    "add": lambda *a: _fold(torch.add, a),
    "mul": lambda *a: _fold(torch.mul, a),
    "floordiv": lambda a, b: torch.div(_t(a), _t(b), rounding_mode="floor"),
    "mod": lambda a, b: torch.remainder(_t(a), _t(b)),
    "ceildiv": lambda a, b: -torch.div(-_t(a), _t(b), rounding_mode="floor"),
    "min": lambda *a: _fold(torch.minimum, a),
    "max": lambda *a: _fold(torch.maximum, a),
}


def _t(x: Any) -> torch.Tensor:
    return x if isinstance(x, torch.Tensor) else torch.tensor(x)


def _fold(function: Any, values: Any) -> torch.Tensor:
    total = _t(values[0])
    for value in values[1:]:
        total = function(total, _t(value))
    return total


def index_value(frame: Frame, dim: Dim, positions: list[Any]) -> torch.Tensor:
    """An index expression over the axes in scope, the symbols and placeholders, as a tensor."""
    if isinstance(dim, int):
        return torch.tensor(dim)
    env = dict(frame.symbols)
    for number, content in enumerate(positions):
        env[loop.placeholder(number)] = content.to(torch.int64)
    return _t(evaluate_with(dim, env, INDEX_OPERATIONS))


class _PointSpace:
    """The points of a compute: rows (axes that stay apart) by points (red or scan axes)."""

    def __init__(self, frame: Frame, op: loop.ComputeOp) -> None:
        axes = op.axis_list
        self.row_axes = [a for a in axes if a.kind == "par"]
        self.point_axes = [a for a in axes if a.kind != "par"]
        #: Axes of which there is one point at a time.
        self.steps = {a.name: frame.symbols[a.name] for a in axes if a.name in frame.symbols}
        self.row_extents = [1 if a.name in self.steps else frame.dim(a.extent)
                            for a in self.row_axes]  # fmt: skip
        self.point_extents = [frame.dim(a.extent) for a in self.point_axes]
        self.rows = math.prod(self.row_extents)
        self.points = math.prod(self.point_extents)
        # A map or scan result has the axes in declared order; ours are rows, then points.
        order = [*self.row_axes, *self.point_axes]
        self.to_declared = [order.index(a) for a in axes]

    def coordinates(self, first: int, last: int) -> dict[str, torch.Tensor]:
        """Axis coordinates for the rows first..last-1."""
        env: dict[str, torch.Tensor] = {}
        rows = torch.arange(first, last).unsqueeze(1)
        for axis, extent in reversed(list(zip(self.row_axes, self.row_extents, strict=True))):
            env[axis.name] = rows % max(extent, 1)
            rows = rows // max(extent, 1)
        points = torch.arange(self.points).unsqueeze(0)
        for axis, extent in reversed(list(zip(self.point_axes, self.point_extents, strict=True))):
            env[axis.name] = points % max(extent, 1)
            points = points // max(extent, 1)
        for name, step in self.steps.items():
            env[name] = env[name] + step
        return env


@interprets(loop.ComputeOp)
def compute(frame: Frame, op: loop.ComputeOp) -> list[torch.Tensor]:
    space = _PointSpace(frame, op)
    outputs = op.output_list
    scatters = _scatter_targets(frame, op)
    collected: list[list[Any]] = [[] for _ in outputs]
    rows_at_once = max(1, CHUNK_POINTS // max(1, space.points))
    if any(o.kind == "scatter" for o in outputs):
        rows_at_once = max(1, space.rows)  # the points combine in the declared order
    for first in range(0, max(space.rows, 1), rows_at_once):
        last = min(first + rows_at_once, space.rows)
        inner = frame.nested()
        inner.symbols.update(space.coordinates(first, last))
        yielded = inner.run_block(op.block)
        assert yielded is not None
        values, extra, masks = yielded
        shape = (last - first, space.points)
        extra_at = mask_at = 0
        for number, output in enumerate(outputs):
            content = values[number].expand(shape)
            if output.kind == "scatter":
                mask = masks[mask_at].expand(shape) if masks else None
                _scatter(inner, space, output, scatters[mask_at], content, extra[extra_at:], mask)
                extra_at += _placeholder_count(output)
                mask_at += 1
            else:
                collected[number].append(_combine(frame, op, output, content))
    return _assemble(frame, op, space, collected, scatters)


@interprets(loop.GroupOp)
def group(frame: Frame, op: loop.GroupOp) -> list[Any]:
    if op.carried:
        return _walk(frame, op)
    inner = frame.nested()
    yielded = inner.run_block(op.block)
    assert yielded is not None
    return list(yielded[0])


def _walk(frame: Frame, op: loop.GroupOp) -> list[Any]:
    """What a group carries along its last axis: where a point of the others has no step left,
    what it had before."""
    carried, (*outer, axis) = op.carried, op.axis_list
    contents = [frame[each.init] for each in carried]
    for step in range(frame.dim(axis.extent)):
        inner = frame.nested()
        inner.symbols[axis.name] = step
        for each, content in zip(carried, contents, strict=True):
            inner[each.argument] = content
        yielded = inner.run_block(op.block)
        assert yielded is not None
        following = [content.select(len(outer), step) for content in yielded[0]]
        if op.limit is not None:
            goes_on = frame[op.limit] > step
            following = [
                torch.where(goes_on[(..., *[None] * (after.dim() - len(outer)))], after, before)
                for after, before in zip(following, contents, strict=True)
            ]
        contents = following
    return contents


@interprets(loop.YieldOp)
def yield_(frame: Frame, op: loop.YieldOp) -> tuple[list[Any], list[Any], list[Any]]:
    return (
        [frame[v] for v in op.values],
        [frame[v] for v in op.extra],
        [frame[v] for v in op.masks],
    )


@interprets(loop.IndexOp)
def index(frame: Frame, op: loop.IndexOp) -> torch.Tensor:
    return index_value(frame, op.expression, [frame[p] for p in op.positions])


@interprets(loop.ReadOp)
def read(frame: Frame, op: loop.ReadOp) -> torch.Tensor:
    source = frame[op.source]
    if _without_points(frame):
        return _signless(source).new_zeros(())
    positions = [frame[p] for p in op.positions]
    indices = [index_value(frame, d, positions) for d in op.indices]
    mask = None if op.mask is None else frame[op.mask].to(torch.bool)
    if mask is not None:
        indices = [torch.where(mask, i, 0) for i in indices]
    for dim, position in enumerate(indices):
        size = source.shape[dim]
        outside = (position < 0) | (position >= size)
        if mask is not None:
            outside = outside & mask
        if outside.any():
            worst = position.expand(outside.shape)[outside][0].item()
            raise InvalidIR(
                f"reads position {worst} of dimension {dim}, which has size {size}", op=op
            )
    source = _signless(source)
    if mask is None:
        return source[tuple(indices)] if indices else source
    other = torch.zeros(()) if op.other is None else frame[op.other]
    other = other.to(source.dtype)
    if source.numel() == 0:
        return other.expand(mask.shape)
    return torch.where(mask, source[tuple(indices)], other)


def _without_points(frame: Frame) -> bool:
    """Whether the space that a body is run for is empty, so that no read in it takes place."""
    return any(isinstance(at, torch.Tensor) and not at.numel() for at in frame.symbols.values())


_SIGNED = {
    torch.uint8: torch.int8,
    torch.uint16: torch.int16,
    torch.uint32: torch.int32,
    torch.uint64: torch.int64,
}


def _signless(content: torch.Tensor) -> torch.Tensor:
    signed = _SIGNED.get(content.dtype)
    return content if signed is None else content.view(signed)


def stored(frame: Frame, content: torch.Tensor, element: Type) -> torch.Tensor:
    """A signless value as an array's elements."""
    dtype = frame.dtype(element)
    signed = _SIGNED.get(dtype)
    if signed is not None and content.dtype == signed:
        return content.contiguous().view(dtype)
    return content.to(dtype)


# -- combining


def accumulator_dtype(frame: Frame, output: loop.ResultAttr) -> torch.dtype | None:
    """The dtype in which a reduce or scan combines."""
    return None if output.accumulator is None else frame.dtype(output.accumulator)


def _combine(frame: Frame, op: loop.ComputeOp, output: loop.ResultAttr, content: Any) -> Any:
    if output.kind == "map":
        return [content]
    dtype = accumulator_dtype(frame, output)
    if output.kind == "scan":
        return [_scan(output.combiner, content if dtype is None else content.to(dtype))]
    return _reduce(output, content if dtype is None else content.to(dtype))


def identity(combiner: str, dtype: torch.dtype) -> Any:
    """The value that changes nothing when combined."""
    if combiner in ("sum", "xor", "any"):
        return 0
    if combiner in ("prod", "all"):
        return 1
    info = torch.finfo(dtype) if dtype.is_floating_point else None
    if dtype == torch.bool:
        return combiner == "min"
    if info is not None:
        return math.inf if combiner == "min" else -math.inf
    limits = torch.iinfo(dtype)
    return limits.max if combiner == "min" else limits.min


def _reduce(output: loop.ResultAttr, content: torch.Tensor) -> list[torch.Tensor]:
    combiner, dtype = output.combiner, content.dtype
    rows = content.shape[0]
    if combiner == "moments":
        mean = content.sum(1) / content.shape[1] if content.shape[1] else content.new_full(
            (rows,), math.nan
        )
        return [mean, ((content - mean.unsqueeze(1)) ** 2).sum(1)]
    if content.shape[1] == 0:
        if combiner == "logsumexp":
            return [torch.full((rows,), -math.inf, dtype=dtype), torch.zeros(rows, dtype=dtype)]
        return [torch.full((rows,), identity(combiner, dtype), dtype=dtype)]
    if combiner == "logsumexp":
        maximum = content.amax(1)
        shift = torch.where(maximum.isinf(), torch.zeros_like(maximum), maximum)
        return [maximum, torch.exp(content - shift.unsqueeze(1)).sum(1)]
    if combiner in ("argmin", "argmax"):
        return [_first_extreme(content, combiner)]
    if combiner == "sum":
        return [content.sum(1, dtype=dtype)]
    if combiner == "prod":
        return [content.prod(1, dtype=dtype)]
    if combiner in ("min", "max"):
        return [content.amin(1) if combiner == "min" else content.amax(1)]
    if combiner in ("any", "all"):
        flags = content.to(torch.bool)
        return [(flags.any(1) if combiner == "any" else flags.all(1)).to(dtype)]
    total = content[:, 0].clone()
    for column in range(1, content.shape[1]):
        total ^= content[:, column]
    return [total]


def _first_extreme(content: torch.Tensor, combiner: str) -> torch.Tensor:
    if content.dtype == torch.bool:
        content = content.to(torch.int8)
    best = content.amin(1, keepdim=True) if combiner == "argmin" else content.amax(1, keepdim=True)
    hit = (content == best) | (content != content)
    points = torch.arange(content.shape[1]).expand(content.shape)
    return torch.where(hit, points, content.shape[1]).amin(1)


def _scan(combiner: str, content: torch.Tensor) -> torch.Tensor:
    if combiner == "sum":
        return torch.cumsum(content, 1, dtype=content.dtype)
    if combiner == "prod":
        return torch.cumprod(content, 1, dtype=content.dtype)
    if combiner in ("min", "max"):
        scan = torch.cummin if combiner == "min" else torch.cummax
        return scan(content, 1).values
    if combiner in ("any", "all"):
        flags = content.to(torch.int8)
        scan = torch.cummax if combiner == "any" else torch.cummin
        return scan(flags, 1).values.to(content.dtype)
    if combiner == "sort":
        return content.sort(1).values
    result = content.clone()
    for column in range(1, content.shape[1]):
        if combiner == "logsumexp":
            result[:, column] = torch.logaddexp(result[:, column - 1], result[:, column])
        else:
            result[:, column] ^= result[:, column - 1]
    return result


# -- scatter


def _placeholder_count(output: loop.ResultAttr) -> int:
    names = {n for d in output.index_dims for n in _names(d)}
    numbers = [int(n[1:]) for n in names if n.startswith("_") and n[1:].isdigit()]
    return max(numbers, default=-1) + 1


def _names(dim: Dim) -> frozenset[str]:
    return frozenset() if isinstance(dim, int) else dim.symbols


def _scatter_targets(frame: Frame, op: loop.ComputeOp) -> list[torch.Tensor]:
    return [frame[v].clone() for v in op.inits]


def _scatter(
    frame: Frame,
    space: _PointSpace,
    output: loop.ResultAttr,
    target: torch.Tensor,
    content: torch.Tensor,
    extra: list[Any],
    mask: torch.Tensor | None,
) -> None:
    shape = content.shape
    extents = [*space.row_extents, *space.point_extents]

    def flat(x: torch.Tensor) -> torch.Tensor:
        return x.expand(shape).reshape(extents).permute(space.to_declared).reshape(-1)

    places = [flat(index_value(frame, d, extra)) for d in output.index_dims]
    linear = torch.zeros(math.prod(extents), dtype=torch.int64)
    values = flat(content)
    keep = None if mask is None else flat(mask.to(torch.bool))
    if keep is not None:
        linear, values = linear[keep], values[keep]
        places = [p[keep] for p in places]
    for size, place in zip(target.shape, places, strict=True):
        if ((place < 0) | (place >= size)).any():
            raise InvalidIR(f"scatters outside an array of sizes {list(target.shape)}")
        linear = linear * size + place
    memory = target.reshape(-1)
    values = stored(frame, values, _element(target)) if values.dtype != target.dtype else values
    if output.combiner == "set":
        # The last point that names a place wins.
        latest = torch.full((memory.numel(),), -1, dtype=torch.int64)
        order = torch.arange(linear.numel())
        latest.scatter_reduce_(0, linear, order, "amax")
        hit = latest >= 0
        memory[hit] = values[latest[hit]]
    else:
        names = {"sum": "sum", "prod": "prod", "min": "amin", "max": "amax"}
        memory.scatter_reduce_(0, linear, values, names[output.combiner])
    target.copy_(memory.reshape(target.shape))


def _element(target: torch.Tensor) -> Type:
    from irc.interp.core import element_of

    return element_of(target.dtype)


# -- results


def _assemble(
    frame: Frame,
    op: loop.ComputeOp,
    space: _PointSpace,
    collected: list[list[Any]],
    scatters: list[torch.Tensor],
) -> list[torch.Tensor]:
    results: list[torch.Tensor] = []
    scatter_at = 0
    extents = [*space.row_extents, *space.point_extents]
    for number, output in enumerate(op.output_list):
        if output.kind == "scatter":
            results.append(scatters[scatter_at])
            scatter_at += 1
            continue
        for part in range(output.result_count):
            whole = torch.cat([chunk[part] for chunk in collected[number]])
            if output.kind == "reduce":
                whole = whole.reshape(space.row_extents)
            else:
                whole = whole.reshape(extents).permute(space.to_declared)
            result_type = op.results[len(results)].type
            assert isinstance(result_type, TensorType)
            if space.steps:  # the other steps are not read
                whole = stored(frame, whole, result_type.element)
                results.append(whole.expand(frame.dims(result_type.shape)))
                continue
            results.append(place(frame, whole, result_type))
    return results


def place(frame: Frame, content: torch.Tensor, type_: TensorType) -> torch.Tensor:
    """`content` as an array with the sizes, strides and element of `type_`."""
    element = stored(frame, content, type_.element)
    sizes = frame.dims(type_.shape)
    if list(element.shape) != sizes:
        raise InvalidIR(f"an array of sizes {list(element.shape)} is computed for {type_}")
    if type_.strides is None:
        return element.contiguous()
    memory = torch.empty_strided(sizes, frame.dims(type_.strides), dtype=element.dtype)
    memory.copy_(element)
    return memory


