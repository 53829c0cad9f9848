"""The meaning of the kernel dialect: one program instance after the other on flat memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import torch

from irc.dialects import kernel
from irc.dialects.kernel.dots import rows_of
from irc.interp.core import Frame, Returned, interprets
from irc.interp.loop import _first_extreme, _scan, _signless, identity
from irc.ir.core import Block
from irc.ir.diagnostics import InvalidIR
from irc.ir.types import IndexType, VectorType


class OutOfBounds(InvalidIR):
    """An operation of a kernel reaches memory that is not its array's."""


@attrs.frozen
class Pointer:
    """The address of element `base` of a flat array."""

    memory: torch.Tensor
    base: int = 0


def pointer_to(content: torch.Tensor) -> Pointer:
    """A pointer to a tensor's first element; it reaches the tensor's whole storage."""
    content = _signless(content) if content.is_contiguous() else _signless_view(content)
    elements = content.untyped_storage().nbytes() // max(content.element_size(), 1)
    flat = content.as_strided((elements,), (1,), 0)
    return Pointer(flat, int(content.storage_offset()))


def pointer_within(content: torch.Tensor) -> Pointer:
    """A pointer to a tensor's first element, which reaches to its last."""
    pointer = pointer_to(content)
    if not content.numel():
        return Pointer(pointer.memory[:0])
    places = zip(content.shape, content.stride(), strict=True)
    end = pointer.base + sum((n - 1) * s for n, s in places) + 1
    return Pointer(pointer.memory[pointer.base : end])


def _signless_view(content: torch.Tensor) -> torch.Tensor:
    from irc.interp.loop import _SIGNED

    signed = _SIGNED.get(content.dtype)
    if signed is None:
        return content
    flat = torch.empty(0, dtype=signed).set_(content.untyped_storage())
    return flat.as_strided(content.shape, content.stride(), content.storage_offset())


def launch(
    frame: Frame, callee: kernel.KernelFuncOp, tensors: Sequence[torch.Tensor], whole: bool = True
) -> None:
    """Run every program instance of a kernel. `tensors`: the pointer arguments in order (inputs,
    then outputs, which are written); symbols come from the frame. Pointers reach the whole of
    their storages, or their tensors alone."""
    grid = frame.dim(callee.grid) if callee.grid is not None else 1
    names = [a.value for a in callee.symbols] if callee.symbols is not None else []
    scalars = [torch.tensor(int(frame.symbols[n])) for n in names]
    pointers: list[Any] = [pointer_to(t) if whole else pointer_within(t) for t in tensors]
    if not callee.is_gpu:
        scalars += [torch.tensor(0), torch.tensor(grid)]
        _run_instance(frame, callee, [*pointers, *scalars], 0)
        return
    for number in range(grid):
        _run_instance(frame, callee, [*pointers, *scalars], number)


def _run_instance(frame: Frame, callee: kernel.KernelFuncOp, args: list[Any], number: int) -> None:
    block = callee.block
    if len(args) != len(block.arguments):
        raise InvalidIR(
            f"the kernel takes {len(block.arguments)} arguments, {len(args)} given", op=callee
        )
    inner = Frame(frame.module, frame.mode, symbols={}, state={**frame.state, "program": number})
    for argument, content in zip(block.arguments, args, strict=True):
        inner[argument] = content
    try:
        inner.run_block(block)
    except Returned:
        return
    raise InvalidIR("the kernel ended without kernel.return", op=callee)


@interprets(kernel.KernelReturnOp)
def return_(frame: Frame, op: kernel.KernelReturnOp) -> None:
    raise Returned([])


@interprets(kernel.KernelYieldOp)
def yield_(frame: Frame, op: kernel.KernelYieldOp) -> list[Any]:
    return frame.operands(op)


def _run_body(frame: Frame, block: Block, contents: Sequence[Any]) -> list[Any]:
    for argument, content in zip(block.arguments, contents, strict=True):
        frame[argument] = content
    yielded = frame.run_block(block)
    return list(yielded or ())


@interprets(kernel.ForOp)
def for_(frame: Frame, op: kernel.ForOp) -> list[Any]:
    lower, upper, step = (int(frame[v]) for v in (op.lower, op.upper, op.step))
    if step <= 0:
        raise InvalidIR(f"the step is {step}", op=op)
    carried = [frame[v] for v in op.initial]
    for position in range(lower, upper, step):
        carried = _run_body(frame, op.block, [torch.tensor(position), *carried])
    return carried


