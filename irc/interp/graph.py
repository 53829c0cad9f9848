"""The meaning of the graph dialect, by torch's tensor functions on whole tensors."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional

from irc.dialects import aten, graph
from irc.dialects.aten.facts import Fact
from irc.interp import core
from irc.interp.arith import dense_content
from irc.interp.copies import joined
from irc.interp.core import Frame
from irc.interp.host import fresh, resource
from irc.interp.math import philox_bits
from irc.interp.operators import call_operator, results_of
from irc.ir import attributes as A
from irc.ir.core import Operation, Value
from irc.ir.diagnostics import InvalidIR
from irc.ir.types import TensorType

Tensor = torch.Tensor


def interprets(*op_classes: type[Operation]) -> Callable[[core.Handler], core.Handler]:
    """As `irc.interp.core.interprets`, for operations that stand on the layout level too: the
    arrays that they give have the strides of their types."""

    def decorate(handler: core.Handler) -> core.Handler:
        def with_layouts(frame: Frame, op: Operation) -> Any:
            outcome = handler(frame, op)
            if not any(isinstance(r.type, TensorType) and r.type.strides for r in op.results):
                return outcome
            contents = outcome if isinstance(outcome, list | tuple) else [outcome]
            return [_placed(frame, op, c, r) for c, r in zip(contents, op.results, strict=True)]

        core.interprets(*op_classes)(with_layouts)
        return handler

    return decorate


def _placed(frame: Frame, op: Operation, content: Any, result: Value) -> Any:
    """An operation's result with the strides that its type says, once strides are decided."""
    type_ = result.type
    if not isinstance(type_, TensorType) or not type_.strides or 0 in content.shape:
        return content
    strides = frame.dims(type_.strides)
    pairs = zip(content.shape, content.stride(), strides, strict=True)
    if all(size == 1 or stride == other for size, stride, other in pairs):
        return content
    if "view" in op.attributes:
        raise InvalidIR(f"a view with strides {strides} can't be one of its operand", op=op)
    return torch.empty_strided(content.shape, strides, dtype=content.dtype).copy_(content)


def _is_float(x: Tensor) -> bool:
    return x.dtype.is_floating_point


def _shift(function: Callable[..., Tensor], beyond: Callable[[Tensor], Tensor]) -> Any:
    def apply(x: Tensor, y: Tensor) -> Tensor:
        width = x.element_size() * 8
        inside = (y >= 0) & (y < width)
        return torch.where(inside, function(x, torch.where(inside, y, 0)), beyond(x))

    return apply


def _integer_power(x: Tensor, y: Tensor) -> Tensor:
    if _is_float(x):
        return torch.pow(x, y)
    positive = torch.pow(x, y.clamp(min=0)) if x.dtype.is_signed else torch.pow(x, y)
    odd = (y & 1).to(torch.bool)
    of_one = torch.where(x == 1, 1, torch.where(x == -1, torch.where(odd, -1, 1), 0))
    return torch.where(y < 0, of_one.to(x.dtype), positive) if x.dtype.is_signed else positive


POINTWISE: dict[str, Callable[..., Tensor]] = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div,
    "floor_div": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "trunc_div": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "remainder": torch.remainder, "fmod": torch.fmod, "pow": _integer_power,
    "maximum": torch.maximum, "minimum": torch.minimum, "fmax": torch.fmax, "fmin": torch.fmin,
    "atan2": torch.atan2, "copysign": torch.copysign, "nextafter": torch.nextafter,
    "and": torch.bitwise_and, "or": torch.bitwise_or, "xor": torch.bitwise_xor,
    "not": torch.bitwise_not,
    "shl": _shift(torch.bitwise_left_shift, torch.zeros_like),
    "shr": _shift(
        torch.bitwise_right_shift,
        lambda x: torch.where(x < 0, -1, 0).to(x.dtype) if x.dtype.is_signed else x * 0,
    ),
    "isnan": torch.isnan, "isinf": torch.isinf, "signbit": torch.signbit,
    "eq": torch.eq, "ne": torch.ne, "lt": torch.lt, "le": torch.le, "gt": torch.gt,
    "ge": torch.ge,
}  # fmt: skip


