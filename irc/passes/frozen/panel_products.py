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
from irc.dialects.kernel.dots import rows_of, split_rows_of
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
from irc.passes.frozen.weight_parts import parts_of, sum_of
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
    lay = lay_out_parts if is_split(product) else lay_out
    state.panels[product] = lay(rw.builder, product, *form)
    return True


def is_split(product: graph.DotGeneral) -> bool:
    """Whether a product reads its right factor as parts of bf16, by its schedule."""
    return bool(_entries(product).get("products") == A.StringAttr("bf16x6"))


def _entries(product: graph.DotGeneral) -> dict[str, A.Attribute]:
    """Those of a product's schedule by which its right factor lies: of several for sizes those of
    the smallest. More rows can pack it, which few have no time for."""
    schedule = product.schedule
    entries = schedule.entries.as_dict() if isinstance(schedule, ScheduleAttr) else {}
    variants = entries.get("variants")
    if isinstance(variants, A.ArrayAttr) and len(variants):
        entries = next(iter(variants)).as_dict()  # type: ignore[attr-defined]
    return entries


def lay_out(
    builder: Builder, product: graph.DotGeneral, panel: int, group: int = 1, together: int = 1
) -> Value:
    """Have a product read its right factor through panels of so many columns, in which `group`
    terms of a column are side by side; gives the panels, [batch, panels, depth, panel, group]."""
    layout = _PanelLayout.of(product, panel, group, together)
    panels = layout.panels(builder, product.right)
    product.operands = [product.left, layout.read(builder, panels)]
    return panels


def lay_out_parts(
    builder: Builder, product: graph.DotGeneral, panel: int, group: int, together: int
) -> Value:
    """Have a product read its right factor as the sum of three parts of bf16, each through such
    panels; gives the panels of all, [parts, batch, panels, depth, panel, group]."""
    layout = _PanelLayout.of(product, panel, group, together)
    parts = [layout.panels(builder, part) for part in parts_of(builder, product.right)]
    shape = tensor_type(parts[0]).shape
    rows = [reshaped(builder, part, (1, *shape)) for part in parts]
    every: Value = builder.value(graph.Concat, rows, dim=0)
    one = graph.replace_size(tensor_type(every), 0, 1)
    lines = [
        builder.value(graph.Slice, every, dim=0, start=number, step=1, result_types=one)
        for number in range(len(parts))
    ]
    read = [layout.read(builder, reshaped(builder, line, shape)) for line in lines]
    product.operands = [product.left, sum_of(builder, read)]
    return every


@attrs.frozen
class _PanelLayout:
    """How a product's right factor lies in panels. order: its dimensions as batch, columns and
    depth. before, columns, after: the sizes of these. count: of panels. terms: the last size of the
    depth, in whole groups."""

    order: list[int]
    before: list[int]
    columns: int
    after: list[int]
    count: int
    panel: int
    terms: int
    group: int

    @classmethod
    def of(
        cls, product: graph.DotGeneral, panel: int, group: int, together: int
    ) -> _PanelLayout:
        """That of so many columns in a panel, of which tiles read so many together."""
        shape = [size for size in tensor_type(product.right).shape if isinstance(size, int)]
        (columns,), depth = product.columns, _depth_order(product)
        batch = list(product.right_batch)
        before, after = [shape[d] for d in batch], [shape[d] for d in depth]
        count = -(-shape[columns] // (panel * together)) * together
        terms = -(-after[-1] // group) * group
        order = [*batch, columns, *depth]
        return cls(order, before, shape[columns], after, count, panel, terms, group)

    @property
    def _split(self) -> tuple[list[int], list[int]]:
        """The sizes of [batch, panels, panel, depth, group], and the order of dimensions that makes
        it [batch, panels, depth, panel, group]."""
        sizes = [*self.before, self.count, self.panel, *self.after[:-1], self.terms // self.group,
                 self.group]  # fmt: skip
        order = list(range(len(sizes)))
        order.insert(-1, order.pop(len(self.before) + 1))
        return (sizes, order) if self.group > 1 else (sizes[:-1], order[:-1])

    def panels(self, builder: Builder, value: Value) -> Value:
        """The factor, or a part of it, in panels."""
        more = [0] * len(self.order)
        more[len(self.before)] = self.count * self.panel - self.columns
        more[-1] = self.terms - self.after[-1]
        wide = with_zeros(builder, _permutation(builder, value, self.order), more)
        sizes, order = self._split
        panels: Value = builder.value(
            graph.Permute, reshaped(builder, wide, sizes), permutation=order
        )
        return panels

    def read(self, builder: Builder, panels: Value) -> Value:
        """The elements of panels, in the factor's order."""
        lines: Value = builder.value(
            graph.Permute, panels, permutation=_inverse(self._split[1])
        )
        sizes = [*self.before, self.count * self.panel, *self.after[:-1], self.terms]
        whole = reshaped(builder, lines, sizes)
        whole = cut(builder, whole, [*self.before, self.columns, *self.after])
        return _permutation(builder, whole, _inverse(self.order))


def _depth_order(product: graph.DotGeneral) -> list[int]:
    """The dimensions of the right factor that are summed over, as the terms of a panel follow each
    other: channels, which come first, behind the taps of a window."""
    first, *taps = product.right_depth
    return [*taps, first]


def panel_of(product: graph.DotGeneral, target: Target) -> tuple[int, int, int] | str:
    """How many columns a panel of the constant right factor has, how many terms of a column are
    side by side, and how many panels tiles read together, or why there are none."""
    vectors = _entries(product).get("tile_vectors")
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
        return panel, 1, 1  # which is no matrix
    if any(type_.shape[d] != 1 for d in _depth_order(product)[:-1]):
        # Kernels read groups along one axis of the depth.
        return "its parts lie along several axes" if is_split(product) else (panel, 1, 1)
    depth = type_.shape[_depth_order(product)[-1]]
    split = split_rows_of(type_.element) if is_split(product) else None
    rows, dot = split or rows_of(type_.element), grouped(type_.element, target)
    if rows is not None and set(rows.sets) <= set(target.features.sets):
        if panel in (rows.tile[1], 2 * rows.tile[1]) and not depth % rows.tile[2]:
            return rows.tile[1], rows.group, panel // rows.tile[1]
    if is_split(product):
        return "registers of whole tiles don't take its parts"
    return panel, 1 if dot is None else dot.group, 1


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

    The right factor of a `graph.dot_general` whose schedule (or, of its `variants` for sizes, the
    first) says `tile_vectors` becomes a constant
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
