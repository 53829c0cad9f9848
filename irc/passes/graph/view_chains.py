"""Views of storages as chains of steps that can be replayed and undone.

A step is undone by writing the view's elements back into what it was taken from: `slice` by
`slice_scatter`, `permute` by the inverse permutation, and so on (`view_inverses`); a view without
a rule of its own by its sizes, strides and offset in a contiguous tensor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import attrs

from irc.dialects import aten, sym
from irc.ir.builder import Builder
from irc.ir.core import Value
from irc.ir.diagnostics import UserError
from irc.ir.location import UNKNOWN, Location
from irc.ir.symbols import dim_product
from irc.ir.types import TensorType, contiguous_strides
from irc.passes.graph.result_types import call_on_meta, meta_tensor, types_of_call
from irc.passes.graph.value_building import (
    EXACT_OVERLAP_LIMIT,
    call,
    contiguous,
    extent,
    is_static,
    may_overlap,
    permuted,
    positions,
    retype,
    scatter_strided,
    storage,
    strides_of,
)
from irc.passes.graph.view_inverses import UNDO, undo_by_strides

RESHAPES = frozenset(
    "view _unsafe_view reshape _reshape_alias view_as reshape_as flatten unflatten".split()
)


class Step:
    """One view of a value. `type`: that of the view in eager mode; `source_type`: of its source."""

    type: TensorType
    source_type: TensorType

    def key(self) -> tuple[object, ...]:
        """Equal for steps that give the same view."""
        return (type(self), self.type, self.source_type)

    def replay(self, builder: Builder, source: Value) -> Value:
        """The same view of another value."""
        raise NotImplementedError

    def undo(self, builder: Builder, source: Value, content: Value) -> Value:
        """`source` with the elements that this view shows replaced by `content`.

        Raises UserError for a view whose elements overlap or that has no inverse.
        """
        raise NotImplementedError


@attrs.frozen(eq=False)
class ViewStep(Step):
    """Result number `result` of the view operation `op`, taken of its first operand."""

    op: aten.AtenOp
    result: int
    source_type: TensorType
    type: TensorType

    def key(self) -> tuple[object, ...]:
        op = self.op
        return (op.qualified, op.arguments, op.operands[1:], self.result, self.type)

    @property
    def name(self) -> str:
        """The operator's name without namespace and overload."""
        return self.op.schema.name

    def arguments(self) -> dict[str, Any]:
        """The view operation's arguments by name."""
        return aten.arguments_of(self.op)

    def replay(self, builder: Builder, source: Value) -> Value:
        copy = self._of(source)
        found = types_of_call(copy.schema, copy.operands, copy.arguments)
        if found is None and is_static(self.type):
            # The source's strides are not eager's, and there is no such view of it.
            if self.name == "view_as_complex" or self.op.qualified == "aten.view.dtype":
                copy.erase()
                copy = self._of(contiguous(builder, source))
                found = types_of_call(copy.schema, copy.operands, copy.arguments)
            elif self.name in RESHAPES:
                copy.erase()
                return call(builder, "reshape.default", self.type, source, list(self.type.shape))
        retype(copy, found)
        return builder.insert(copy).results[self.result]

    def _of(self, source: Value) -> aten.AtenOp:
        op = self.op
        operands = [source, *op.operands[1:]]
        return type(op)(operands, op.result_types, dict(op.attributes), (), op.location)

    def undo(self, builder: Builder, source: Value, content: Value) -> Value:
        return UNDO.get(self.name, undo_by_strides)(builder, self, source, content)


@attrs.frozen(eq=False)
class RefineStep(Step):
    """The same elements with sizes or strides that are known better."""

    op: sym.RefineOp
    source_type: TensorType
    type: TensorType

    def replay(self, builder: Builder, source: Value) -> Value:
        return builder.insert(sym.RefineOp((source,), self.op.result_types)).results[0]

    def undo(self, builder: Builder, source: Value, content: Value) -> Value:
        sizes = list(self.source_type.shape)
        return call(builder, "reshape.default", self.source_type, content, sizes)


@attrs.frozen(eq=False)
class FlattenStep(Step):
    """The storage under a tensor as a vector: the places from its first element to its last."""

    source_type: TensorType
    type: TensorType
    location: Location = UNKNOWN

    @classmethod
    def of(cls, kind: TensorType, location: Location) -> FlattenStep:
        """The storage under a tensor of type `kind`."""
        strides = strides_of(kind)
        if strides == contiguous_strides(kind.shape):
            length = dim_product(kind.shape)
        elif is_static(kind):
            length = extent(kind.shape, strides)
        else:
            raise UserError(
                f"as_strided of a tensor of type {kind} needs known sizes or a contiguous tensor",
                location,
            )
        return cls(kind, kind.with_shape((length,), (1,)), location)

    def order(self) -> list[int] | None:
        """The dimensions from the slowest to the fastest, if the tensor fills its storage."""
        strides = strides_of(self.source_type)
        if strides == contiguous_strides(self.source_type.shape):
            return list(range(self.source_type.rank))
        order = sorted(range(len(strides)), key=lambda d: -strides[d])
        running = 1
        for dim in reversed(order):
            size = self.source_type.shape[dim]
            if size != 1 and strides[dim] != running:
                return None
            running *= size
        return order

    def replay(self, builder: Builder, source: Value) -> Value:
        order = self.order()
        if self.source_type is self.type:
            return source
        if order is not None:
            ordered = permuted(builder, source, order)
            return call(builder, "reshape.default", self.type, ordered, list(self.type.shape))
        empty = call(
            builder, "new_zeros.default", self.type, source, list(self.type.shape)
        )
        return scatter_strided(
            builder, empty, source, self.source_type.shape, strides_of(self.source_type), 0
        )

    def undo(self, builder: Builder, source: Value, content: Value) -> Value:
        kind = self.source_type
        order = self.order()
        if kind is self.type:
            return content
        if order is None:
            sizes, strides = list(kind.shape), list(strides_of(kind))
            whole = storage(builder, content)
            return call(builder, "as_strided.default", kind, whole, sizes, strides, 0)
        shape = [kind.shape[d] for d in order]
        strides = None if kind.strides is None else contiguous_strides(shape)
        whole = call(builder, "reshape.default", kind.with_shape(shape, strides), content, shape)
        return permuted(builder, whole, [order.index(d) for d in range(len(order))])