@interprets(graph.PointwiseOp)
def pointwise(frame: Frame, op: graph.PointwiseOp) -> Tensor:
    function = POINTWISE.get(op.function) or getattr(torch, op.function)
    return function(*frame.operands(op))


@interprets(graph.Select)
def select(frame: Frame, op: graph.Select) -> Tensor:
    return torch.where(*frame.operands(op))


@interprets(graph.Cast)
def cast(frame: Frame, op: graph.Cast) -> Tensor:
    source = frame[op.x]
    dtype = frame.dtype(op.value.type.element)
    if _is_float(source) and dtype not in (torch.bool,) and not dtype.is_floating_point:
        limit = 2.0**63
        safe = torch.where(source.abs() < limit, source, torch.zeros_like(source))
        return safe.to(dtype) if dtype.is_signed else safe.to(torch.int64).to(dtype)
    return source.to(dtype)


@interprets(graph.Bitcast)
def bitcast(frame: Frame, op: graph.Bitcast) -> Tensor:
    from irc.interp.core import torch_dtype

    source = frame[op.x].to(torch_dtype(op.x.type.element)).contiguous()
    bits = source.view(torch_dtype(op.value.type.element))
    return bits.to(frame.dtype(op.value.type.element))


# -- constants


@interprets(graph.Constant)
def constant(frame: Frame, op: graph.Constant) -> Tensor:
    value = op.attributes["value"]
    if isinstance(value, A.ResourceAttr):
        return resource(frame, value)
    return dense_content(value, op.tensor.type, frame)


@interprets(graph.Full)
def full(frame: Frame, op: graph.Full) -> Tensor:
    type_ = op.tensor.type
    dtype = frame.dtype(type_.element)
    sizes = frame.dims(type_.shape)
    if op.scalar is not None:
        return torch.as_tensor(frame[op.scalar]).to(dtype).expand(sizes).clone()
    value: Any = op.attributes["value"]
    return torch.full(sizes, value.value, dtype=dtype)


@interprets(graph.Iota)
def iota(frame: Frame, op: graph.Iota) -> Tensor:
    type_ = op.tensor.type
    sizes = frame.dims(type_.shape)
    shape = [1] * len(sizes)
    shape[op.dim] = sizes[op.dim]
    positions = torch.arange(sizes[op.dim]).to(frame.dtype(type_.element))
    return positions.reshape(shape).expand(sizes).clone()


@interprets(graph.Philox)
def philox(frame: Frame, op: graph.Philox) -> Tensor:
    place = torch.zeros((), dtype=torch.int64)
    for size, stride in zip(frame.dims(op.bits.type.shape), frame.dims(op.strides), strict=True):
        place = place[..., None] + torch.arange(size) * stride
    turn, lane = place // op.vector, place % op.vector
    threads = frame.dim(op.threads)
    state = frame[op.state].to(torch.int64)
    number = state[1] + op.base + turn // threads * op.numbers + lane
    return philox_bits(state[0], turn % threads, number)


@interprets(graph.Undefined)
def undefined(frame: Frame, op: graph.Undefined) -> Tensor:
    return fresh(frame, op.tensor.type)


# -- another shape


@interprets(graph.Reshape)
def reshape(frame: Frame, op: graph.Reshape) -> Tensor:
    return frame[op.source].reshape(frame.dims(op.view.type.shape))


@interprets(graph.Permute)
def permute(frame: Frame, op: graph.Permute) -> Tensor:
    return frame[op.source].permute(op.permutation)


@interprets(graph.Broadcast)
def broadcast(frame: Frame, op: graph.Broadcast) -> Tensor:
    source = frame[op.source]
    shape = [1] * op.view.type.rank
    for size, dim in zip(source.shape, op.dims, strict=True):
        shape[dim] = size
    return source.reshape(shape).expand(frame.dims(op.view.type.shape))