@interprets(kernel.IfOp)
def if_(frame: Frame, op: kernel.IfOp) -> list[Any]:
    region = op.then_body if bool(frame[op.condition]) else op.else_body
    return _run_body(frame, region.blocks[0], []) if region.blocks else []


@interprets(kernel.ProgramIdOp)
def program_id(frame: Frame, op: kernel.ProgramIdOp) -> torch.Tensor:
    return torch.tensor(frame.state["program"])


# -- memory


def _lanes(op: Any, offset: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    if not shape:
        return offset
    return offset + torch.arange(shape[-1])


def _shape_of(type_: Any) -> tuple[int, ...]:
    return type_.shape if isinstance(type_, VectorType) else ()


def _places(
    op: Any, pointer: Pointer, lanes: torch.Tensor, mask: torch.Tensor | None
) -> torch.Tensor:
    places = pointer.base + lanes
    outside = (places < 0) | (places >= pointer.memory.numel())
    if mask is not None:
        outside = outside & mask
    if outside.any():
        raise OutOfBounds(
            f"reaches element {places[outside].reshape(-1)[0].item()} of memory with "
            f"{pointer.memory.numel()} elements",
            op=op,
        )
    return places if mask is None else torch.where(mask, places, 0)


def _load(frame: Frame, op: Any, lanes: torch.Tensor) -> torch.Tensor:
    pointer: Pointer = frame[op.pointer]
    mask = None if op.mask is None else frame[op.mask].to(torch.bool).expand(lanes.shape)
    if mask is not None and not mask.any():
        content = torch.zeros(lanes.shape, dtype=pointer.memory.dtype)
    else:
        content = pointer.memory[_places(op, pointer, lanes, mask)]
    if mask is None:
        return content
    other = frame[op.other] if op.other is not None else torch.zeros((), dtype=content.dtype)
    return torch.where(mask, content, other.to(content.dtype))


@interprets(kernel.LoadOp)
def load(frame: Frame, op: kernel.LoadOp) -> torch.Tensor:
    return _load(frame, op, _lanes(op, frame[op.offset], _shape_of(op.value.type)))


@interprets(kernel.LoadStridedOp)
def load_strided(frame: Frame, op: kernel.LoadStridedOp) -> torch.Tensor:
    first = frame[op.offset]
    return _load(frame, op, first + op.stride * torch.arange(op.value.type.shape[0]))


@interprets(kernel.LoadTileOp)
def load_tile(frame: Frame, op: kernel.LoadTileOp) -> torch.Tensor:
    rows, columns = (
        int(frame[start]) + torch.arange(size)
        for start, size in zip((op.row, op.column), op.value.type.shape, strict=True)
    )
    held = [frame.dim(size) for size in op.sizes]
    inside = (0 <= rows) & (rows < held[0])
    mask = inside[:, None] & ((0 <= columns) & (columns < held[1]))[None, :]
    lanes = rows[:, None] * frame.dim(op.stride) + columns[None, :]
    pointer: Pointer = frame[op.pointer]
    places = _places(op, pointer, lanes, mask)
    if not mask.any():
        return torch.zeros(lanes.shape, dtype=pointer.memory.dtype)
    return torch.where(mask, pointer.memory[places], torch.zeros((), dtype=pointer.memory.dtype))


@interprets(kernel.GatherOp)
def gather(frame: Frame, op: kernel.GatherOp) -> torch.Tensor:
    return _load(frame, op, frame[op.offsets])


def _masked(
    frame: Frame, op: Any, lanes: torch.Tensor, stored: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    stored = stored.expand(lanes.shape).reshape(-1)
    mask = None if op.mask is None else frame[op.mask].to(torch.bool).expand(lanes.shape)
    lanes = lanes.reshape(-1)
    if mask is not None:
        keep = mask.reshape(-1)
        stored, lanes = stored[keep], lanes[keep]
    places = _places(op, frame[op.pointer], lanes, None)
    return places, stored.to(frame[op.pointer].memory.dtype)


@interprets(kernel.PrefetchOp)
def prefetch(frame: Frame, op: kernel.PrefetchOp) -> None:
    """No value changes."""


@interprets(kernel.StoreOp)
def store(frame: Frame, op: kernel.StoreOp) -> None:
    lanes = _lanes(op, frame[op.offset], _shape_of(op.stored.type))
    places, stored = _masked(frame, op, lanes, frame[op.stored])
    frame[op.pointer].memory[places] = stored


@interprets(kernel.ScatterOp)
def scatter(frame: Frame, op: kernel.ScatterOp) -> None:
    places, stored = _masked(frame, op, frame[op.offsets], frame[op.stored])
    memory = frame[op.pointer].memory
    combiners: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
        "set": lambda old, new: new,
        "sum": torch.add,
        "prod": torch.mul,
        "min": torch.minimum,
        "max": torch.maximum,
    }
    combine = combiners[op.combiner]
    for place, value in zip(places.tolist(), stored, strict=True):
        memory[place] = combine(memory[place], value)


@interprets(kernel.CheckOp)
def check(frame: Frame, op: kernel.CheckOp) -> None:
    truth = frame[op.truth].to(torch.bool)
    if op.mask is not None:
        truth = truth | ~frame[op.mask].to(torch.bool)
    if not bool(truth.all()):
        pointer: Pointer = frame[op.pointer]
        pointer.memory[_places(op, pointer, torch.tensor(0), None)] = False


@interprets(kernel.ScratchOp)
def scratch(frame: Frame, op: kernel.ScratchOp) -> Pointer:
    dtype = frame.dtype(op.pointer.type.element)
    memory = torch.zeros(op.count, dtype=dtype)
    if dtype.is_floating_point:
        memory.fill_(float("nan"))  # undefined memory: whoever reads it shows
    return Pointer(memory)


# -- vectors


@interprets(kernel.SplatOp)
def splat(frame: Frame, op: kernel.SplatOp) -> torch.Tensor:
    value = frame[op.scalar]
    if value.dim():
        return value.repeat(op.vector.type.shape[0] // value.numel())  # type: ignore[attr-defined]
    return value.expand(op.vector.type.shape).clone()


@interprets(kernel.IotaOp)
def iota(frame: Frame, op: kernel.IotaOp) -> torch.Tensor:
    type_ = op.vector.type
    dtype = torch.int64 if isinstance(type_.element, IndexType) else frame.dtype(type_.element)
    shape = [1] * len(type_.shape)
    shape[op.dim] = type_.shape[op.dim]
    return torch.arange(type_.shape[op.dim], dtype=dtype).reshape(shape).expand(type_.shape).clone()


@interprets(kernel.ExpandOp)
def expand(frame: Frame, op: kernel.ExpandOp) -> torch.Tensor:
    source = frame[op.source]
    shape = [1] * len(op.expanded.type.shape)
    for dim, size in zip(op.dims, source.shape, strict=True):
        shape[dim] = size
    return source.reshape(shape).expand(op.expanded.type.shape).clone()


@interprets(kernel.TransposeOp)
def transpose(frame: Frame, op: kernel.TransposeOp) -> torch.Tensor:
    content: torch.Tensor = frame[op.source]
    groups = content.reshape(content.shape[0], -1, op.together).transpose(0, 1)
    return groups.reshape(groups.shape[0], -1)


@interprets(kernel.ReduceOp)
def reduce(frame: Frame, op: kernel.ReduceOp) -> list[torch.Tensor]:
    contents = [frame[v] for v in op.sources]
    values = contents[0].movedim(op.dim, -1)
    flat = values.reshape(-1, values.shape[-1])
    shape = values.shape[:-1]
    if op.combiner in ("argmin", "argmax"):
        positions = contents[1].movedim(op.dim, -1).reshape(flat.shape)
        best, place = _extreme_pair(flat, positions, op.combiner)
        return [best.reshape(shape), place.reshape(shape)]
    return [_combine_lanes(op.combiner, flat).reshape(shape)]


def _extreme_pair(
    values: torch.Tensor, positions: torch.Tensor, combiner: str
) -> tuple[torch.Tensor, torch.Tensor]:
    order = torch.argsort(positions, dim=1, stable=True)
    values, positions = values.gather(1, order), positions.gather(1, order)
    hit = _first_extreme(values, combiner).unsqueeze(1)
    return values.gather(1, hit).squeeze(1), positions.gather(1, hit).squeeze(1)


def _combine_lanes(combiner: str, flat: torch.Tensor) -> torch.Tensor:
    if flat.dtype == torch.bool:
        if combiner in ("any", "max", "sum"):
            return flat.any(1)
        if combiner in ("all", "min", "prod"):
            return flat.all(1)
        return (flat.sum(1) % 2).to(torch.bool)
    if combiner == "sum":
        return flat.sum(1, dtype=flat.dtype)
    if combiner == "prod":
        return flat.prod(1, dtype=flat.dtype)
    if combiner == "min":
        return flat.amin(1)
    if combiner == "max":
        return flat.amax(1)
    total = torch.full((flat.shape[0],), identity(combiner, flat.dtype), dtype=flat.dtype)
    combine = {"xor": torch.bitwise_xor, "any": torch.bitwise_or, "all": torch.bitwise_and}
    for column in range(flat.shape[1]):
        total = combine[combiner](total, flat[:, column])
    return total


@interprets(kernel.DotOp)
def dot(frame: Frame, op: kernel.DotOp) -> torch.Tensor:
    total, left, right = frame[op.accumulator], frame[op.left], frame[op.right]
    if op.precision in ("bf16x1", "bf16x5"):
        (a1, a2, a3), (b1, b2, b3) = _parts(left), _parts(right)
        if op.precision == "bf16x1":
            return total + a1 @ b1
        return total + (a3 @ b1 + a1 @ b3 + a2 @ b2 + a2 @ b1 + a1 @ b2)
    return total + left.to(total.dtype) @ right.to(total.dtype)


def _parts(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Three numbers of 8 bits each that are f32 `x`: the first one cut off, the others near."""
    first = torch.where(x.isnan(), x, (x.contiguous().view(torch.int32) & -65536).view(x.dtype))
    second = (x - first).bfloat16().float()
    return first, second, (x - first - second).bfloat16().float()


@interprets(kernel.DotRowsOp)
def dot_rows(frame: Frame, op: kernel.DotRowsOp) -> None:
    dot = rows_of(op.left.type.element)  # type: ignore[attr-defined]
    assert dot is not None
    columns, terms = torch.arange(op.columns), torch.arange(int(frame[op.depth]))
    (height, width, length), count = dot.tile, int(frame[op.rows])
    rows = torch.arange(count)[:, None]
    lines = frame[op.left_offset] + rows * frame[op.left_step] + terms
    if op.in_tiles:
        lines = frame[op.left_offset] + rows // height * frame[op.left_step]
        lines = lines + terms // length * (height * length) + rows % height * length
        lines = lines + terms % length
    groups = (terms // dot.group * width)[:, None] + columns % width
    panel = frame[op.right_offset] + groups * dot.group + (terms % dot.group)[:, None]
    panel = panel + columns // width * frame[op.right_step]
    sums: Pointer = frame[op.sums]
    apart = [int(frame[value]) for value in op.apart] or [0, 0]
    left, right = (
        [
            pointer.memory[_places(op, pointer, places + part * step, None)].to(sums.memory.dtype)
            for part in range(op.parts)
        ]
        for pointer, places, step in (
            (frame[op.left], lines, apart[0]), (frame[op.right], panel, apart[1])
        )
    )  # fmt: skip
    for region in op.beside:
        for term in range(0, len(terms), length):
            _run_body(frame, region.blocks[0], [torch.tensor(term)])
    places = _places(op, sums, torch.arange(count * op.columns), None)
    total = left[0] @ right[0]
    rest = [left[i] @ right[j] for i in range(op.parts) for j in range(op.parts - i) if i or j]
    exact = sum(rest, total)
    sums.memory[places] = torch.where(exact.isfinite(), exact, total).reshape(-1)


@interprets(kernel.DotLanesOp)
def dot_lanes(frame: Frame, op: kernel.DotLanesOp) -> torch.Tensor:
    total = frame[op.accumulator]
    left, right = (frame[v].reshape(total.numel(), -1) for v in (op.left, op.right))
    left = left.to(total.dtype)
    if op.unsigned_left:
        left = left % (1 << op.left.type.element.width)  # type: ignore[attr-defined]
    return total + (left * right.to(total.dtype)).sum(1, dtype=total.dtype)


@interprets(kernel.InterleaveOp)
def interleave(frame: Frame, op: kernel.InterleaveOp) -> torch.Tensor:
    return torch.stack([frame[v] for v in op.sources], 1).reshape(-1)


@interprets(kernel.KernelScanOp)
def scan(frame: Frame, op: kernel.KernelScanOp) -> list[torch.Tensor]:
    values = frame[op.sources[0]].movedim(op.dim, -1)
    scanned = _scan(op.combiner, values.reshape(-1, values.shape[-1])).reshape(values.shape)
    return [scanned.movedim(-1, op.dim)]


@interprets(kernel.ExtractOp)
def extract(frame: Frame, op: kernel.ExtractOp) -> torch.Tensor:
    return frame[op.vector][int(frame[op.lane])]


@interprets(kernel.InsertOp)
def insert(frame: Frame, op: kernel.InsertOp) -> torch.Tensor:
    content = frame[op.vector].clone()
    content[int(frame[op.lane])] = frame[op.scalar]
    return content