@attrs.frozen(eq=False)
class StridedStep(Step):
    """Places of a storage (a vector): as_strided. `allowed`: the places that have elements."""

    source_type: TensorType
    type: TensorType
    offset: Any
    allowed: frozenset[int] | None = None
    location: Location = UNKNOWN

    def key(self) -> tuple[object, ...]:
        return (self.type, self.offset)

    def slice_type(self) -> TensorType | None:
        """The type of the slice of the storage that this is a reshape of, if it is one."""
        kind = self.type
        if strides_of(kind) != contiguous_strides(kind.shape):
            return None
        return kind.with_shape((dim_product(kind.shape),), (1,))

    def end(self) -> Any:
        """The place after the last element, of a slice."""
        return self.offset + dim_product(self.type.shape)

    def check(self) -> None:
        """Raise UserError where the view leaves the storage's elements that are known here."""
        strides = strides_of(self.type)
        dims = (*self.type.shape, *strides, self.offset, *self.source_type.shape)
        if not all(isinstance(d, int) for d in dims):
            return
        length = self.source_type.shape[0]
        places = positions(self.type.shape, strides, self.offset)
        unknown = self.allowed is not None and math.prod(self.type.shape) > EXACT_OVERLAP_LIMIT
        known = range(length) if self.allowed is None else self.allowed
        if unknown or any(p not in known for p in places):
            raise UserError(
                "as_strided of a tensor that is written shows places of its storage outside of "
                "its elements, which no value holds",
                self.location,
            )

    def replay(self, builder: Builder, source: Value) -> Value:
        self.check()
        kind, part = self.type, self.slice_type()
        if part is not None:
            cut = call(builder, "slice.Tensor", part, source, 0, self.offset, self.end())
            return call(builder, "reshape.default", kind, cut, list(kind.shape))
        return call(
            builder, "as_strided.default", kind, storage(builder, source),
            list(kind.shape), list(strides_of(kind)), self.offset,
        )  # fmt: skip

    def undo(self, builder: Builder, source: Value, content: Value) -> Value:
        self.check()
        kind, part = self.type, self.slice_type()
        if part is not None:
            flat = call(builder, "reshape.default", part, content, list(part.shape))
            if part.shape == self.source_type.shape:
                return flat
            return call(
                builder, "slice_scatter.default", self.source_type, source, flat,
                0, self.offset, self.end(),
            )  # fmt: skip
        return scatter_strided(
            builder, source, content, kind.shape, strides_of(kind), self.offset
        )


# -- whole chains


def overlaps(kind: TensorType, chain: Sequence[Step]) -> bool:
    """Whether a tensor of type `kind`, seen through `chain`, may have two elements in one place.

    Of symbolic sizes only what makes a view overlap itself is looked at.
    """
    if is_static(kind):
        return may_overlap(kind.shape, strides_of(kind))
    places = zip(kind.shape, strides_of(kind), strict=True)
    if any(stride == 0 and size != 1 for size, stride in places):
        return True
    return any(
        step.slice_type() is None if isinstance(step, StridedStep)
        else isinstance(step, ViewStep) and step.name == "unfold"
        for step in chain
    )  # fmt: skip


def invertible(kind: TensorType, chain: Sequence[Step], location: Location) -> tuple[Step, ...]:
    """A chain with the same effect on a root of type `kind` whose steps can be undone one by one.

    A view that overlaps itself can't, though a part of it may be written: such a chain becomes
    the places of its elements. Raises UserError where they are not known.
    """
    if not any(overlaps(s.type, chain[: k + 1]) for k, s in enumerate(chain[:-1])):
        return tuple(chain)
    if isinstance(chain[0], FlattenStep | StridedStep):
        raise UserError("writing through a view of as_strided with overlapping elements", location)
    steps = [s for s in chain if isinstance(s, ViewStep)]
    if len(steps) < len(chain) or not is_static(kind) or any(
        s.type.element is not kind.element for s in steps
    ):
        raise UserError("writing through a view of overlapping elements in memory", location)
    made = meta_tensor(kind)
    for step in steps:
        outcome, _ = call_on_meta(
            step.op.schema, step.op.operands, step.op.arguments, {step.op.operands[0]: made}
        )
        made = outcome[step.result] if isinstance(outcome, tuple | list) else outcome
    flat = FlattenStep.of(kind, location)
    final = kind.with_shape(made.shape, made.stride())
    return flat, StridedStep(flat.type, final, made.storage_offset(), None, location)


__all__ = ["FlattenStep", "RefineStep", "Step", "StridedStep", "ViewStep", "invertible", "overlaps"]
