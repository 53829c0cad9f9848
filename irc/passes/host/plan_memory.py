"""The pass `plan-memory`: where intermediate arrays lie in the arena of a call."""

from __future__ import annotations

import attrs

from irc.dialects import aten, host, sym
from irc.ir import attributes as A
from irc.ir.core import Operation, Value
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.symbols import Dim, ceildiv, dim_product, free_symbols
from irc.ir.types import TensorType, contiguous_strides, element_bytes
from irc.passes.host.bufferize import storage_root

ALIGNMENT = 64  # bytes: a cache line, and an AVX-512 register


@register_pass
class PlanMemory(Pass):
    """Places allocations that don't escape in one arena, by their lifetimes.

    Sizes known when compiling are placed by greedy best fit, largest first, so that arrays whose
    lifetimes overlap never do in memory. Symbolic sizes come after them, in slots that are used
    again for an equal expression. A size that is only known after the program has begun
    (data-dependent) stays an allocation of its own.

    Before:
        %t = host.alloc : tensor<[64] x f32, strides [1]>
    After:
        %t = host.alloc {offset = #sym<0>} : tensor<[64] x f32, strides [1]>
    """

    name = "plan-memory"
    summary = "place intermediate arrays in one arena by their lifetimes"
    anchor = "host.func"

    def run(self, op: Operation, context: PassContext) -> None:
        assert isinstance(op, host.FuncOp)
        buffers = lifetimes(op)
        entry = symbols_at_entry(op)
        static = [b for b in buffers if isinstance(b.bytes, int)]
        symbolic = [
            b for b in buffers if not isinstance(b.bytes, int) and free_symbols(b.bytes) <= entry
        ]
        end = place_static(static)
        total = place_symbolic(symbolic, end)
        for buffer in (*static, *symbolic):
            buffer.alloc.attributes["offset"] = A.DimAttr(buffer.offset)
        context.count("arrays in the arena", len(static) + len(symbolic))
        if isinstance(total, int):
            context.count("arena bytes", total)
        context.count("bytes without sharing", sum(b.bytes for b in static))  # type: ignore[misc]


@attrs.define(eq=False)
class Buffer:
    """An allocation, its size in bytes, and the first and last operation that touch it."""

    alloc: host.AllocOp
    bytes: Dim
    first: int
    last: int
    offset: Dim = 0

    def overlaps(self, other: Buffer) -> bool:
        """Whether both are alive at once."""
        return self.first <= other.last and other.first <= self.last


def storage_bytes(type_: TensorType) -> Dim:
    """The bytes from the first to behind the last element, a multiple of ALIGNMENT."""
    strides = type_.strides or contiguous_strides(type_.shape)
    elements: Dim = dim_product(type_.shape)
    order = sorted(range(type_.rank), key=lambda d: _rank_of_stride(strides[d]), reverse=True)
    dense = contiguous_strides([type_.shape[d] for d in order])
    if any(
        strides[d] != dense[k] and type_.shape[d] != 1 for k, d in enumerate(order)
    ):
        reach: Dim = 1
        for size, stride in zip(type_.shape, strides, strict=True):
            reach = reach + (size - 1) * stride
        elements = elements if elements == 0 else reach
    return ceildiv(elements * element_bytes(type_.element), ALIGNMENT) * ALIGNMENT


def _rank_of_stride(stride: Dim) -> tuple[int, int]:
    if isinstance(stride, int):
        return (0, stride)
    return (1, len(str(stride)))


def lifetimes(function: host.FuncOp) -> list[Buffer]:
    """Every allocation that does not escape, with its lifetime."""
    found: dict[Value, Buffer] = {}
    for number, op in enumerate(function.block.ops):
        if isinstance(op, host.AllocOp) and not op.escapes:
            type_ = op.memory.type
            found[op.results[0]] = Buffer(op, storage_bytes(type_), number, number)
        for operand in op._operands:
            buffer = found.get(storage_root(operand))
            if buffer is not None:
                buffer.last = number
        if isinstance(op, host.CallAtenOp) and aten.schema_of(op).returns_alias:
            _keep_sources(function, op, found)
    return list(found.values())


def _keep_sources(function: host.FuncOp, op: host.CallAtenOp, found: dict[Value, Buffer]) -> None:
    """Results that may share any operand's memory keep it for as long as they are used."""
    end = sum(1 for _ in function.block.ops)
    for operand in op._operands:
        buffer = found.get(storage_root(operand))
        if buffer is not None:
            buffer.last = end


def symbols_at_entry(function: host.FuncOp) -> frozenset[str]:
    """The symbols that the arguments bind."""
    arguments = set(function.block.arguments)
    names = set()
    for op in function.block.ops:
        if isinstance(op, sym.BindOp | sym.BindSizeOp) and op.source in arguments:
            names.add(op.symbol)
    return frozenset(names)


def place_static(buffers: list[Buffer]) -> int:
    """Give each buffer an offset, largest first into the tightest gap; gives the arena's end."""
    placed: list[Buffer] = []
    end = 0
    for buffer in sorted(buffers, key=lambda b: (-b.bytes, b.first)):  # type: ignore[operator]
        size: int = buffer.bytes  # type: ignore[assignment]
        alive = sorted(
            ((b.offset, b.offset + b.bytes) for b in placed if b.overlaps(buffer)),
            key=lambda gap: gap[0],  # type: ignore[no-any-return]
        )
        best: tuple[int, int] | None = None
        position = 0
        for start, stop in alive:
            gap = start - position  # type: ignore[operator]
            if gap >= size and (best is None or gap < best[0]):
                best = (gap, position)  # type: ignore[assignment]
            position = max(position, stop)  # type: ignore[call-overload]
        buffer.offset = position if best is None else best[1]
        placed.append(buffer)
        end = max(end, buffer.offset + size)
    return end


def place_symbolic(buffers: list[Buffer], start: int) -> Dim:
    """Slots after `start`, one per size expression and time; gives the arena's end."""
    slots: dict[Dim, list[tuple[Dim, list[Buffer]]]] = {}
    end: Dim = start
    for buffer in sorted(buffers, key=lambda b: b.first):
        users = slots.setdefault(buffer.bytes, [])
        for offset, tenants in users:
            if not any(t.overlaps(buffer) for t in tenants):
                buffer.offset = offset
                tenants.append(buffer)
                break
        else:
            buffer.offset = end
            users.append((end, [buffer]))
            end = end + buffer.bytes
    return end
