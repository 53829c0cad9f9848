"""Views of memory and fresh memory: what their types may be, and where a view lies."""

from __future__ import annotations

from typing import Any

from irc.ir.core import Value
from irc.ir.definition import Op
from irc.ir.strides import last_element
from irc.ir.symbols import Dim
from irc.ir.traits import MemoryView
from irc.ir.types import TensorType


def verify_same_memory(op: Op, source: TensorType, view: TensorType) -> None:
    """A view's type against its source's: element, device, strides. Raises InvalidIR."""
    if view.element is not source.element or view.device != source.device:
        op.fail(f"{view} is no view of {source}: another element or device")
    if view.strides is None or source.strides is None:
        op.fail(f"a view of {source} as {view} needs the strides of both")


def verify_places(op: Op, type_: TensorType) -> None:
    """Fresh memory: strides, and no place for two elements. Raises InvalidIR."""
    if type_.strides is None:
        op.fail(f"{type_} has no strides: memory needs them")
    for size, stride in zip(type_.shape, type_.strides or (), strict=True):
        if stride == 0 and not (isinstance(size, int) and size <= 1) and 0 not in type_.shape:
            op.fail(f"two elements of {type_} share a place in memory")


def begin_of(value: Value) -> tuple[Dim, Value]:
    """The element at which a view begins in what it is a view of in the end, and that value."""
    offset: Dim = 0
    maker: Any = value.defining_op
    while maker is not None and MemoryView in maker.traits:
        offset, value = offset + maker.offset, maker.source
        maker = value.defining_op
    return offset, value


def verify_inside(op: Op, view: TensorType, offset: Dim, memory: TensorType) -> None:
    """A view stays inside of memory, where sizes are known. Raises InvalidIR."""
    reach, room = last_element(view), last_element(memory)
    if reach is None or room is None or not isinstance(offset, int) or reach < 0:
        return
    if offset < 0 or offset + reach > room:
        op.fail(f"reaches from element {offset} to {offset + reach} of memory whose last element "
                f"is {room}")  # fmt: skip
