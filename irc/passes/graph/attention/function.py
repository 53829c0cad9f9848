"""A function of the aten level as a program in which attention is recognized."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from irc.analysis.loop import estimate
from irc.dialects import aten, graph
from irc.dialects.graph.inferred import tensor_type
from irc.ir import attributes as A
from irc.ir.contents import content_tensor
from irc.ir.core import Value
from irc.ir.strides import dense_like, reshape_strides
from irc.ir.symbols import Dim, Range, known_positive
from irc.ir.types import (
    DTYPE_OF_ELEMENT,
    ELEMENT_OF_DTYPE,
    TensorType,
    contiguous_strides,
    element_bytes,
    f32,
    f64,
    i1,
)
from irc.passes.graph.attention.program import OperatorCall

FUSED = "_scaled_dot_product_flash_attention_for_cpu.default"


class AtenFunction:
    """A function of the aten level as a program; new operators go where `builder` says.
    ranges: what is known of its symbols."""

    def __init__(self, builder: Any, ranges: Mapping[str, Range]) -> None:
        self.builder = builder
        self.ranges = ranges

    def call(self, value: Any) -> OperatorCall | None:
        op = value.defining_op
        if not isinstance(op, aten.AtenOp) or op.results[0] is not value:
            return None
        if not op.qualified.startswith("aten.") or op.schema.has_effect:
            return None
        arguments = {name: _word(argument) for name, argument in aten.arguments_of(op).items()}
        return OperatorCall(op.qualified.removeprefix("aten."), arguments)

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, Value) and isinstance(value.type, TensorType)

    def shape(self, value: Any) -> Sequence[Dim]:
        shape: tuple[Dim, ...] = value.type.shape
        return shape

    def dtype(self, value: Any) -> str:
        return DTYPE_OF_ELEMENT[value.type.element]

    def last_stride(self, value: Any) -> Dim:
        strides = value.type.strides
        return 1 if strides is None or not strides else strides[-1]

    def uses(self, value: Any) -> int:
        count: int = value.use_count
        return count

    def estimate(self, size: Any) -> int:
        return estimate(size)

    def same(self, first: Any, second: Any) -> bool:
        return bool(first == second)

    def is_positive(self, size: Any) -> bool:
        return known_positive(size, self.ranges)

    def constant(self, value: Any) -> Any:
        op = value.defining_op
        content = op.attributes["value"] if isinstance(op, graph.Constant) else None
        if not isinstance(content, A.DenseAttr) or not value.type.is_static:
            return None
        import torch

        one = len(content.data) == element_bytes(value.type.element)
        sizes = () if one else value.type.shape
        held = content_tensor(content.data, getattr(torch, self.dtype(value)), sizes)
        return held.expand(value.type.shape)

    def number(self, value: Any) -> float | None:
        held = self.constant(value) if isinstance(value.defining_op, graph.Constant) else None
        return float(held) if held is not None and held.numel() == 1 else None

    def emit(self, name: str, *arguments: Any, **keywords: Any) -> Any:
        return self.results(name, arguments, keywords)[0]

    def results(
        self, name: str, arguments: Sequence[Any], keywords: Mapping[str, Any]
    ) -> Sequence[Value]:
        """A new call of an operator of aten's; its results."""
        operands = [_attribute(argument) for argument in arguments]
        named = {key: _attribute(value, key) for key, value in keywords.items()}
        types = _result_types(name, arguments, keywords)
        if name == "full.default":
            named["device"] = aten.DeviceAttr("cpu")
        place = self.builder.location
        op = aten.make_aten(f"aten.{name}", operands, named, _value_of, types, place)
        results: Sequence[Value] = self.builder.insert(op).results
        return results


def _value_of(argument: Any) -> Value | None:
    return argument if isinstance(argument, Value) else None


def _word(argument: Any) -> Any:
    """An argument as `OperatorCall` has it."""
    return argument.name if isinstance(argument, aten.NamedAttr) else argument


def _attribute(argument: Any, name: str = "") -> Any:
    """An argument of `emit` as an operation has it."""
    if name == "dtype":
        return aten.DtypeAttr(argument)
    return aten.MemoryFormatAttr(argument) if name == "memory_format" else argument


def _result_types(
    name: str, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> list[TensorType]:
    """The types of what `emit` makes on a CPU, strides as eager gives them."""
    tensors = [tensor_type(a) for a in arguments if isinstance(a, Value)]
    dtype = ELEMENT_OF_DTYPE[keywords["dtype"]] if "dtype" in keywords else None
    if name == "full.default":
        assert dtype is not None
        return [TensorType((), dtype, ())]
    type_ = tensors[0]
    shape: Sequence[Dim]
    if name == FUSED:
        batch, heads, queries, _ = type_.shape
        sums = (queries * heads, 1, heads)
        rest = TensorType((batch, heads, queries), f64 if type_.element is f64 else f32, sums)
        return [type_.with_strides(_dense(type_)), rest]
    if name in ("permute.default", "unsqueeze.default", "squeeze.dims"):
        return [_moved(name, type_, arguments[1])]
    if name == "reshape.default":
        shape = tuple(arguments[1])
        assert type_.strides is not None
        strides = reshape_strides(type_.shape, type_.strides, shape)
        return [type_.with_shape(shape, strides or contiguous_strides(shape))]
    if name == "amax.default":
        shape = (*type_.shape[:-1], 1)
        return [type_.with_shape(shape, contiguous_strides(shape))]
    if name == "clone.default":
        return [type_.with_strides(contiguous_strides(type_.shape))]
    return [_pointwise(name, tensors, dtype)]


def _pointwise(name: str, tensors: Sequence[TensorType], dtype: Any) -> TensorType:
    """The type of a pointwise operator's result."""
    element = dtype or tensors[-1].element
    if name == "lt.Scalar":
        element = i1
    rank = max(t.rank for t in tensors)
    shape: list[Dim] = []
    for dim in range(-rank, 0):
        sizes = [t.shape[dim] for t in tensors if t.rank >= -dim]
        shape.append(next((n for n in sizes if n != 1), 1))
    operands: list[list[Dim]] = []
    for t in tensors:
        strides = t.strides or ()
        steps: list[Dim] = [0 if n == 1 else s for n, s in zip(t.shape, strides, strict=True)]
        operands.append([*[0] * (rank - t.rank), *steps])
    type_ = TensorType(shape, element, None, tensors[0].device)
    return type_.with_strides(dense_like(tuple(shape), operands))


def _dense(type_: TensorType) -> Sequence[Dim]:
    """The strides of `empty_like`."""
    return dense_like(type_.shape, [type_.strides]) if type_.strides is not None else ()


def _moved(name: str, type_: TensorType, argument: Any) -> TensorType:
    shape, strides = list(type_.shape), list(type_.strides or ())
    if name == "permute.default":
        return type_.with_shape([shape[d] for d in argument], [strides[d] for d in argument])
    if name == "unsqueeze.default":
        step = shape[argument] * strides[argument] if argument < len(shape) else 1
        return type_.with_shape(
            [*shape[:argument], 1, *shape[argument:]], [*strides[:argument], step,
                                                        *strides[argument:]]
        )  # fmt: skip
    kept = [d for d in range(len(shape)) if d not in argument]
    return type_.with_shape([shape[d] for d in kept], [strides[d] for d in kept])


__all__ = ["FUSED", "AtenFunction"]
