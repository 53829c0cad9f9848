"""The pass `merge-linears`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irc.analysis.constant_values import ConstantValues, cone
from irc.dialects import func, graph
from irc.dialects.graph.inferred import tensor_type
from irc.ir.builder import Builder
from irc.ir.core import Operation, Value
from irc.ir.passes import Pass, PassContext, register_pass
from irc.passes.common.tensors import reshaped
from irc.passes.frozen.weighted_products import (
    WeightedProduct,
    weighted_product,
)


@register_pass
class MergeLinears(Pass):
    """Makes one product of linears with one input and constant weights of equal sizes.

    All of them have a bias of one element per column (constant, and of the columns' sizes, or
    with a leading size of 1), or none has. Of more than `limit` linears so many are merged at a
    time, so that results wanted much later don't all wait in memory.

    Before:
        %q = graph.call_aten %x, %a {callee = "aten.mm.default", ...} : ... -> tensor<4x8xf32>
        %k = graph.call_aten %x, %b {callee = "aten.mm.default", ...} : ... -> tensor<4x8xf32>
    After:
        %ab = graph.concat %a, %b {dim = 1 : i64} : ... -> tensor<6x16xf32>
        %qk = graph.call_aten %x, %ab {callee = "aten.mm.default", ...} : ... -> tensor<4x16xf32>
        %q = graph.slice %qk {dim = 1 : i64, start = #sym<0>, step = 1 : i64} : ...
        %k = graph.slice %qk {dim = 1 : i64, start = #sym<8>, step = 1 : i64} : ...
    """

    name = "merge-linears"
    summary = "compute linears with one input and equal sizes at once"
    anchor = "func.func"
    preserves = "real"
    limit: int = 8

    def run(self, op: Operation, context: PassContext) -> None:
        assert isinstance(op, func.FuncOp)
        constants = ConstantValues()
        groups: dict[Any, list[WeightedProduct]] = {}
        for inner in op.block.ops:
            product = weighted_product(inner, constants)
            if product is None or product.is_convolution:
                continue
            key = product.source, product.weight.type, product.permuted, product.bias is None
            groups.setdefault(key, []).append(product)
        for calls in groups.values():
            for start in range(0, len(calls), max(self.limit, 2)):
                group = calls[start : start + max(self.limit, 2)]
                if len(group) > 1 and context.spend("merge-linears", group[0].call):
                    merge(group)
                    context.count("merged", len(group))


def merge(group: Sequence[WeightedProduct]) -> None:
    """Replace linears by slices of one, which stands where the first of them stood."""
    first = group[0]
    hoist([v for p in group for v in (p.weight, p.bias) if v is not None], first.call)
    builder = Builder.before(first.call)
    columns = first.channels
    weight = joined(builder, [p.weight for p in group], first.weight_dim)
    biases = [reshaped(builder, p.bias, (columns,)) for p in group if p.bias is not None]
    bias = joined(builder, biases, 0) if biases else None
    whole = first.replaced(builder, weight, bias)
    parts = [
        builder.value(
            graph.Slice, whole, dim=1, start=number * columns, step=1,
            result_types=product.call.results[0].type,
        )
        for number, product in enumerate(group)
    ]  # fmt: skip
    for part, product in zip(parts, group, strict=True):
        part.name_hint = product.call.results[0].name_hint
        product.call.replace_with([part])


def joined(builder: Builder, values: Sequence[Value], dim: int) -> Value:
    """Tensors of equal sizes one after another along `dim`."""
    type_ = tensor_type(values[0])
    size = type_.shape[dim]
    assert isinstance(size, int)
    wide = graph.replace_size(type_, dim, size * len(values))
    return builder.value(graph.Concat, list(values), dim=dim, result_types=wide)


def hoist(values: Sequence[Value], anchor: Operation) -> None:
    """Move all that constants are made of to stand before `anchor`."""
    block = anchor.parent
    assert block is not None
    for op in cone(values):
        if not op.is_before_in_block(anchor):
            op.detach()
            block.insert_before(op, anchor)


__all__ = ["MergeLinears"]
