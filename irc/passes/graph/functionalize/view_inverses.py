"""How to undo a view: what it was taken from, with the view's elements replaced.

A rule gets the step (a `view_chains.ViewStep`), the value that the view was taken from, and the
new content of the view.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from irc.dialects import aten
from irc.dialects.aten.facts import Fact
from irc.ir.builder import Builder
from irc.ir.core import Value
from irc.ir.diagnostics import UserError
from irc.ir.symbols import dim_sum
from irc.ir.types import DTYPE_OF_ELEMENT
from irc.passes.graph.functionalize.value_building import (
    call,
    contiguous,
    dense,
    is_static,
    permuted,
    scatter_strided,
    type_of,
)
from irc.passes.graph.result_types import call_on_meta

Undo = Callable[[Builder, Any, Value, Value], Value]


def _reshape_back(builder: Builder, step: Any, source: Value, content: Value) -> Value:
    if Fact.OTHER_ELEMENTS in step.op.schema.facts:
        dtype = aten.DtypeAttr(DTYPE_OF_ELEMENT[step.source_type.element])
        return call(
            builder, "view.dtype", dense(step.source_type), contiguous(builder, content), dtype
        )
    type_ = dense(step.source_type)
    return call(builder, "reshape.default", type_, content, list(type_.shape))


def _permute_back(builder: Builder, step: Any, source: Value, content: Value) -> Value:
    rank = step.source_type.rank
    return _ordered_back(builder, content, [d % rank for d in step.arguments()["dims"]])


def _transpose_back(builder: Builder, step: Any, source: Value, content: Value) -> Value:
    arguments, rank = step.arguments(), step.source_type.rank
    order = list(range(rank))
    if rank:
        a, b = arguments["dim0"] % rank, arguments["dim1"] % rank
        order[a], order[b] = order[b], order[a]
    return _ordered_back(builder, content, order)


def _reverse_back(builder: Builder, step: Any, source: Value, content: Value) -> Value:
    return _ordered_back(builder, content, list(range(step.source_type.rank))[::-1])


def _ordered_back(builder: Builder, content: Value, order: list[int]) -> Value:
    """Undo a view whose dimension `k` is dimension `order[k]` of its source."""
    return permuted(builder, content, [order.index(d) for d in range(len(order))])


def _slice_back(builder: Builder, step: Any, source: Value, content: Value) -> Value:
    arguments = step.arguments()
    return call(
        builder, "slice_scatter.default", dense(step.source_type), source, content,
        arguments["dim"], arguments["start"], arguments["end"], arguments["step"],
    )  # fmt: skip


def _select_back(builder: Builder, step: Any, source: Value, content: Value) -> Value:
    arguments = step.arguments()
    type_ = dense(step.source_type)
    return call(
        builder, "select_scatter.default", type_, source, content,
        arguments["dim"], arguments["index"],
    )  # fmt: skip


def _diagonal_back(builder: Builder, step: Any, source: Value, content: Value) -> Value:
    arguments = step.arguments()
    return call(
        builder, "diagonal_scatter.default", dense(step.source_type), source, content,
        arguments["offset"], arguments["dim1"], arguments["dim2"],
    )  # fmt: skip


def _split_back(builder: Builder, step: Any, source: Value, content: Value) -> Value:
    type_ = step.source_type
    dim = step.arguments()["dim"] % type_.rank
    sizes = [type_of(r).shape[dim] for r in step.op.results]
    start = dim_sum(sizes[: step.result])
    end = start + sizes[step.result]
    return call(
        builder, "slice_scatter.default", dense(type_), source, content, dim, start, end, 1
    )


def _unbind_back(builder: Builder, step: Any, source: Value, content: Value) -> Value:
    dim = step.arguments()["dim"]
    type_ = dense(step.source_type)
    return call(builder, "select_scatter.default", type_, source, content, dim, step.result)


def _same(builder: Builder, step: Any, source: Value, content: Value) -> Value:
    return content


def _real_back(builder: Builder, step: Any, source: Value, content: Value) -> Value:
    pairs = contiguous(builder, content)
    return call(builder, "view_as_complex.default", dense(step.source_type), pairs)


def _complex_back(builder: Builder, step: Any, source: Value, content: Value) -> Value:
    return call(builder, "view_as_real.default", dense(step.source_type), content)


def _conjugate_back(builder: Builder, step: Any, source: Value, content: Value) -> Value:
    return call(builder, "conj_physical.default", step.source_type, content)


def _negative_back(builder: Builder, step: Any, source: Value, content: Value) -> Value:
    return call(builder, "neg.default", step.source_type, content)


def undo_by_strides(builder: Builder, step: Any, source: Value, content: Value) -> Value:
    """Any other view: where its elements lie in a contiguous tensor, torch says."""
    type_ = dense(step.source_type)
    place = place_of(step) if is_static(type_) else None
    if place is None:
        raise UserError(
            f"writing through a view made by '{step.op.name}' is not supported",
            op=step.op,
            notes=("the view has no inverse here",),
        )
    sizes, strides, offset = place
    length = math.prod(type_.shape)
    flat = call(
        builder, "reshape.default", type_.with_shape((length,), (1,)), source, [length]
    )
    whole = scatter_strided(builder, flat, content, sizes, strides, offset)
    return call(builder, "reshape.default", type_, whole, list(type_.shape))


def place_of(step: Any) -> tuple[Any, Any, int] | None:
    """Sizes, strides and offset of the view of a contiguous tensor; None if it is none."""

    class Source(Value):
        __slots__ = ()

        def __init__(self) -> None:
            self.type = dense(step.source_type)
            self._users = None
            self.name_hint = None

    sources = [Source(), *step.op.operands[1:]]
    outcome, tensors = call_on_meta(step.op.schema, sources, step.op.arguments)
    view = outcome[step.result] if isinstance(outcome, tuple | list) else outcome
    memory = tensors[sources[0]].untyped_storage()
    if view.untyped_storage()._cdata != memory._cdata:
        return None
    if view.dtype != tensors[sources[0]].dtype or view.is_conj() or view.is_neg():
        return None
    return tuple(view.shape), tuple(view.stride()), view.storage_offset()


UNDO: dict[str, Undo] = {
    "alias": _same, "detach": _same, "view_as": _reshape_back, "_unsafe_view": _reshape_back,
    "view": _reshape_back, "reshape": _reshape_back, "_reshape_alias": _reshape_back,
    "squeeze": _reshape_back, "unsqueeze": _reshape_back, "flatten": _reshape_back,
    "unflatten": _reshape_back, "reshape_as": _reshape_back, "contiguous": _same, "to": _same,
    "expand_as": _reshape_back, "lift_fresh": _same,
    "permute": _permute_back, "transpose": _transpose_back, "t": _reverse_back,
    "numpy_T": _reverse_back, "slice": _slice_back, "select": _select_back,
    "diagonal": _diagonal_back,
    "split": _split_back, "split_with_sizes": _split_back, "chunk": _split_back,
    "unsafe_split": _split_back, "unbind": _unbind_back,
    "view_as_real": _real_back, "view_as_complex": _complex_back,
    "_conj": _conjugate_back, "_neg_view": _negative_back,
}  # fmt: skip
