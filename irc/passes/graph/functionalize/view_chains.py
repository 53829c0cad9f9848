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
from irc.dialects.aten.facts import Fact
from irc.ir.builder import Builder
from irc.ir.core import Value
from irc.ir.diagnostics import UserError
from irc.ir.location import UNKNOWN, Location
from irc.ir.symbols import Dim, dim_product
from irc.ir.types import DTYPE_OF_ELEMENT, TensorType, contiguous_strides, element_bytes
from irc.passes.graph.functionalize.value_building import (
    EXACT_OVERLAP_LIMIT,
    call,
    contiguous,
    extent,
    is_static,
    may_overlap,
    numbers,
    permuted,
    positions,
    regroups,
    retype,
    retype_regrouped,
    scatter_strided,
    storage,
    strides_of,
    with_strides,
)
from irc.passes.graph.functionalize.view_inverses import UNDO, undo_by_strides
from irc.passes.graph.result_types import call_on_meta, meta_tensor, types_of_call


class ChainStep:
    """One view of a value. `type`: that of the view in eager mode; `source_type`: of its source."""

    type: TensorType
    source_type: TensorType

    def key(self) -> tuple[object, ...]:
        """Equal for steps that give the same view."""
        return (type(self), self.type, self.source_type)

    def replay(self, builder: Builder, source: Value) -> Value:
        """The same view of another value."""
        raise NotImplementedError

    def take(self, builder: Builder, memory: Value) -> Value:
        """The same view of memory that lies as eager's does: it shares that memory."""
        return self.replay(builder, memory)

    def undo(self, builder: Builder, source: Value, content: Value) -> Value:
        """`source` with the elements that this view shows replaced by `content`.

        Raises UserError for a view whose elements overlap or that has no inverse.
        """
        raise NotImplementedError


@attrs.frozen(eq=False)
class ViewStep(ChainStep):
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
        if not regroups(self.op):
            return self.take(builder, source)
        copy = self._of(contiguous(builder, source))
        retype_regrouped(copy)
        return builder.insert(copy).results[self.result]

    def take(self, builder: Builder, memory: Value) -> Value:
        regrouped = regroups(self.op)
        if regrouped:
            memory = with_strides(builder, memory, self.source_type)
        copy = self._of(memory)
        types = types_of_call(copy.schema, copy.operands, copy.arguments)
        reshaped = Fact.RESHAPES in self.op.schema.facts and not regrouped
        if types is None and is_static(self.type) and (regrouped or reshaped):
            # The memory's strides are not eager's, and there is no such view of it.
            copy.erase()
            if regrouped:
                return self.replay(builder, memory)
            return call(builder, "reshape.default", self.type, memory, list(self.type.shape))
        retype(copy, types)
        return builder.insert(copy).results[self.result]

    def _of(self, source: Value) -> aten.AtenOp:
        op = self.op
        operands = [source, *op.operands[1:]]
        return type(op)(operands, op.result_types, dict(op.attributes), (), op.location)

    def undo(self, builder: Builder, source: Value, content: Value) -> Value:
        return UNDO.get(self.name, undo_by_strides)(builder, self, source, content)


@attrs.frozen(eq=False)
class RefineStep(ChainStep):
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
class FlattenStep(ChainStep):
    """The storage under a tensor as a vector: the places from its first element to its last."""

    source_type: TensorType
    type: TensorType
    location: Location = UNKNOWN

    @classmethod
    def of(cls, type_: TensorType, location: Location) -> FlattenStep:
        """The storage under a tensor of `type_`."""
        strides = strides_of(type_)
        if strides == contiguous_strides(type_.shape):
            length = dim_product(type_.shape)
        elif is_static(type_):
            length = extent(type_.shape, strides)
        else:
            raise UserError(
                f"as_strided of a tensor of type {type_} needs known sizes or a contiguous tensor",
                location,
            )
        return cls(type_, type_.with_shape((length,), (1,)), location)

    def order(self) -> list[int] | None:
        """The dimensions from the slowest to the fastest, if the tensor fills its storage."""
        strides = strides_of(self.source_type)
        if strides == contiguous_strides(self.source_type.shape):
            return list(range(self.source_type.rank))
        order = sorted(range(len(strides)), key=lambda d: -strides[d])
        running: Dim = 1
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
        type_ = self.source_type
        order = self.order()
        if type_ is self.type:
            return content
        if order is None:
            sizes, strides = list(type_.shape), list(strides_of(type_))
            whole = storage(builder, content)
            return call(builder, "as_strided.default", type_, whole, sizes, strides, 0)
        shape = [type_.shape[d] for d in order]
        ordered = type_.with_shape(
            shape, None if type_.strides is None else contiguous_strides(shape)
        )
        whole = call(builder, "reshape.default", ordered, content, shape)
        return permuted(builder, whole, [order.index(d) for d in range(len(order))])


