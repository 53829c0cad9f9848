"""The pass `pad-matmul`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from irc.analysis.calls import ANY_STRIDES
from irc.analysis.loop import estimate
from irc.dialects import aten, func, graph
from irc.dialects.aten.facts import factors_of
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import Operation, Value
from irc.ir.passes import PassContext, register_pass
from irc.ir.rewrite.driver import Rewriter
from irc.ir.rewrite.passes import PatternPass
from irc.ir.rewrite.patterns import pattern
from irc.ir.symbols import Dim, Expr
from irc.ir.traits import ViewLike
from irc.ir.types import DTYPE_OF_ELEMENT, FloatType, TensorType, Type, contiguous_strides
from irc.target import target_of

#: The products that are padded.
PADDED = frozenset({"aten.mm.default", "aten.bmm.default", "aten.addmm.default"})


@attrs.frozen
class MatrixProduct:
    """A matrix product [batch,] m x k by k x n, and how much would be padded.

    transposed: whether each factor lies in memory column by column. padding: of m, k and n.
    computed: whether each factor's padding takes no copy, as what computes it writes that too.
    """

    callee: str
    dtype: str
    batch: int
    m: Dim
    k: Dim
    n: Dim
    transposed: tuple[bool, bool]
    padding: tuple[int, int, int]
    computed: tuple[bool, bool] = (False, False)


def alignment(element: Type) -> int:
    """The multiple that a product's sizes should be, in elements; 1 for types that don't care."""
    if not isinstance(element, FloatType):
        return 1
    return {"f16": 8, "bf16": 8, "f32": 4}.get(element.name, 1)


def padding_of(size: Dim, multiple: int) -> int:
    """How much is missing to the next multiple; 0 for symbolic sizes and sizes of 1."""
    return 0 if isinstance(size, Expr) or size == 1 else -size % multiple


def factors(call: graph.CallAten) -> tuple[int, int]:
    """The numbers of the operands that are a call's factors."""
    arguments, names = call.arguments.as_dict(), factors_of(call.callee)
    first, second = arguments[names.left], arguments[names.right]
    assert isinstance(first, aten.OperandAttr) and isinstance(second, aten.OperandAttr)
    return first.index, second.index


def product_of(call: graph.CallAten) -> MatrixProduct | None:
    """The product that a call computes; None where nothing of it would be padded."""
    values = [call._operands[number] for number in factors(call)]
    left, right = (v.type for v in values)
    assert isinstance(left, TensorType) and isinstance(right, TensorType)
    m, k, n = left.shape[-2], left.shape[-1], right.shape[-1]
    multiple = alignment(left.element)
    padding = padding_of(m, multiple), padding_of(k, multiple), padding_of(n, multiple)
    more = padding[:2], padding[1:]
    if not any(padding) or 0 in (*left.shape, *right.shape):
        return None
    return MatrixProduct(
        callee=call.callee,
        dtype=DTYPE_OF_ELEMENT[left.element],
        batch=estimate(left.shape[0]) if left.rank == 3 else 1,
        m=m, k=k, n=n,
        transposed=(_is_transposed(values[0]), _is_transposed(values[1])),
        padding=padding,
        computed=(_is_padded_for_nothing(values[0], more[0]),
                  _is_padded_for_nothing(values[1], more[1])),
    )  # fmt: skip


def _is_padded_for_nothing(value: Value, amounts: Sequence[int]) -> bool:
    """Whether `padded` makes no copy of a factor: it is padded already, or where it is computed."""
    assert isinstance(value.type, TensorType)
    source, order = unpermuted(value)
    high = [0] * (value.type.rank - len(amounts)) + list(amounts)
    back = [high[order.index(dim)] for dim in range(len(high))]
    if _padded_before(source, back) is not None:
        return True
    return is_computed(source) and not is_seen(source)


def _is_transposed(value: Value) -> bool:
    maker = value.defining_op
    if not isinstance(maker, graph.Permute):
        return False
    last = list(maker.permutation)[-2:]
    return last != sorted(last)


def intensity(product: MatrixProduct) -> float:
    """mnk / (mk + kn + mn); symbolic sizes count as estimated."""
    m, k, n = estimate(product.m), estimate(product.k), estimate(product.n)
    return m * k * n / (m * k + k * n + m * n)


