"""The pass `pad-matmul`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from irc.analysis.product_ways import PADDED_LIBRARY, half_balance, is_compute_bound, ways_of
from irc.analysis.products import (
    PADDED,
    MatrixProduct,
    factors,
    intensity,
    is_computed,
    is_seen,
    padded_before,
    product_of,
    unpermuted,
)
from irc.dialects import aten, graph
from irc.dialects.aten.facts import factors_of
from irc.dialects.graph.inferred import tensor_type
from irc.ir import attributes as A
from irc.ir.core import Operation, Value
from irc.ir.passes import PassContext, register_pass
from irc.ir.rewrite.driver import Rewriter
from irc.ir.rewrite.passes import PatternPass
from irc.ir.rewrite.patterns import pattern
from irc.ir.types import TensorType, contiguous_strides, f32
from irc.options.options import DEFAULT, moved_rows
from irc.options.table import own_backends
from irc.passes.common.tensors import cut, with_zeros
from irc.target import target_of


# mm(a, b) -> slice(mm(pad(a), pad(b)))
@pattern(graph.CallAten, name="graph.pad_factors", counted="padded")
def pad_factors(call: Any, rw: Any) -> Any:
    if call.callee not in PADDED:
        return rw.no_match("it is no matrix product")
    product = product_of(call)
    if product is None:
        return rw.no_match("its sizes are aligned")
    why = rw.state.options.objection(call, product, rw.state.context)
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
    operands = list(call.operands)
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
    rw.replace(call, [cut(builder, larger.results[0], result_type.shape)])


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
    whole = padded_before(source, back)
    if whole is None:
        if not is_computed(source) or len(list(source.users)) == 1 or is_seen(source):
            whole = with_zeros(rw.builder, source, back)
        else:
            whole = _padded_for_all(rw, source, back)
    if order == list(range(type_.rank)):
        return whole
    permuted: Value = rw.builder.value(graph.Permute, whole, permutation=order)
    return permuted


def _padded_for_all(rw: Rewriter, source: Value, high: Sequence[int]) -> Value:
    """The padded array of `source`, of which all its users read a part from now on."""
    assert source.defining_op is not None and isinstance(source.type, TensorType)
    builder = rw.after(source.defining_op)
    whole = with_zeros(builder, source, high)
    pad = whole.defining_op
    part = cut(builder, whole, source.type.shape)
    rw.replace_uses(source, part, lambda user: user is not pad)
    return whole


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

    On a GPU padding is one of three ways (`irc.analysis.product_ways`): a kernel of irc's, which
    `products` may allow, reads and writes rows of any length, and a result that the caller sees is
    copied out of its padded memory. What takes the least time by the cost model is done.

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
    products: str = DEFAULT.max_autotune_gemm_backends

    patterns = (pad_factors,)

    def prepare(self, op: Operation, context: PassContext) -> ProductPadding:
        return ProductPadding(self, context)

    def objection(
        self, call: graph.CallAten, product: MatrixProduct, context: PassContext
    ) -> str | None:
        """Why a product is better not padded; None when it is."""
        if self.force:
            return None
        target = target_of(context)
        if not is_compute_bound(product, target, self.balance):
            half = half_balance(product, target, self.balance)
            return (f"it is not compute-bound ({intensity(product):.0f} operations a byte, "
                    f"{half:.0f} needed)")  # fmt: skip
        speedup = context.measure(product) if context.measure else None
        if speedup is not None and speedup <= self.least_speedup:
            return f"padded, it is {speedup:.2f} times as fast"
        own = "irc" in own_backends(self.products, target.is_gpu)
        if context.options is not None and not context.options.split_products:
            own = own and tensor_type(call.results[0]).element is not f32
        apart = moved_rows(context.options, target.is_gpu)
        ways = ways_of(call, target, own=own, apart=apart, measure=lambda _: speedup)
        if ways is None or ways.best == PADDED_LIBRARY:
            return None
        return f"another way is faster: {ways.told}"


__all__ = ["PadMatmul"]
