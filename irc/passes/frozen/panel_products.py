"""The pass `panel-products`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from irc.analysis.constant_values import ConstantValues
from irc.analysis.contraction import grouped
from irc.analysis.products import unpermuted
from irc.dialects import graph
from irc.dialects.graph.inferred import tensor_type
from irc.dialects.kernel.dots import rows_of
from irc.dialects.loop import ScheduleAttr
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import Operation, Value
from irc.ir.module import ModuleOp
from irc.ir.passes import PassContext, register_pass
from irc.ir.rewrite.passes import PatternPass, apply_patterns
from irc.ir.rewrite.patterns import pattern
from irc.ir.types import bf16, f16, f32
from irc.passes.common.tensors import cut, reshaped, with_zeros
from irc.passes.frozen.fold_constants import erase_unused, fold
from irc.target import Target, target_of

FLOATS = (f32, bf16, f16)


@attrs.frozen
class LaidOut:
    """What the pattern has to know: the CPU. panels: what it made, by the product."""

    target: Target
    panels: dict[Operation, Value] = attrs.field(factory=dict)


# dot_general(x, w) -> dot_general(x, slice(reshape(permute(panels of w))))
@pattern(graph.DotGeneral, name="graph.panel_product", counted="rewritten")
def rewrite(product: Any, rw: Any) -> Any:
    state: LaidOut = rw.state
    form = "it reads panels" if product in state.panels else panel_of(product, state.target)
    if isinstance(form, str):
        return rw.no_match(form)
    state.panels[product] = lay_out(rw.builder, product, *form)
    return True


def lay_out(builder: Builder, product: graph.DotGeneral, panel: int, group: int = 1) -> Value:
    """Have a product read its right factor through panels of so many columns, in which `group`
    terms of a column are side by side; gives the panels, [batch, panels, depth, panel, group]."""
    right = product.right
    shape = [size for size in tensor_type(right).shape if isinstance(size, int)]
    (columns,), depth = product.columns, _depth_order(product)
    order, place = [*product.right_batch, columns, *depth], len(product.right_batch)
    before, after = [shape[d] for d in order[:place]], [shape[d] for d in depth]
    count, terms = -(-shape[columns] // panel), -(-after[-1] // group) * group
    more = [0] * len(order)
    more[place], more[-1] = count * panel - shape[columns], terms - after[-1]
    wide = with_zeros(builder, _permutation(builder, right, order), more)
    # [batch, panels, panel, depth, group] -> [batch, panels, depth, panel, group]
    split = [*before, count, panel, *after[:-1], terms // group, group]
    there = list(range(len(split)))
    there.insert(-1, there.pop(place + 1))
    if group == 1:
        split, there = split[:-1], there[:-1]
    parts = reshaped(builder, wide, split)
    panels: Value = builder.value(graph.Permute, parts, permutation=there)
    lines: Value = builder.value(graph.Permute, panels, permutation=_inverse(there))
    whole = reshaped(builder, lines, [*before, count * panel, *after[:-1], terms])
    whole = cut(builder, whole, [*before, shape[columns], *after])
    product.operands = [product.left, _permutation(builder, whole, _inverse(order))]
    return panels


def _depth_order(product: graph.DotGeneral) -> list[int]:
    """The dimensions of the right factor that are summed over, as the terms of a panel follow each
    other: channels, which come first, behind the taps of a window."""
    first, *taps = product.right_depth
    return [*taps, first]


def panel_of(product: graph.DotGeneral, target: Target) -> tuple[int, int] | str:
    """How many columns a panel of the constant right factor has, and how many terms of a column are
    side by side, or why there are none."""
    schedule = product.schedule
    entries = schedule.entries.as_dict() if isinstance(schedule, ScheduleAttr) else {}
    vectors = entries.get("tile_vectors")
    if not isinstance(vectors, A.IntegerAttr):
        return "its schedule says nothing of vectors"
    type_ = tensor_type(product.right)
    if product.right not in ConstantValues() or _is_panels(product.right):
        return "its right factor is no constant, or one in panels"
    if type_.element not in FLOATS or len(product.columns) != 1 or not product.right_depth:
        return "its right factor is no matrix of floats"
    if product.accumulator is not f32:
        return "it is not summed up in f32"
    if 0 in type_.shape:
        return "its right factor has no elements"
    panel = int(vectors.value) * target.lanes(f32)
    left: Any = product.left.type
    if all(n == 1 for k, n in enumerate(left.shape) if k not in product.left_depth):
        return panel, 1  # which is no matrix
    if any(type_.shape[d] != 1 for d in _depth_order(product)[:-1]):
        return panel, 1  # kernels read groups along one axis of the depth
    depth, columns = (type_.shape[d] for d in (_depth_order(product)[-1], product.columns[0]))
    rows, dot = rows_of(type_.element), grouped(type_.element, target)
    if rows is not None and set(rows.sets) <= set(target.features.sets):
        fits = panel in (rows.tile[1], 2 * rows.tile[1])
        if fits and not depth % rows.tile[2] and not columns % panel:
            return rows.tile[1], rows.group
    return panel, 1 if dot is None else dot.group


def _is_panels(value: Value) -> bool:
    """Whether a value is read through panels: it is a view of a constant of other sizes."""
    source = value
    while isinstance(source.defining_op, graph.Permute | graph.Reshape | graph.Slice):
        source = source.defining_op.operands[0]
    sizes = [sorted(n for n in tensor_type(v).shape if n != 1) for v in (source, value)]  # type: ignore[type-var]
    return isinstance(source.defining_op, graph.Constant) and sizes[0] != sizes[1]


def _permutation(builder: Builder, value: Value, order: Sequence[int]) -> Value:
    """A permutation of a value, which may be one itself."""
    source, inner = unpermuted(value)
    places = [inner[d] for d in order]
    if places == list(range(len(places))):
        return source
    permuted: Value = builder.value(graph.Permute, source, permutation=places)
    return permuted


def _inverse(order: Sequence[int]) -> list[int]:
    return [order.index(d) for d in range(len(order))]


@register_pass
class PanelProducts(PatternPass):
    """Lays the constant factors of irc's own products out once, as their kernels read them.

    The right factor of a `graph.dot_general` whose schedule says `tile_vectors` becomes a constant
    [columns / panel][depth][panel], a panel being so many vectors: 48 columns with AVX-512, 16 with
    AVX2. Where registers of whole tiles, or vectors, multiply its elements in groups
    (`irc.dialects.kernel.dots`), a panel is as these take it: of bf16 [columns / 16][depth / 2][16]
    [2], or [columns / 48][depth / 2][48][2]. What the product reads are its elements in their order, and kernels pack nothing.
    `choose-contractions` measures whether that is faster than the library on its packed weights.
    A GPU reads weights as they are.

    Before:
        %w = graph.constant {value = #irc.resource<"w"> : tensor<768x96xf32>} : tensor<768x96xf32>
        %y = graph.dot_general %x, %w {schedule = #loop.schedule<cpu, tile_vectors = 3 : i64>, ...}
    After:
        %p = graph.constant {value = #irc.resource<"p"> : tensor<2x768x48xf32>} : tensor<2x768x48xf32>
        %t = graph.permute %p {permutation = array<i64: 0, 2, 1>} : (...) -> tensor<2x48x768xf32>
        %r = graph.reshape %t : (tensor<2x48x768xf32>) -> tensor<96x768xf32>
        %u = graph.permute %r {permutation = array<i64: 1, 0>} : (...) -> tensor<768x96xf32>
        %y = graph.dot_general %x, %u {schedule = #loop.schedule<cpu, tile_vectors = 3 : i64>, ...}
    """  # noqa: E501

    name = "panel-products"
    summary = "lay constant factors of irc's own products out in panels"
    anchor = "func.func"
    asks_target = True

    patterns = (rewrite,)

    def run(self, op: Operation, context: PassContext) -> None:
        target = target_of(context)
        if target.is_gpu:
            return
        lay_out_products(op, target, context)


def lay_out_products(function: Operation, target: Target, context: PassContext) -> None:
    """Lay the constant factors of a function's products out, once."""
    state, module = LaidOut(target), function.parent_op
    apply_patterns(function, (rewrite,), context, state)
    if state.panels and isinstance(module, ModuleOp):
        fold(list(state.panels.values()), module, context)
        erase_unused(function)


__all__ = ["PanelProducts", "lay_out_products", "panel_of"]