@interprets(graph.Slice)
def slice_(frame: Frame, op: graph.Slice) -> Tensor:
    start = frame.dim(op.start)
    size = frame.dim(op.view.type.shape[op.dim])
    stop = start + max(size - 1, 0) * op.step + (1 if size else 0)
    index = [slice(None)] * op.source.type.rank
    index[op.dim] = slice(start, stop, op.step)
    return frame[op.source][tuple(index)]


@interprets(graph.Reverse)
def reverse(frame: Frame, op: graph.Reverse) -> Tensor:
    return frame[op.source].flip(op.dims)


@interprets(graph.Window)
def window(frame: Frame, op: graph.Window) -> Tensor:
    source = frame[op.source]
    count, width = frame.dims((op.view.type.shape[op.dim], op.view.type.shape[-1]))
    if count and width and op.step and op.dilation:
        windows = source.unfold(op.dim, (width - 1) * op.dilation + 1, op.step)
        return windows[..., :: op.dilation].narrow(op.dim, 0, count)
    starts = torch.arange(count).unsqueeze(1) * op.step + torch.arange(width) * op.dilation
    moved = source.movedim(op.dim, 0)[starts.reshape(-1)]
    moved = moved.reshape(count, width, *moved.shape[1:])
    return moved.movedim(1, -1).movedim(0, op.dim)


@interprets(graph.Diagonal)
def diagonal(frame: Frame, op: graph.Diagonal) -> Tensor:
    return frame[op.source].diagonal(op.offset, op.dim1, op.dim2)


@interprets(graph.StridedWindow)
def strided_window(frame: Frame, op: graph.StridedWindow) -> Tensor:
    source = frame[op.source].contiguous()
    return source.as_strided(
        frame.dims(op.view.type.shape),
        frame.dims(op.strides),
        source.storage_offset() + frame.dim(op.offset),
    )


@interprets(graph.Concat)
def concat(frame: Frame, op: graph.Concat) -> Tensor:
    return joined(frame.operands(op), op.dim)


@interprets(graph.Pad)
def pad(frame: Frame, op: graph.Pad) -> Tensor:
    amounts: list[int] = []
    for low, high in zip(reversed(op.low), reversed(op.high), strict=True):
        amounts += [frame.dim(low), frame.dim(high)]
    source = frame[op.source]
    value: Any = op.attributes["value"]
    if source.dtype == torch.bool:
        padded = functional.pad(source.to(torch.uint8), amounts, value=int(value.value))
        return padded.to(torch.bool)
    return functional.pad(source, amounts, value=value.value)


@interprets(graph.DiagonalEmbed)
def diagonal_embed(frame: Frame, op: graph.DiagonalEmbed) -> Tensor:
    return torch.diag_embed(frame[op.source], op.offset, op.dim1, op.dim2)


@interprets(graph.Copy)
def copy(frame: Frame, op: graph.Copy) -> Tensor:
    return frame[op.source].clone()


# -- by index


def _checked(op: Any, index: Tensor, dim: int, size: int) -> Tensor:
    wrong = (index < 0) | (index >= size)
    if wrong.any():
        worst = index[wrong].reshape(-1)[0].item()
        raised: type[Exception] = getattr(builtins, op.error)
        raise raised(f"index {worst} is out of bounds for dimension {dim} with size {size}")
    return index.to(torch.int64)


@interprets(graph.Gather)
def gather(frame: Frame, op: graph.Gather) -> Tensor:
    source, index = frame.operands(op)
    index = _checked(op, index, op.dim, source.shape[op.dim] if source.dim() else 1)
    return torch.gather(source, op.dim, index)


def _take_index(
    op: Any, source: Tensor, indices: Sequence[Tensor]
) -> tuple[list[int], tuple[Any, ...]]:
    """The permutation that puts the indexed dimensions first, and the index tensors."""
    rest = [d for d in range(source.dim()) if d not in op.dims]
    checked = tuple(
        _checked(op, i, d, source.shape[d]) for i, d in zip(indices, op.dims, strict=True)
    )
    return [*op.dims, *rest], checked