# mm(a, b) -> slice(mm(pad(a), pad(b)))
@pattern(graph.CallAten, name="graph.pad_factors", counted="padded")
def pad_factors(call: Any, rw: Any) -> Any:
    if call.callee not in PADDED:
        return rw.no_match("it is no matrix product")
    product = product_of(call)
    if product is None:
        return rw.no_match("its sizes are aligned")
    why = rw.state.options.objection(product, rw.state.context)
    if why is not None:
        sizes = f"{product.m}x{product.k} by {product.k}x{product.n}"
        return rw.decline(f"the product {sizes} was not padded: {why}")
    pad_product(call, product, rw)
    return True


def pad_product(call: graph.CallAten, product: MatrixProduct, rw: Rewriter) -> None:
    """Replace a call by one on padded operands, cut to the size that it had."""
    m, k, n = product.padding
    left, right = factors(call)
    builder = rw.builder
    operands = list(call._operands)
    operands[left] = padded(rw, operands[left], (m, k))
    operands[right] = padded(rw, operands[right], (k, n))
    added = factors_of(product.callee).added
    if added is not None:
        bias = call.arguments.as_dict()[added]
        assert isinstance(bias, aten.OperandAttr)
        value = operands[bias.index]
        assert isinstance(value.type, TensorType)
        # Dimensions of size 1 are broadcast.
        amounts = [0 if size == 1 else p for size, p in
                  zip(value.type.shape, (m, n)[2 - value.type.rank :], strict=True)]  # fmt: skip
        operands[bias.index] = padded(rw, value, amounts)
    result_type = call.results[0].type
    assert isinstance(result_type, TensorType)
    shape = (*result_type.shape[:-2], product.m + m, product.n + n)
    attributes: dict[str, A.Attribute] = {
        "callee": A.StringAttr(product.callee),
        "arguments": call.attributes["arguments"],
        "eager_strides": A.ArrayAttr([A.DimsAttr(contiguous_strides(shape))]),
    }
    types = [result_type.with_shape(shape)]
    larger = builder.insert(graph.CallAten(operands, types, attributes, (), call.location))
    rw.replace(call, [cut(builder, larger.results[0], result_type)])


def padded(rw: Rewriter, value: Value, amounts: Any) -> Value:
    """`value` with zeros after the end of its last dimensions.

    Where it is computed by elements, its other users read a part of the padded array: then there
    is one array, which the kernel that computes it writes, and no copy.
    """
    type_ = value.type
    assert isinstance(type_, TensorType)
    high = [0] * (type_.rank - len(amounts)) + list(amounts)
    if not any(high):
        return value
    source, order = unpermuted(value)
    back = [high[order.index(dim)] for dim in range(type_.rank)]
    whole = _padded_before(source, back)
    if whole is None:
        if not is_computed(source) or len(list(source.users)) == 1 or is_seen(source):
            return _pad(rw.builder, value, high)
        whole = _padded_for_all(rw, source, back)
    if order == list(range(type_.rank)):
        return whole
    permuted: Value = rw.builder.value(graph.Permute, whole, permutation=order)
    return permuted


def _padded_for_all(rw: Rewriter, source: Value, high: Sequence[int]) -> Value:
    """The padded array of `source`, of which all its users read a part from now on."""
    assert source.defining_op is not None and isinstance(source.type, TensorType)
    builder = rw.after(source.defining_op)
    whole = _pad(builder, source, high)
    pad = whole.defining_op
    part = cut(builder, whole, source.type)
    rw.replace_uses(source, part, lambda user: user is not pad)
    return whole


def _padded_before(part: Value, high: Sequence[int]) -> Value | None:
    """The array of which `part` was cut off, if that is `part` with `high` zeros more."""
    assert isinstance(part.type, TensorType)
    sizes = tuple(size + more for size, more in zip(part.type.shape, high, strict=True))
    maker = part.defining_op
    while isinstance(maker, graph.Slice) and maker.start == 0 and maker.step == 1:
        part = maker.source
        maker = part.defining_op
    if not isinstance(maker, graph.Pad) or any(maker.low):
        return None
    assert isinstance(part.type, TensorType)
    zero = graph.scalar_attribute(0, part.type.element)
    return part if part.type.shape == sizes and maker.attributes["value"] is zero else None


def _pad(builder: Builder, value: Value, high: Sequence[int]) -> Value:
    type_ = value.type
    assert isinstance(type_, TensorType)
    shape = [size + more for size, more in zip(type_.shape, high, strict=True)]
    zero = graph.scalar_attribute(0, type_.element)
    return builder.value(
        graph.Pad, value, low=[0] * type_.rank, high=list(high), value=zero,
        result_types=type_.with_shape(shape),
    )  # fmt: skip


