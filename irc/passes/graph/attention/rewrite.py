"""What takes the place of an attention that was found: its operands as four dimensions."""

from __future__ import annotations

from typing import Any

from irc.passes.graph.attention.program import Program, Value
from irc.passes.graph.attention.recognize import Operand


def four_dimensions(program: Program, operand: Operand) -> Value:
    """An operand as `[batch, heads, positions, width]`, by views alone but where its last dimension
    is not the fastest: fused operators want that."""
    value, rank = operand.base, len(program.shape(operand.base))
    places = ([label.dim for label in slot if label.dim is not None] for slot in operand.slots)
    dims = [place[0] if place else None for place in places]
    taken = {dim for dim in dims if dim is not None}
    spare = [dim for dim in range(rank) if dim not in taken]
    absent = dims.count(None)
    if len(spare) > absent:
        gone = spare[absent:]
        value = program.emit("squeeze.dims", value, gone)
        kept = [dim for dim in range(rank) if dim not in gone]
        dims = [None if dim is None else kept.index(dim) for dim in dims]
        spare = [kept.index(dim) for dim in spare[:absent]]
    missing = absent - len(spare)
    for _ in range(missing):
        value = program.emit("unsqueeze.default", value, 0)
    dims = [None if dim is None else dim + missing for dim in dims]
    spare = [*range(missing), *(dim + missing for dim in spare)]
    order = [spare.pop(0) if dim is None else dim for dim in dims]
    if order != [0, 1, 2, 3]:
        value = program.emit("permute.default", value, order)
    width: Any = program.shape(value)[3]
    if program.last_stride(value) != 1 and not (isinstance(width, int) and width == 1):
        value = program.emit("clone.default", value, memory_format="contiguous_format")
    return value


__all__ = ["four_dimensions"]
