"""The pass `panel-products`."""

from __future__ import annotations

from typing import Any

import attrs

from irc.dialects import graph
from irc.dialects.kernel.dots import rows_of
from irc.dialects.loop import ScheduleAttr
from irc.ir import attributes as A
from irc.ir.core import Operation, Value
from irc.ir.module import ModuleOp
from irc.ir.passes import PassContext, register_pass
from irc.ir.rewrite.passes import PatternPass, apply_patterns
from irc.ir.rewrite.patterns import pattern
from irc.ir.types import TensorType, bf16, f16, f32
from irc.passes.frozen.fold_constants import erase_unused, fold
from irc.passes.graph.pad_matmul import unpermuted
from irc.target import Target, target_of

FLOATS = (f32, bf16, f16)


@attrs.frozen
class LaidOut:
    """What the pattern has to know: the CPU. panels: what it made."""

    target: Target
    panels: list[Value] = attrs.field(factory=list)


# dot_general(x, w) -> dot_general(x, slice(reshape(permute(panels of w))))
@pattern(graph.DotGeneral, name="graph.panel_product", counted="rewritten")
def rewrite(product: Any, rw: Any) -> Any:
    form = panel_of(product, rw.state.target)
    if isinstance(form, str):
        return rw.no_match(form)
    panel, group = form
    depth, columns = product.right.type.shape
    builder = rw.builder
    weight, order = unpermuted(product.right)
    if order == [0, 1]:
        weight = builder.value(graph.Permute, weight, permutation=[1, 0])
    count = -(-columns // panel)
    wide = _padded(builder, weight, count * panel - columns)
    if group == 1:
        rows = _reshaped(builder, wide, (count, panel, depth))
        there, back = [0, 2, 1], [1, 0, 2]
    else:
        rows = _reshaped(builder, wide, (count, panel, depth // group, group))
        there, back = [0, 2, 1, 3], [1, 3, 0, 2]
    panels = builder.value(graph.Permute, rows, permutation=there)
    rw.state.panels.append(panels)
    lines = builder.value(graph.Permute, panels, permutation=back)
    right = _reshaped(builder, lines, (depth, count * panel))
    if count * panel != columns:
        right = builder.value(
            graph.Slice, right, dim=1, start=0, step=1, result_types=product.right.type
        )
    product.operands = [product.left, right]
    return True


def panel_of(product: graph.DotGeneral, target: Target) -> tuple[int, int] | str:
    """How many columns a panel of the constant right factor has, and how many terms of a column are
    side by side, or why there are none."""
    schedule = product.attributes.get("schedule")
    entries = schedule.entries.as_dict() if isinstance(schedule, ScheduleAttr) else {}
    vectors = entries.get("tile_vectors")
    if not isinstance(vectors, A.IntegerAttr):
        return "its schedule says nothing of vectors"
    type_ = product.right.type
    assert isinstance(type_, TensorType)
    source, _ = unpermuted(product.right)
    if not isinstance(source.defining_op, graph.Constant):
        return "its right factor is no constant, or one in panels"
    if type_.element not in FLOATS or type_.rank != 2 or tuple(product.right_depth) != (0,):
        return "its right factor is no matrix of floats"
    if product.accumulator is not f32:
        return "it is not summed up in f32"
    if not all(isinstance(size, int) for size in type_.shape) or 0 in type_.shape:
        return "its right factor has no elements"
    panel = int(vectors.value) * target.lanes(f32)
    rows = rows_of(type_.element)
    if rows is None or not set(rows.sets) <= set(target.features.sets):
        return panel, 1
    depth, columns = type_.shape
    left: Any = product.left.type
    one = all(n == 1 for k, n in enumerate(left.shape) if k not in product.left_depth)
    fits = panel in (rows.tile[1], 2 * rows.tile[1]) and not one  # which is no matrix
    return panel, rows.group if fits and not depth % rows.tile[2] and not columns % panel else 1


def _padded(builder: Any, weight: Value, more: int) -> Value:
    """A matrix with rows of zeros behind it."""
    if not more:
        return weight
    type_: Any = weight.type
    rows, depth = type_.shape
    zero = graph.scalar_attribute(0, type_.element)
    wide: Value = builder.value(
        graph.Pad, weight, low=[0, 0], high=[more, 0], value=zero,
        result_types=type_.with_shape((rows + more, depth)),
    )  # fmt: skip
    return wide


def _reshaped(builder: Any, value: Value, shape: tuple[int, ...]) -> Value:
    type_: Any = value.type
    other: Value = builder.value(graph.Reshape, value, result_types=type_.with_shape(shape))
    return other


@register_pass
class PanelProducts(PatternPass):
    """Lays the constant factors of irc's own products out once, as their kernels read them.

    The right factor of a `graph.dot_general` whose schedule says `tile_vectors` becomes a constant
    [columns / panel][depth][panel], a panel being so many vectors: 48 columns with AVX-512, 16 with
    AVX2. Where registers of whole tiles multiply its elements (`irc.dialects.kernel.dots`), a panel
    is as these take it: of bf16 [columns / 32][depth / 2][32][2]. What the product reads are its elements in their order, and kernels pack nothing.
    `choose-contractions` measures whether that is faster than the library on its packed weights.
    A GPU reads weights as they are.

    Before:
        %w = graph.constant {value = #irc.resource<"w"> : tensor<768x96xf32>} : tensor<768x96xf32>
        %y = graph.dot_general %x, %w {schedule = #loop.schedule<cpu, tile_vectors = 3 : i64>, ...}
    After:
        %p = graph.constant {value = #irc.resource<"p"> : tensor<2x768x48xf32>} : tensor<2x768x48xf32>
        %t = graph.permute %p {permutation = array<i64: 1, 0, 2>} : (...) -> tensor<768x2x48xf32>
        %r = graph.reshape %t : (tensor<768x2x48xf32>) -> tensor<768x96xf32>
        %y = graph.dot_general %x, %r {schedule = #loop.schedule<cpu, tile_vectors = 3 : i64>, ...}
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
        state = LaidOut(target)
        apply_patterns(op, self.patterns, context, state)
        module = op.parent_op
        if state.panels and isinstance(module, ModuleOp):
            fold(state.panels, module, context)
            erase_unused(op)


__all__ = ["PanelProducts", "panel_of"]
