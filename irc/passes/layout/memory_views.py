"""Where a value of the layout level lies in memory, and views of memory by places in bytes."""

from __future__ import annotations

from irc.dialects import aten, graph, layout, sym
from irc.dialects.aten.facts import VIEW_AS
from irc.dialects.graph.views import view_strides
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import Operation, Value
from irc.ir.symbols import Dim, floordiv
from irc.ir.traits import ViewLike
from irc.ir.types import DTYPE_OF_ELEMENT, TensorType, element_bytes


def viewed(op: Operation | None) -> Value | None:
    """The value whose memory the results of `op` are in; None if they have memory of their own."""
    if op is None:
        return None
    if "view" in op.attributes or isinstance(op, layout.ViewOp | sym.RefineOp):
        return op.operands[0]
    as_other = isinstance(op, graph.CallAten) and op.callee == VIEW_AS
    return op.operands[0] if as_other else None


def storage_root(value: Value) -> Value:
    """The value whose memory `value` shares: itself, or what it is a view of in the end."""
    while (source := viewed(value.defining_op)) is not None:
        value = source
    return value


def place_in_memory(value: Value) -> tuple[Value, Dim]:
    """The value whose memory `value` is in, and how many bytes after that one's first element its
    first element lies."""
    place: Dim = 0
    while (source := viewed(maker := value.defining_op)) is not None:
        assert maker is not None
        width = element_bytes(value.type.element)  # type: ignore[attr-defined]
        if isinstance(maker, layout.ViewOp):
            place = place + maker.offset * width
        elif ViewLike in maker.traits:
            view_place = view_strides(maker)
            assert view_place is not None
            place = place + view_place[1] * width
        value = source
    return value, place


def view(builder: Builder, source: Value, offset: Dim, type_: TensorType) -> Value:
    """A view of type `type_`, `offset` elements after the first one of `source`."""
    return builder.value(layout.ViewOp, source, offset=offset, result_types=type_)


def view_as(builder: Builder, source: Value, type_: TensorType) -> Value:
    """The memory of `source` as elements of another type, with the strides that `type_` has."""
    dtype = aten.DtypeAttr(DTYPE_OF_ELEMENT[type_.element])
    entries: dict[str, A.Attribute] = {
        "callee": A.StringAttr(VIEW_AS),
        "arguments": A.DictAttr({"self": aten.OperandAttr(0), "dtype": dtype}),
        "eager_strides": A.ArrayAttr([A.DimsAttr(type_.strides or ())]),
    }
    return builder.insert(graph.CallAten([source], [type_], entries)).results[0]


def view_at(builder: Builder, source: Value, place: Dim, type_: TensorType) -> Value | None:
    """A view of type `type_` that begins `place` bytes after the first element of `source`; its
    elements may be of another type. None where elements differ in size and a place or a size is
    not known, or the place is between elements of the smaller type."""
    source_type, strides = source.type, type_.strides
    assert isinstance(source_type, TensorType) and strides is not None
    old, new = element_bytes(source_type.element), element_bytes(type_.element)
    if old == new:
        same = source_type.with_shape(type_.shape, type_.strides)
        part = view(builder, source, floordiv(place, old), same)
        return part if source_type.element is type_.element else view_as(builder, part, type_)
    if not isinstance(place, int) or place % min(old, new):
        return None
    if not all(isinstance(d, int) for d in (*type_.shape, *strides)):
        return None
    # The bytes as a vector, in the source's elements, then in the others.
    spans = [(n - 1) * s for n, s in zip(type_.shape, strides, strict=True)]
    length = 0 if 0 in type_.shape else 1 + sum(spans)
    first = place // old
    count = -(-(place + length * new) // old) - first
    part = view(builder, source, first, source_type.with_shape((count,), (1,)))
    whole = view_as(builder, part, type_.with_shape((count * old // new,), (1,)))
    return view(builder, whole, (place - first * old) // new, type_)
