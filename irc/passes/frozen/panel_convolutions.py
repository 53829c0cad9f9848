"""The pass `panel-convolutions`."""

from __future__ import annotations

from typing import Any

from irc.analysis.channels_last import CONVOLUTION
from irc.analysis.loop import estimate, points
from irc.analysis.pixel_ways import pixels_in_parts
from irc.analysis.processor_ways import panels_speed, whole_tiles
from irc.dialects import aten, graph
from irc.dialects.graph.inferred import tensor_type
from irc.dialects.kernel.dots import SPLIT_ROWS
from irc.dialects.loop import ScheduleAttr
from irc.ir import attributes as A
from irc.ir.core import Operation, Value
from irc.ir.passes import PassContext, register_pass
from irc.ir.rewrite.passes import PatternPass
from irc.ir.rewrite.patterns import pattern
from irc.ir.types import bf16, f32
from irc.options.options import DEFAULT
from irc.passes.frozen.own_convolutions import Convolutions, unfit
from irc.passes.frozen.panel_products import lay_out_products
from irc.passes.graph.contractions.convolutions import convolution_form, overlapping
from irc.passes.graph.contractions.measured import panels_for, parts_schedule
from irc.passes.kernel.cpu.contraction.register_tiles import best_tile
from irc.target import Target, target_of


# convolution(x, w) -> permute(dot_general(x, reshape(w)))
@pattern(graph.CallAten, name="graph.panel_convolution", counted="rewritten")
def rewrite(call: Any, rw: Any) -> Any:
    if call.callee != CONVOLUTION:
        return rw.no_match("it is no convolution")
    state: Convolutions = rw.state
    reason = unfit(call, state.constants, (f32, bf16)) or overlapping(call)
    reason = reason or state.options.refusal(call, state.target)
    form = reason or convolution_form(call)
    if isinstance(form, str):
        return rw.decline(f"is not computed by a kernel of ours: {form}")
    rw.replace(call, [form(rw.builder, schedule_of(call, state.target, state.options.parts))])
    return True


