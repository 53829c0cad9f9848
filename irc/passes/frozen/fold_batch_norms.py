"""The pass `fold-batch-norms`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from irc.analysis.constant_values import ConstantValues
from irc.dialects import graph
from irc.dialects.graph.inferred import tensor_type
from irc.ir.attributes import Type
from irc.ir.builder import Builder
from irc.ir.core import Operation, Value
from irc.ir.passes import PassContext, register_pass
from irc.ir.rewrite.driver import Rewriter, pattern
from irc.ir.rewrite.passes import PatternPass
from irc.ir.strides import regroup
from irc.ir.types import FloatType
from irc.passes.common.tensors import reshaped
from irc.passes.frozen.weighted_products import (
    WeightedProduct,
    weighted_product,
)


@attrs.frozen
class AffineStep:
    """One operation of a chain: `function` of the value and of `constant`, which has the sizes of
    the value and varies along its dimension `dim` only. "rsub" is the constant less the value."""

    function: str
    constant: Value
    dim: int


@attrs.frozen
class Chain:
    """What follows a product as far as it folds: up to `end`, through `views`."""

    end: Value
    steps: tuple[AffineStep, ...]
    views: tuple[Operation, ...]


_STEPS: dict[type[Operation], str] = {
    graph.Add: "add", graph.Sub: "sub", graph.Mul: "mul", graph.Div: "div",
}  # fmt: skip


# mul(conv(x, w), c) -> conv(x, mul(w, c)), and whatever else follows a product by channel
@pattern(graph.CallAten, name="graph.fold_scales", counted="folded")
def fold_scales(call: Any, rw: Any) -> Any:
    product = weighted_product(call, rw.state)
    if product is None:
        return rw.no_match("it is no product with a constant weight")
    chain = follow(product, rw.state, rw.decline)
    if chain is None:
        return False
    fold_chain(product, chain, rw)
    return True


def follow(
    product: WeightedProduct, constants: ConstantValues, tell: Callable[[str], object]
) -> Chain | None:
    """The chain after a product that is worth folding; None where there is none. `tell` is told
    what stands in the way of more."""
    value = product.call.results[0]
    element = tensor_type(value).element
    dim, steps, views = product.channel, [], []  # type: ignore[var-annotated]
    chain: Chain | None = None
    while True:
        users = list(value.users)
        if len(users) != 1:
            if any(_step(u, value, dim, constants) for u in users):
                tell("not folded: a scale follows, but it has other uses")
            break
        (user,) = users
        if isinstance(user, graph.Cast):
            if not isinstance(tensor_type(user.value).element, FloatType):
                break
        elif isinstance(user, graph.Reshape | graph.Permute):
            moved = _moved(user, dim)
            if moved is None:
                break
            dim = moved
            views.append(user)
        else:
            step = _step(user, value, dim, constants)
            if step is None or steps and step.constant.type.element is not wide(steps):  # type: ignore[attr-defined]
                break
            steps.append(step)
        value = user.results[0]
        if steps and tensor_type(value).element is element:
            chain = Chain(value, tuple(steps), tuple(views))
    if chain is None or _is_worth(product, chain):
        return chain
    return None


def wide(steps: list[AffineStep] | tuple[AffineStep, ...]) -> Type:
    """The element type that a chain computes in."""
    return tensor_type(steps[0].constant).element


def _is_worth(product: WeightedProduct, chain: Chain) -> bool:
    """A sum alone is free in the code after a linear; a convolution adds its bias anyway."""
    return product.is_convolution or any(s.function in ("mul", "div") for s in chain.steps)


def _moved(view: graph.Reshape | graph.Permute, dim: int) -> int | None:
    """Where a view has dimension `dim` of its source; None where it doesn't stay one."""
    if isinstance(view, graph.Permute):
        return list(view.permutation).index(dim)
    source, target = tensor_type(view.source).shape, tensor_type(view.view).shape
    for left, right in regroup(source, target):
        if left == [dim] and len(right) == 1 and source[dim] == target[right[0]]:
            return right[0]
    return None


def _step(user: Operation, value: Value, dim: int, constants: ConstantValues) -> AffineStep | None:
    """`user` as a step on `value`; None when it is something else."""
    function = _STEPS.get(type(user))
    if function is None:
        return None
    first, second = user.operands
    other = second if first is value else first
    if other is value or not varies_along(other, dim, constants):
        return None
    if other is first and function == "div":
        return None
    return AffineStep("rsub" if other is first and function == "sub" else function, other, dim)


def varies_along(value: Value, dim: int, constants: ConstantValues) -> bool:
    """Whether the elements of `value` are constant and can be seen to differ along `dim` only.
    Its other sizes may be symbolic."""
    type_, op = tensor_type(value), value.defining_op
    if not isinstance(type_.shape[dim], int):
        return False
    if all(size == 1 for d, size in enumerate(type_.shape) if d != dim):
        return value in constants
    if isinstance(op, graph.Full):
        return not op.operands
    if isinstance(op, graph.Broadcast):
        source = tensor_type(op.source).shape
        along = (size == 1 or d == dim for size, d in zip(source, op.dims, strict=True))
        return op.source in constants and all(along)
    if isinstance(op, graph.Cast | graph.PointwiseOp):
        return all(varies_along(o, dim, constants) for o in op.operands)
    return False