@attrs.frozen(eq=False)
class StridedStep(ChainStep):
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
        type_ = self.type
        if strides_of(type_) != contiguous_strides(type_.shape):
            return None
        return type_.with_shape((dim_product(type_.shape),), (1,))

    def end(self) -> Any:
        """The place after the last element, of a slice."""
        return self.offset + dim_product(self.type.shape)

    def check(self) -> None:
        """Raise UserError where the view leaves the storage's elements that are known here."""
        strides = strides_of(self.type)
        dims = (*self.type.shape, *strides, self.offset, *self.source_type.shape)
        if not all(isinstance(d, int) for d in dims):
            return
        length, sizes = numbers(self.source_type.shape)[0], numbers(self.type.shape)
        places = positions(sizes, strides, self.offset)
        unknown = self.allowed is not None and math.prod(sizes) > EXACT_OVERLAP_LIMIT
        known = range(length) if self.allowed is None else self.allowed
        if unknown or any(p not in known for p in places):
            raise UserError(
                "as_strided of a tensor that is written shows places of its storage outside of "
                "its elements, which no value holds",
                self.location,
            )

    def replay(self, builder: Builder, source: Value) -> Value:
        self.check()
        type_, part = self.type, self.slice_type()
        if part is not None and 0 not in type_.shape:
            cut = call(builder, "slice.Tensor", part, source, 0, self.offset, self.end())
            return call(builder, "reshape.default", type_, cut, list(type_.shape))
        offset = 0 if 0 in type_.shape else self.offset  # no elements may lie anywhere
        return call(
            builder, "as_strided.default", type_, storage(builder, source),
            list(type_.shape), list(strides_of(type_)), offset,
        )  # fmt: skip

    def undo(self, builder: Builder, source: Value, content: Value) -> Value:
        self.check()
        type_, part = self.type, self.slice_type()
        if 0 in type_.shape:
            return source
        if part is not None:
            flat = call(builder, "reshape.default", part, content, list(part.shape))
            if part.shape == self.source_type.shape:
                return flat
            return call(
                builder, "slice_scatter.default", self.source_type, source, flat,
                0, self.offset, self.end(),
            )  # fmt: skip
        return scatter_strided(
            builder, source, content, type_.shape, strides_of(type_), self.offset
        )


@attrs.frozen(eq=False)
class ElementStep(ChainStep):
    """A storage (a vector) as elements of another type, of the same bytes."""

    source_type: TensorType
    type: TensorType

    @classmethod
    def of(cls, source: TensorType, element: Any, location: Location) -> ElementStep:
        """Raises UserError where the bytes are not a whole number of elements that is known."""
        old, new = element_bytes(source.element), element_bytes(element)
        (length,) = source.shape
        if old != new and (not isinstance(length, int) or length * old % new):
            raise UserError(
                f"as_strided of {element} in a storage of different element types: its size in "
                f"bytes is {length} times {old}",
                location,
            )
        count = length if old == new else length * old // new
        return cls(source, source.with_shape((count,), (1,)).with_element(element))

    def replay(self, builder: Builder, source: Value) -> Value:
        return self.take(builder, contiguous(builder, source))

    def take(self, builder: Builder, memory: Value) -> Value:
        dtype = aten.DtypeAttr(DTYPE_OF_ELEMENT[self.type.element])
        return call(builder, "view.dtype", self.type, memory, dtype)

    def undo(self, builder: Builder, source: Value, content: Value) -> Value:
        dtype = aten.DtypeAttr(DTYPE_OF_ELEMENT[self.source_type.element])
        return call(builder, "view.dtype", self.source_type, contiguous(builder, content), dtype)

    def place(self, position: Any, location: Location) -> Any:
        """A place counted in the source's elements, in these."""
        old, new = element_bytes(self.source_type.element), element_bytes(self.type.element)
        if old == new:
            return position
        if not isinstance(position, int) or position * old % new:
            raise UserError(
                f"as_strided of {self.type.element} in a storage of different element types that "
                f"begins at place {position}",
                location,
            )
        return position * old // new

    def allowed(self, places: frozenset[int] | None) -> frozenset[int] | None:
        """The places that have elements, of those that have some in the source."""
        old, new = element_bytes(self.source_type.element), element_bytes(self.type.element)
        if places is None or old == new:
            return places
        held = {p * old + k for p in places for k in range(old)}
        (count,) = self.type.shape
        assert isinstance(count, int)
        return frozenset(p for p in range(count) if held.issuperset(range(p * new, (p + 1) * new)))


