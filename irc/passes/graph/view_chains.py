"""Views of storages as chains of view operations that can be replayed and undone.

A view is undone by writing its elements back into the tensor that it was taken from:
`slice` by `slice_scatter`, `permute` by the inverse permutation, and so on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from irc.dialects import aten
from irc.ir.builder import Builder
from irc.ir.core import Value
from irc.ir.diagnostics import UserError
from irc.ir.symbols import dim_sum
from irc.ir.types import TensorType, contiguous_strides

Undo = Callable[[Builder, "Step", Value, Value], Value]


@attrs.frozen(eq=False)
class Step:
    """Result number `result` of the view operation `op`, taken of its first tensor operand."""

    op: aten.AtenOp
    result: int

    @property
    def type(self) -> TensorType:
        """The view's type."""
        found = self.op.results[self.result].type
        assert isinstance(found, TensorType)
        return found

    @property
    def source_type(self) -> TensorType:
        """The type of what is viewed."""
        found = self.op.operands[0].type
        assert isinstance(found, TensorType)
        return found

    @property
    def name(self) -> str:
        """The operator's name without namespace and overload."""
        return self.op.name.split(".")[1]

    def arguments(self) -> dict[str, Any]:
        """The view operation's arguments by name."""
        return aten.arguments_of(self.op)

    def replay(self, builder: Builder, source: Value) -> Value:
        """The same view of another value."""
        copy = type(self.op)(
            [source, *self.op.operands[1:]],
            self.op.result_types,
            self.op.attributes,
            (),
            self.op.location,
        )
        return builder.insert(copy).results[self.result]

    def undo(self, builder: Builder, source: Value, content: Value) -> Value:
        """`source` with the elements that this view shows replaced by `content`.

        Raises UserError for a view whose elements overlap or that has no inverse here.
        """
        function = UNDO.get(self.name)
        if function is None:
            raise UserError(
                f"writing through a view made by '{self.op.name}' is not supported",
                op=self.op,
                notes=("its elements may overlap, or the view has no inverse",),
            )
        return function(builder, self, source, content)


def call(builder: Builder, name: str, type_: TensorType, *args: Any) -> Value:
    """Insert the operator `aten.<name>` on values and plain arguments."""

    def value_of(argument: Any) -> Value | None:
        return argument if isinstance(argument, Value) else None

    op = aten.make_aten(f"aten.{name}", args, {}, value_of, [type_], builder.location)
    return builder.insert(op).results[0]


def dense(type_: TensorType) -> TensorType:
    """The same sizes with row-major strides, if it has strides at all."""
    if type_.strides is None:
        return type_
    return type_.with_strides(contiguous_strides(type_.shape))


def _reshape_back(builder: Builder, step: Step, source: Value, content: Value) -> Value:
    type_ = dense(step.source_type)
    return call(builder, "reshape.default", type_, content, list(type_.shape))


def _permute_back(builder: Builder, step: Step, source: Value, content: Value) -> Value:
    order = permutation_of(step)
    inverse = [order.index(d) for d in range(len(order))]
    kind: Any = content.type
    strides = None if kind.strides is None else [kind.strides[d] for d in inverse]
    type_ = step.source_type.with_strides(strides)
    return call(builder, "permute.default", type_, content, inverse)


def permutation_of(step: Step) -> list[int]:
    """The permutation that a permuting view applies."""
    given = step.arguments()
    rank = step.source_type.rank
    order = list(range(rank))
    if step.name == "permute":
        return [d % rank for d in given["dims"]]
    if step.name == "transpose":
        if rank:
            a, b = given["dim0"] % rank, given["dim1"] % rank
            order[a], order[b] = order[b], order[a]
        return order
    return order[::-1]


def _slice_back(builder: Builder, step: Step, source: Value, content: Value) -> Value:
    given = step.arguments()
    return call(
        builder, "slice_scatter.default", dense(step.source_type), source, content,
        given["dim"], given["start"], given["end"], given["step"],
    )  # fmt: skip


def _select_back(builder: Builder, step: Step, source: Value, content: Value) -> Value:
    given = step.arguments()
    type_ = dense(step.source_type)
    return call(
        builder, "select_scatter.default", type_, source, content, given["dim"], given["index"]
    )


def _diagonal_back(builder: Builder, step: Step, source: Value, content: Value) -> Value:
    given = step.arguments()
    return call(
        builder, "diagonal_scatter.default", dense(step.source_type), source, content,
        given["offset"], given["dim1"], given["dim2"],
    )  # fmt: skip


def _as_strided_back(builder: Builder, step: Step, source: Value, content: Value) -> Value:
    given = step.arguments()
    kind: Any = source.type
    if kind.strides is not None and kind.strides != contiguous_strides(kind.shape):
        raise UserError(
            "writing through as_strided needs a contiguous tensor underneath", op=step.op
        )
    if may_overlap(given["size"], given["stride"]):
        raise UserError("writing through as_strided with overlapping elements", op=step.op)
    return call(
        builder, "as_strided_scatter.default", dense(step.source_type), source, content,
        given["size"], given["stride"], given["storage_offset"],
    )  # fmt: skip


def may_overlap(sizes: list[Any], strides: list[Any]) -> bool:
    """Whether two positions may name one element; True when it can't be told."""
    if any(isinstance(d, int) and d == 0 for d in sizes):
        return False
    pairs = [(st, si) for si, st in zip(sizes, strides, strict=True) if si != 1]
    if not all(isinstance(st, int) and isinstance(si, int) for st, si in pairs):
        return tuple(strides) != contiguous_strides(sizes)
    reach = 0
    for stride, size in sorted(pairs):
        if stride <= reach:
            return True
        reach += stride * (size - 1)
    return False


def _split_back(builder: Builder, step: Step, source: Value, content: Value) -> Value:
    given = step.arguments()
    type_ = step.source_type
    dim = given["dim"] % type_.rank
    sizes = [r.type.shape[dim] for r in step.op.results]  # type: ignore[attr-defined]
    start = dim_sum(sizes[: step.result])
    end = start + sizes[step.result]
    return call(
        builder, "slice_scatter.default", dense(type_), source, content, dim, start, end, 1
    )


def _unbind_back(builder: Builder, step: Step, source: Value, content: Value) -> Value:
    dim = step.arguments()["dim"]
    type_ = dense(step.source_type)
    return call(
        builder, "select_scatter.default", type_, source, content, dim, step.result
    )


def _same(builder: Builder, step: Step, source: Value, content: Value) -> Value:
    return content


UNDO: dict[str, Undo] = {
    "alias": _same, "detach": _same, "view_as": _reshape_back, "_unsafe_view": _reshape_back,
    "view": _reshape_back, "reshape": _reshape_back, "_reshape_alias": _reshape_back,
    "squeeze": _reshape_back, "unsqueeze": _reshape_back, "flatten": _reshape_back,
    "permute": _permute_back, "transpose": _permute_back, "t": _permute_back,
    "numpy_T": _permute_back, "slice": _slice_back, "select": _select_back,
    "diagonal": _diagonal_back, "as_strided": _as_strided_back,
    "split": _split_back, "split_with_sizes": _split_back, "chunk": _split_back,
    "unbind": _unbind_back,
}  # fmt: skip