def vector(builder: Builder, value: Value, dim: int) -> Value:
    """The elements of `value`, which `varies_along` `dim`, as a tensor of that one dimension."""
    type_, op = tensor_type(value), value.defining_op
    small = type_.with_shape((type_.shape[dim],))
    if all(size == 1 for d, size in enumerate(type_.shape) if d != dim):
        return reshaped(builder, value, small.shape)
    if isinstance(op, graph.Broadcast):
        source = tensor_type(op.source)
        if all(size == 1 for size in source.shape):
            one = reshaped(builder, op.source, ())
            return builder.value(graph.Broadcast, one, dims=[], result_types=small)
        return reshaped(builder, op.source, small.shape)
    assert op is not None
    operands = [vector(builder, o, dim) for o in op.operands]
    narrow = type(op)(operands, [small], dict(op.attributes), (), op.location)
    return builder.insert(narrow).results[0]


def fold_chain(product: WeightedProduct, chain: Chain, rw: Rewriter) -> None:
    """Replace the chain's end by the product with the weight and bias that include it."""
    end = chain.end.defining_op
    assert end is not None
    builder = rw.before(end)
    builder.location = product.call.location
    scale, shift = accumulate(builder, chain.steps)
    element, computed = tensor_type(product.weight).element, wide(chain.steps)
    weight = product.weight
    if scale is not None:
        type_ = tensor_type(weight).with_element(computed)
        factor = builder.value(
            graph.Broadcast, scale, dims=[product.weight_dim], result_types=type_
        )
        weight = builder.value(graph.Mul, converted(builder, weight, computed), factor)
        weight = converted(builder, weight, element)
    bias = product.bias
    if bias is not None:
        bias = converted(builder, reshaped(builder, bias, (product.channels,)), computed)
        bias = bias if scale is None else builder.value(graph.Mul, bias, scale)
        bias = bias if shift is None else builder.value(graph.Add, bias, shift)
    else:
        bias = shift
    if bias is not None:
        bias = converted(builder, bias, element)
    value = product.replaced(builder, weight, bias)
    for view in chain.views:
        type_ = tensor_type(view.results[0]).with_element(element)
        value = builder.insert(
            type(view)((value,), (type_,), dict(view.attributes), (), view.location)
        ).results[0]
    rw.replace(end, [value])


def accumulate(
    builder: Builder, steps: tuple[AffineStep, ...]
) -> tuple[Value | None, Value | None]:
    """Scale and shift per channel that the steps amount to; None for 1 and 0."""
    scale: Value | None = None
    shift: Value | None = None
    for step in steps:
        c = vector(builder, step.constant, step.dim)
        cls = {"mul": graph.Mul, "div": graph.Div}.get(step.function)
        if cls is not None:
            if scale is not None:
                scale = builder.value(cls, scale, c)
            elif step.function == "mul":
                scale = c
            else:
                scale = builder.value(graph.Reciprocal, c)
            shift = None if shift is None else builder.value(cls, shift, c)
        elif step.function == "add":
            shift = c if shift is None else builder.value(graph.Add, shift, c)
        elif step.function == "sub":
            negative = builder.value(graph.Neg, c)
            shift = negative if shift is None else builder.value(graph.Sub, shift, c)
        else:
            one = graph.scalar_attribute(-1.0, tensor_type(c).element)
            minus = builder.value(graph.Full, value=one, result_types=tensor_type(c))
            scale = minus if scale is None else builder.value(graph.Neg, scale)
            shift = c if shift is None else builder.value(graph.Sub, c, shift)
    return scale, shift


def converted(builder: Builder, value: Value, element: Type) -> Value:
    """`value` with another element type."""
    if tensor_type(value).element is element:
        return value
    return builder.insert(graph.Cast.to(value, element)).results[0]


@register_pass
class FoldBatchNorms(PatternPass):
    """Multiplies scales and shifts per channel into the weights of the product before them.

    The product is a convolution or a linear (`mm`, `addmm`) whose weight and bias are constants
    and whose result nothing else uses. What follows it is any chain of additions, subtractions,
    products and quotients with constants that have one element per channel (a batch norm's
    statistics and parameters, a layer's scale), of casts, and of reshapes and permutes that keep
    the channels apart. The new weight and bias are made in the chain's element type (f32 for
    16-bit floats) and rounded once to the product's; a chain that ends in another type than the
    product's is folded as far as it returned to that type. `fold-constants` then computes them.

    Before:
        %y = graph.call_aten %x, %w {callee = "aten.convolution.default", ...}
        %c = graph.broadcast %scale {dims = array<i64: 1>} : (tensor<8xf32>) -> tensor<1x8x6x6xf32>
        %z = graph.mul %y, %c : ...
    After:
        %s = graph.broadcast %scale {dims = array<i64: 0>} : (tensor<8xf32>) -> tensor<8x3x3x3xf32>
        %v = graph.mul %w, %s : ...
        %z = graph.call_aten %x, %v {callee = "aten.convolution.default", ...}
    """

    name = "fold-batch-norms"
    summary = "multiply scales and shifts per channel into constant weights"
    anchor = "func.func"
    preserves = "real"

    patterns = (fold_scales,)

    def prepare(self, op: Operation, context: PassContext) -> ConstantValues:
        return ConstantValues()


__all__ = ["FoldBatchNorms"]