# -- whole chains


def replay_all(chain: Sequence[ChainStep], builder: Builder, value: Value) -> Value:
    """The views of a chain, of another value."""
    for step in chain:
        value = step.replay(builder, value)
    return value


def take_all(chain: Sequence[ChainStep], builder: Builder, memory: Value) -> Value:
    """The views of a chain, of memory that lies as eager's: they share it."""
    for step in chain:
        memory = step.take(builder, memory)
    return memory


def overlaps(type_: TensorType, chain: Sequence[ChainStep]) -> bool:
    """Whether a tensor of `type_`, seen through `chain`, may have two elements in one place.

    Of symbolic sizes only what makes a view overlap itself is looked at.
    """
    if is_static(type_):
        return may_overlap(type_.shape, strides_of(type_))
    places = zip(type_.shape, strides_of(type_), strict=True)
    if any(stride == 0 and size != 1 for size, stride in places):
        return True
    return any(
        step.slice_type() is None if isinstance(step, StridedStep)
        else isinstance(step, ViewStep) and Fact.OVERLAPS in step.op.schema.facts
        for step in chain
    )  # fmt: skip


def shows_storage(chain: Sequence[ChainStep]) -> bool:
    """Whether a view has the elements that are in its storage: not their conjugates, nor their
    negatives, which eager mode's reads make of them."""
    facts = [step.op.schema.facts for step in chain if isinstance(step, ViewStep)]
    return not any(
        sum(sign in known for known in facts) % 2 for sign in (Fact.CONJUGATES, Fact.NEGATES)
    )


def invertible(
    type_: TensorType, chain: Sequence[ChainStep], location: Location
) -> tuple[ChainStep, ...]:
    """A chain with the same effect on a root of `type_` whose steps can be undone one by one.

    A view that overlaps itself can't, though a part of it may be written: such a chain becomes
    the places of its elements. Raises UserError where they are not known.
    """
    if not any(overlaps(s.type, chain[: k + 1]) for k, s in enumerate(chain[:-1])):
        return tuple(chain)
    known = is_static(type_) and all(
        isinstance(s, ViewStep | StridedStep | FlattenStep) and s.type.element is type_.element
        for s in chain
    )
    if not known:
        raise UserError("writing through a view of overlapping elements in memory", location)
    first, tensor = chain[0], meta_tensor(type_)
    if isinstance(first, FlattenStep):
        tensor = tensor.as_strided(first.type.shape, (1,), 0)
    flat = FlattenStep.of(type_, location)
    allowed = None
    for step in chain:
        if isinstance(step, StridedStep):
            step.check()
            tensor = tensor.as_strided(step.type.shape, strides_of(step.type), step.offset)
            allowed = step.allowed
        elif isinstance(step, ViewStep):
            outcome, _ = call_on_meta(
                step.op.schema, step.op.operands, step.op.arguments, {step.op.operands[0]: tensor}
            )
            tensor = outcome[step.result] if isinstance(outcome, tuple | list) else outcome
    final = type_.with_shape(tensor.shape, tensor.stride())
    place = StridedStep(flat.type, final, tensor.storage_offset(), allowed, location)
    return (place,) if flat.type is type_ else (flat, place)


__all__ = ["ElementStep", "FlattenStep", "RefineStep", "ChainStep", "StridedStep", "ViewStep",
           "invertible", "overlaps", "replay_all", "shows_storage", "take_all"]  # fmt: skip
