"""What a call of a matrix product is as a `graph.dot_general` and what is done to its sums.

    addmm(self, mat1, mat2, beta, alpha) -> cast(alpha * dot_general(mat1, mat2) + beta * self)

Sums, what they are multiplied by and what is added stay in the accumulator's type, and are rounded
once, as a library does it. Where alpha is 0, nothing is looked at that the library doesn't look at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from irc.dialects import aten, graph
from irc.dialects.aten.facts import LOOPS, factors_of, skips_unused_factors
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import Value
from irc.ir.symbols import Dim
from irc.ir.types import FloatType, IntegerType, TensorType, Type, f32, i1

#: Makes the products of a call: a function of the entries of their schedule.
Form = Callable[[Builder, A.Attribute | None], Value]


def product_form(call: graph.CallAten) -> Form | str:
    """What makes the result of a matrix product, or why nothing does."""
    arguments, names = aten.arguments_of(call), factors_of(call.callee)
    left, right = arguments[names.left], arguments[names.right]
    element = left.type.element
    wide, sums_type = accumulator_of(element), result_type(call).element
    if right.type.element is not element or sums_type not in (element, wide):
        return "its factors and its result are of several types"
    if wide is None:
        return f"there are no products of {element}"

    skips = skips_factors(call) if names.added is not None else False
    if skips is None and _may_be_zero(arguments["alpha"]):
        return "whether a product times 0 looks at its factors is a matter of sizes"

    def form(builder: Builder, schedule: A.Attribute | None) -> Value:
        rank = left.type.rank
        batch = range(rank - 2)
        sums = dot_general(
            builder, left, right, wide, batch=(batch, batch), depth=([rank - 1], [rank - 2]),
            schedule=schedule,
        )  # fmt: skip
        if names.added is not None:
            sums = scaled_sums(builder, sums, arguments["alpha"], bool(skips))
            if arguments["beta"] != 0:  # otherwise nobody looks at what isn't added
                added = cast(builder, arguments[names.added], wide)
                added = scaled(builder, added, arguments["beta"])
                added = spread(builder, added, sums.type.shape)  # type: ignore[attr-defined]
                sums = builder.value(graph.Add, sums, added)
        return cast(builder, sums, sums_type)

    return form


def skips_factors(call: graph.CallAten) -> bool | None:
    """Whether ATen doesn't look at the factors where alpha is 0 (`aten.skips_unused_factors`);
    None where sizes that only a call knows decide."""
    arguments, names = aten.arguments_of(call), factors_of(call.callee)
    left, right = (arguments[name].type for name in (names.left, names.right))
    points = math.prod([*left.shape[-2:], right.shape[-1]]) if names.batched else None
    device, element = left.device, str(left.element)
    if isinstance(points, int | None):
        return skips_unused_factors(device, element, points)
    few, many = (skips_unused_factors(device, element, count) for count in (0, LOOPS))
    return few if few == many else None


def scaled_sums(builder: Builder, sums: Value, alpha: Any, skips: bool) -> Value:
    """Sums of products times alpha; `skips`: 0 where alpha is 0, whatever they are."""
    if not skips or not _may_be_zero(alpha):
        return scaled(builder, sums, alpha)
    type_ = sums.type
    assert isinstance(type_, TensorType)
    nothing: Value = builder.value(
        graph.Full, value=graph.scalar_attribute(0, type_.element), result_types=type_
    )
    if not isinstance(alpha, Value):
        return nothing
    factor: Value = builder.value(graph.Full, alpha, result_types=type_)
    is_zero: Value = builder.value(graph.Eq, factor, nothing)
    product: Value = builder.value(graph.Mul, sums, factor)
    selected: Value = builder.value(graph.Select, is_zero, nothing, product)
    return selected


def _may_be_zero(scalar: Any) -> bool:
    return isinstance(scalar, Value) or scalar == 0


def accumulator_of(element: Type) -> Type | None:
    """The type in which a library sums up products of an element type; None where there are none.
    """
    if isinstance(element, FloatType):
        if element.width < 16:
            return None
        return f32 if element.width < 32 else element
    if not isinstance(element, IntegerType) or element is i1:
        return None
    return element if element.width >= 32 else IntegerType(32)  # low bits are those of narrow sums


def result_type(call: graph.CallAten) -> TensorType:
    """The type of a call's only result that is a tensor."""
    (type_,) = (v.type for v in call.results if isinstance(v.type, TensorType))
    return type_


def dot_general(
    builder: Builder,
    left: Value,
    right: Value,
    accumulator: Type,
    *,
    batch: tuple[Sequence[int], Sequence[int]],
    depth: tuple[Sequence[int], Sequence[int]],
    schedule: A.Attribute | None,
) -> Value:
    """A product of two values, whose dimensions are given for either side."""
    entries: dict[str, Any] = {} if schedule is None else {"schedule": schedule}
    value: Value = builder.value(
        graph.DotGeneral, left, right,
        left_batch=list(batch[0]), right_batch=list(batch[1]),
        left_depth=list(depth[0]), right_depth=list(depth[1]),
        accumulator=A.TypeAttr(accumulator), **entries,
    )  # fmt: skip
    return value


def cast(builder: Builder, value: Value, element: Type) -> Value:
    """A value with elements of another type."""
    type_ = value.type
    assert isinstance(type_, TensorType)
    if type_.element is element:
        return value
    wide: Value = builder.value(graph.Cast, value, result_types=type_.with_element(element))
    return wide


def scaled(builder: Builder, value: Value, factor: Any) -> Value:
    """A value times a number, or a scalar of the program."""
    type_ = value.type
    assert isinstance(type_, TensorType)
    if isinstance(factor, Value):
        full: Value = builder.value(graph.Full, factor, result_types=type_)
    elif factor == 1:
        return value
    else:
        number = graph.scalar_attribute(factor, type_.element)
        full = builder.value(graph.Full, value=number, result_types=type_)
    product: Value = builder.value(graph.Mul, value, full)
    return product


def spread(
    builder: Builder, value: Value, shape: Sequence[Dim], dims: Sequence[int] | None = None
) -> Value:
    """A value broadcast to a shape: its dimensions are the last ones of it, or `dims`."""
    type_ = value.type
    assert isinstance(type_, TensorType)
    if type_.shape == tuple(shape):
        return value
    places = range(len(shape) - type_.rank, len(shape)) if dims is None else dims
    wide: Value = builder.value(
        graph.Broadcast, value, dims=list(places), result_types=type_.with_shape(shape)
    )
    return wide


__all__ = [
    "Form", "accumulator_of", "cast", "dot_general", "product_form", "result_type", "scaled",
    "scaled_sums", "skips_factors", "spread",
]  # fmt: skip