def schedule_of(call: graph.CallAten, target: Target, parts: bool) -> A.Attribute | None:
    """The entries of a product in panels: of vectors of the fastest tile for its sizes, or as
    registers of whole tiles read them. parts: whether f32 may be cut into parts for these."""
    element = tensor_type(call.results[0]).element
    if element is f32 and parts and pixels_in_parts(call, target, frozen=True):
        return parts_schedule(2 * SPLIT_ROWS[f32].tile[1] // target.lanes(f32))
    if whole_tiles(element, target) is not None:
        return panels_for(target, element).attribute()
    entries: dict[str, A.Attribute] = {"tile_vectors": A.IntegerAttr(_vectors(call, target))}
    return ScheduleAttr("cpu", A.DictAttr(entries))


#: What the library applies faster: its result's readers tell.
FUNCTIONS = (graph.Sigmoid, graph.Tanh, graph.Erf)


def is_followed_by_function(value: Value) -> bool:
    """Whether a reader of a value, or a reader of that, is a function such as a sigmoid."""
    readers = list(value.users)
    readers += [further for op in readers for result in op.results for further in result.users]
    return any(isinstance(op, FUNCTIONS) for op in readers)


def _sizes(call: graph.CallAten) -> tuple[int, int, int]:
    """Rows, columns and depth of a convolution's product: places, channels out, and elements of a
    window."""
    result, weight = tensor_type(call.results[0]), aten.arguments_of(call)["weight"]
    columns, *depth = tensor_type(weight).shape
    return points((result.shape[0], *result.shape[2:])), estimate(columns), points(depth)


def _vectors(call: graph.CallAten, target: Target) -> int:
    """The vectors of a panel: those of the tile that takes least time."""
    rows, columns, _ = _sizes(call)
    most = target.features.most_vectors
    tile = best_tile(target, target.lanes(f32), rows, columns, range(1, 65), range(1, most + 1))
    return tile[1]


def _narrow_refusal(call: graph.CallAten, target: Target) -> str | None:
    """Why a convolution of 16 bits is left to the library: it isn't one of single pixels, whose
    terms lie side by side, or the processor's figures are against it."""
    taps = tensor_type(aten.arguments_of(call)["weight"]).shape[2:]
    if set(taps) != {1}:
        return f"terms of its {'x'.join(map(str, taps))} windows lie apart"
    rows, columns, depth = _sizes(call)
    speed = panels_speed((rows, depth, columns), tensor_type(call.results[0]).element, target)
    if speed < 100 * target.features.sure_products:
        return f"irc has {speed} % of the library's speed for {columns} channels of {rows} places"
    return None


@register_pass
class PanelConvolutions(PatternPass):
    """Computes convolutions of pixels or patches with constant weights in kernels of our own.

    Of f32, and of bf16 where they are of single pixels and the processor's figures say so. 1x1 ones
    with any stride, and others whose windows don't overlap (the patches that a
    transformer makes of an image); one group, no padding, any sizes. A convolution becomes a
    product of the image's windows, and its weights are laid out once in panels of as many vectors as the tile that is
    fastest for its sizes, which its schedule says (`tile_vectors`). What follows it is computed
    along with its sums. Remarks say of each convolution why not: overlapping windows, few channels
    or places, an activation that the library applies faster.

    choosy: leave those to the library that it is estimated to be as fast for. parts: cut images and
    weights into parts of bf16 for registers of whole tiles, where that is faster.

    Before:
        %w = graph.constant {value = #irc.resource<"w"> : tensor<64x256x1x1xf32>} : tensor<64x256x1x1xf32>
        %y = graph.call_aten %x, %w {callee = "aten.convolution.default", ...} : (...) -> ...
    After:
        %p = graph.constant {value = #irc.resource<"p"> : tensor<1x256x64xf32>} : tensor<1x256x64xf32>
        %t = graph.permute %p {permutation = array<i64: 0, 2, 1>} : (...) -> tensor<1x64x256xf32>
        %r = graph.reshape %t : (tensor<1x64x256xf32>) -> tensor<64x256xf32>
        %s = graph.dot_general %x, %r {schedule = #loop.schedule<cpu, tile_vectors = 4 : i64>, ...}
        %y = graph.permute %s {permutation = array<i64: 0, 3, 1, 2>} : (...) -> ...
    """  # noqa: E501

    name = "panel-convolutions"
    summary = "compute convolutions of pixels or patches with constant weights ourselves"
    anchor = "func.func"
    preserves = "real"
    asks_target = True
    choosy: bool = True
    parts: bool = DEFAULT.split_products

    patterns = (rewrite,)

    def prepare(self, op: Operation, context: PassContext) -> Convolutions | None:
        return Convolutions.of(self, target_of(context))

    def run(self, op: Operation, context: PassContext) -> None:
        super().run(op, context)
        target = target_of(context)
        if not target.is_gpu:
            lay_out_products(op, target, context)

    def refusal(self, call: graph.CallAten, target: Target) -> str | None:
        """Why a convolution is left to the library; None where it isn't."""
        if not self.choosy:
            return None
        rows, columns, depth = _sizes(call)
        least = target.panel_pixels, target.panel_results, target.panel_channels
        if any(size < few for size, few in zip((rows, columns, depth), least, strict=True)):
            return f"{depth} elements to {columns} channels for {rows} places are few"
        panel = _vectors(call, target) * target.lanes(f32)
        empty = 1 - columns / (-(-columns // panel) * panel)
        if empty > target.panel_empty:
            return f"{columns} channels leave {empty:.0%} of their panels empty"
        if is_followed_by_function(call.results[0]):
            return "a function of its result is left to the library"
        element = tensor_type(call.results[0]).element
        return None if element is f32 else _narrow_refusal(call, target)


__all__ = ["PanelConvolutions"]