@interprets(graph.Take)
def take(frame: Frame, op: graph.Take) -> Tensor:
    source = frame[op.source]
    indices = [frame[i] for i in op.indices]
    order, checked = _take_index(op, source, indices)
    taken = source.permute(order)[checked]
    rank = indices[0].dim()
    return taken.movedim(list(range(rank)), list(range(op.position, op.position + rank)))


@interprets(graph.Put)
def put(frame: Frame, op: graph.Put) -> Tensor:
    source, value = frame[op.source].clone(), frame[op.value]
    indices = [frame[i] for i in op.indices]
    order, checked = _take_index(op, source, indices)
    rank = indices[0].dim()
    moved = value.movedim(list(range(op.position, op.position + rank)), list(range(rank)))
    target = source.permute(order)
    linear = torch.arange(target.numel()).reshape(target.shape)[checked].reshape(-1)
    flat = target.reshape(-1).clone()
    _combine_into(flat, linear, moved.reshape(-1), op.combiner)
    inverse = [order.index(d) for d in range(len(order))]
    return flat.reshape(target.shape).permute(inverse).contiguous()


@interprets(graph.Scatter)
def scatter(frame: Frame, op: graph.Scatter) -> Tensor:
    source, index, value = frame.operands(op)
    index = _checked(op, index, op.dim, source.shape[op.dim] if source.dim() else 1)
    place = [torch.arange(n).reshape([-1 if d == k else 1 for k in range(index.dim())])
             for d, n in enumerate(index.shape)]  # fmt: skip
    if place:
        place[op.dim] = index
    numbers = torch.arange(source.numel()).reshape(source.shape)
    linear = numbers[tuple(torch.broadcast_tensors(*place))] if place else numbers.expand(())
    flat = source.reshape(-1).clone()
    _combine_into(flat, linear.reshape(-1), value.reshape(-1), op.combiner)
    return flat.reshape(source.shape)


def _combine_into(flat: Tensor, places: Tensor, values: Tensor, combiner: str) -> None:
    """Combine in order; of several `set` the last one wins."""
    if combiner == "set":
        latest = torch.full((flat.numel(),), -1, dtype=torch.int64)
        latest.scatter_reduce_(0, places, torch.arange(places.numel()), "amax")
        hit = latest >= 0
        flat[hit] = values[latest[hit]]
        return
    names = {"sum": "sum", "prod": "prod", "min": "amin", "max": "amax"}
    if flat.dtype == torch.bool:
        wide = flat.to(torch.int64)
        wide.scatter_reduce_(0, places, values.to(torch.int64), names[combiner])
        flat.copy_(wide.to(torch.bool))
        return
    flat.scatter_reduce_(0, places, values, names[combiner])


# -- combining


@interprets(graph.Reduce)
def reduce(frame: Frame, op: graph.Reduce) -> Tensor:
    from irc.interp.loop import _reduce
    from irc.ir.registry import lookup_attribute

    source = frame[op.source]
    rows, kept, sizes = _rows(source, op.dims)
    result_attr: Any = lookup_attribute("loop.result")
    output = result_attr("reduce", op.combiner, op.source.type.element, None)
    combined = _reduce(output, rows)[0].to(source.dtype).reshape(kept)
    return combined.reshape(sizes) if op.keepdim else combined


def _rows(source: Tensor, dims: Sequence[int]) -> tuple[Tensor, list[int], list[int]]:
    """The tensor as [kept points, reduced points], the kept sizes, and the sizes with ones."""
    kept = [d for d in range(source.dim()) if d not in dims]
    sizes = [source.shape[d] for d in kept]
    count = 1
    for dim in dims:
        count *= source.shape[dim]
    total = 1
    for size in sizes:
        total *= size
    rows = source.permute([*kept, *dims]).reshape(total, count)
    ones = [1 if d in dims else source.shape[d] for d in range(source.dim())]
    return rows, sizes, ones


@interprets(graph.ArgReduce)
def arg_reduce(frame: Frame, op: graph.ArgReduce) -> Tensor:
    from irc.interp.loop import _first_extreme

    rows, kept, sizes = _rows(frame[op.source], op.dims)
    return _first_extreme(rows, op.combiner).reshape(sizes if op.keepdim else kept)