def unpermuted(value: Value) -> tuple[Value, list[int]]:
    """What a value is a permutation of, and that permutation."""
    assert isinstance(value.type, TensorType)
    order = list(range(value.type.rank))
    while isinstance(value.defining_op, graph.Permute):
        inner = list(value.defining_op.permutation)
        order = [inner[dim] for dim in order]
        value = value.defining_op.source
    return value, order


def is_computed(value: Value) -> bool:
    """Whether a value is computed by elements, so that a padded one is as easily computed."""
    return isinstance(value.defining_op, graph.PointwiseOp | graph.Cast | graph.Select)


def is_seen(value: Value) -> bool:
    """Whether a value, or a view of it, is a result or an operand of a call that takes exact
    strides: a part of a larger array would have to be copied for these."""
    for user in value.users:
        if isinstance(user, func.ReturnOp | graph.UpdateInput):
            return True
        if isinstance(user, graph.CallAten) and user.callee not in ANY_STRIDES:
            return True
        if ViewLike in user.traits and is_seen(user.results[0]):
            return True
    return False


def cut(builder: Builder, value: Value, type_: TensorType) -> Value:
    """The first elements of each dimension, so many as `type_` has."""
    for dim, size in enumerate(type_.shape):
        current = value.type
        assert isinstance(current, TensorType)
        if current.shape[dim] != size:
            smaller = graph.replace_size(current, dim, size)
            value = builder.value(
                graph.Slice, value, dim=dim, start=0, step=1, result_types=smaller
            )
    return value


@attrs.frozen
class ProductPadding:
    """What the pattern has to know: the pass's options, and the context that measures."""

    options: PadMatmul
    context: PassContext


@register_pass
class PadMatmul(PatternPass):
    """Pads the factors of matrix products with zeros so that their sizes are aligned.

    Sizes m, k and n of `mm`, `bmm` and `addmm` are raised to the next multiple of 8 (16-bit
    floats) or 4 (f32); symbolic sizes and sizes of 1 stay. Only where the product is
    compute-bound (mnk / (mk + kn + mn) over half of the target's operations per byte), and only if
    a measurement says that it pays, paddings and all. The context's `measure` measures (a function
    of a `Product`), which torch.compile gives; without one, or where it can't tell, the rule alone
    decides. What computes a factor by elements writes the zeros, too; where others read that array,
    they read a part of the padded one.

    force: pad whatever the rule and the measurement say. balance: operations per byte (0: the
    target's). least_speedup: what is kept has to be more times faster than this.

    Before:
        %y = graph.call_aten %a, %b {callee = "aten.mm.default", ...} :
          (tensor<512x510xf32>, tensor<510x512xf32>) -> tensor<512x512xf32>
    After:
        %p = graph.pad %a {low = #sym.dims<[0, 0]>, high = #sym.dims<[0, 2]>, value = 0.0 : f32}
        %q = graph.pad %b {low = #sym.dims<[0, 0]>, high = #sym.dims<[2, 0]>, value = 0.0 : f32}
        %y = graph.call_aten %p, %q {callee = "aten.mm.default", ...} :
          (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
    """

    name = "pad-matmul"
    summary = "align the sizes of matrix products that then run faster"
    anchor = "func.func"
    preserves = "real"
    asks_target = True
    force: bool = False
    balance: float = 0.0
    least_speedup: float = 1.1

    patterns = (pad_factors,)

    def prepare(self, op: Operation, context: PassContext) -> ProductPadding:
        return ProductPadding(self, context)

    def objection(self, product: MatrixProduct, context: PassContext) -> str | None:
        """Why a product is better not padded; None when it is."""
        if self.force:
            return None
        bits = 16 if product.dtype in ("float16", "bfloat16") else 32
        half = (self.balance or target_of(context).operations_per_byte(bits)) / 2
        reached = intensity(product)
        if reached <= half:
            return f"it is not compute-bound ({reached:.0f} operations a byte, {half:.0f} needed)"
        speedup = context.measure(product) if context.measure else None
        if speedup is not None and speedup <= self.least_speedup:
            return f"padded, it is {speedup:.2f} times as fast"
        return None


__all__ = ["PadMatmul", "MatrixProduct", "intensity", "product_of"]