@interprets(graph.Moments)
def moments(frame: Frame, op: graph.Moments) -> list[Tensor]:
    rows, kept, sizes = _rows(frame[op.source], op.dims)
    mean = rows.mean(1)
    deviations = ((rows - mean.unsqueeze(1)) ** 2).sum(1)
    return [m.reshape(sizes if op.keepdim else kept) for m in (mean, deviations)]


@interprets(graph.Scan)
def scan(frame: Frame, op: graph.Scan) -> Tensor:
    source = frame[op.source]
    wide = source if op.accumulator is None else source.to(frame.dtype(op.accumulator))
    if op.combiner == "sum":
        scanned = wide.cumsum(op.dim, dtype=wide.dtype)
    elif op.combiner == "prod":
        scanned = wide.cumprod(op.dim, dtype=wide.dtype)
    elif op.combiner == "logsumexp":
        scanned = wide.logcumsumexp(op.dim)
    elif op.combiner == "sort":
        scanned = wide.sort(op.dim).values
    else:
        scanned = getattr(wide, f"cum{op.combiner}")(op.dim).values
    return scanned.to(source.dtype)


# -- the world outside


@interprets(graph.CallAten)
def call_aten(frame: Frame, op: graph.CallAten) -> list[Any]:
    inputs = _with_strides(frame, op)
    written = tuple(op.written or ())
    for number in written:
        inputs[number] = clone_like(inputs[number])
    content = call_operator(frame, op.callee, op.arguments.as_dict(), inputs)
    plain = results_of(content, len(op.results) - len(written))
    return [*plain, *(inputs[number] for number in written)]


def clone_like(content: Tensor) -> Tensor:
    """A copy, with the same strides where they don't overlap."""
    return torch.clone(content, memory_format=torch.preserve_format)


def _with_strides(frame: Frame, op: graph.CallAten) -> list[Any]:
    """The operands as eager passes them, where that is recorded: with those strides, and first in
    a storage where they are read as elements of another size. From the host level on operands lie
    where the program has put them."""
    inputs = list(frame.operands(op))
    recorded = op.operand_strides
    if recorded is None:
        return inputs
    following = iter(recorded)
    schema = aten.callee_schema(op)
    regroups = schema is not None and Fact.OTHER_ELEMENTS in schema.facts
    for position, operand in enumerate(op.operands):
        if not isinstance(operand.type, TensorType):
            continue
        strides = tuple(frame.dims(next(following)))
        content = inputs[position]
        lies = content.stride() == strides and not (regroups and content.storage_offset())
        if content.numel() and not lies:
            inputs[position] = _copied(content, strides)
    return inputs


def _copied(content: Tensor, strides: Sequence[int]) -> Tensor:
    """A copy with these strides; what has stride 0 is there once."""
    once = content[tuple(slice(None if stride else 1) for stride in strides)]
    copy = torch.empty_strided(once.shape, strides, dtype=content.dtype).copy_(once)
    return copy.expand(content.shape)


@interprets(graph.Item)
def item(frame: Frame, op: graph.Item) -> Tensor:
    source = frame[op.source]
    return (source.all() if op.every else source.reshape(())).to(frame.dtype(op.scalar.type))


@interprets(graph.FromScalar)
def from_scalar(frame: Frame, op: graph.FromScalar) -> Tensor:
    return torch.as_tensor(frame[op.scalar]).to(frame.dtype(op.tensor.type.element))


@interprets(graph.UpdateInput)
def update_input(frame: Frame, op: graph.UpdateInput) -> None:
    # Written when the function returns, so that every reader has seen the old elements.
    frame.state.setdefault("updates", []).append((op.argument, frame[op.value].clone()))


def apply_updates(frame: Frame) -> None:
    """Write the values of `graph.update_input` to the caller's arguments."""
    for argument, value in frame.state.pop("updates", []):
        frame.state["arguments"][argument].copy_(value)


import irc.interp.graph_contraction  # noqa: E402  # its meanings register on import
import irc.interp.graph_packed  # noqa: E402  # as do its
import irc.interp.graph_panels  # noqa: E402, F401  # and its
