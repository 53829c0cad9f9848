"""The pass `winograd-convolutions`."""

from __future__ import annotations

import itertools
import math
import struct
from typing import Any

from irc.analysis.calls import integers
from irc.analysis.channels_last import CONVOLUTION
from irc.analysis.constant_values import ConstantValues
from irc.analysis.contraction import group_time, grouped
from irc.analysis.loop import estimate
from irc.analysis.processor_ways import whole_tiles
from irc.dialects import graph
from irc.dialects.graph.inferred import tensor_type
from irc.dialects.graph.winograd import TileLine, WinogradShape, lines_of, panel_size
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import Operation, Value
from irc.ir.definition import SEGMENTS
from irc.ir.passes import PassContext, register_pass
from irc.ir.rewrite.driver import Rewriter
from irc.ir.rewrite.passes import PatternPass
from irc.ir.rewrite.patterns import pattern
from irc.ir.types import TensorType, Type, bf16, element_bytes, f32, f64
from irc.passes.common.tensors import matrix_product, permuted, reshaped
from irc.passes.frozen.fold_batch_norms import converted
from irc.passes.frozen.own_convolutions import Convolutions, unfit
from irc.passes.frozen.pack_weights import operands_of, without_zeros
from irc.passes.graph.pad_matmul import padded
from irc.target import Target, target_of


def shapes_of(
    call: graph.CallAten, constants: ConstantValues, bits: int
) -> list[WinogradShape] | str:
    """What the kernel of a convolution could be like, or why there is none."""
    reason = unfit(call, constants, (f32, bf16))
    if reason is not None:
        return reason
    values, arguments = operands_of(call)
    image, weight = values["input"], values["weight"]
    assert image is not None and weight is not None
    batch, channels, high, wide = tensor_type(image).shape
    out, _, *taps = tensor_type(weight).shape
    assert isinstance(channels, int) and isinstance(out, int)
    lists = [integers(arguments[name]) for name in ("stride", "dilation", "padding")]
    if any(numbers is None for numbers in lists):
        return "its stride, dilation or padding is symbolic"
    stride, dilation, padding = ((n * 2)[:2] for n in lists if n is not None)
    if dilation != [1, 1]:
        return f"its dilation is {dilation}"
    groups = arguments["groups"].value
    if groups != 1:
        return f"it has {groups} groups"
    if min(padding) < 0:
        return f"its padding is {padding}"
    sides = zip(taps, stride, strict=True)
    lines = [lines_of(count, step) for count, step in sides if isinstance(count, int)]
    shapes = [
        WinogradShape(
            batch=batch, height=high, width=wide, channels=channels, channels_out=out, bits=bits,
            panel=panel_size(bits), padding=(padding[0], padding[1]), down=down, right=right,
        )
        for down, right in itertools.product(*lines)
    ]  # fmt: skip
    fewer = [shape for shape in shapes if shape.products < shape.taps * shape.results]
    taken = f"its weights are {'x'.join(map(str, taps))}, its stride {stride}"
    return fewer or f"no tile of it takes fewer products: {taken}"


def narrow_speed(element: Type, target: Target) -> float:
    """How many times as fast as f32 the library multiplies an element: that of vectors which add up
    groups of terms, infinite where registers hold whole tiles, or nothing is known."""
    if element is f32:
        return 1.0
    dot = grouped(element, target)
    if dot is None or whole_tiles(element, target) is not None:
        return math.inf
    return dot.group / group_time(dot, target)


def work(
    shape: WinogradShape, target: Target, element: Type = f32
) -> tuple[float, float]:
    """The direct convolution's work and ours, in multiplications of a core. Sizes that are not
    known count as estimated; all threads share the one's, as many as there are blocks ours.
    element: of the images; ours are multiplied as f32."""
    threads, byte = target.threads, target.winograd_byte
    pairs, products = shape.channels * shape.channels_out, shape.products
    ours_pairs = shape.channels * shape.panels * shape.panel
    pixels = estimate(shape.batch) * estimate(shape.out_sizes[0]) * estimate(shape.out_sizes[1])
    tiles = estimate(shape.tile_count)
    direct = pixels / threads / narrow_speed(element, target)
    direct = shape.taps * pairs * (direct + element_bytes(element) * byte)
    transforms = target.winograd_transform * (shape.channels + shape.channels_out)
    ours: float = products * (ours_pairs + transforms) * tiles
    blocks = max(estimate(shape.blocks), 1)
    ours = ours / min(threads, blocks) + products * ours_pairs * 4 * byte
    return direct, ours


def estimated(shape: WinogradShape, target: Target, element: Type = f32) -> str:
    """The estimate for people."""
    direct, ours = work(shape, target, element)
    sides = f"{shape.down.tile}x{shape.right.tile}"
    return (
        f"about {direct / ours:.2f} times less work ({shape.channels} channels to "
        f"{shape.channels_out}, {estimate(shape.tile_count)} tiles of {sides})"
    )


# convolution(x, w) -> winograd_conv(x, G w G')
@pattern(graph.CallAten, name="graph.winograd_convolution", counted="rewritten")
def rewrite(call: Any, rw: Any) -> Any:
    if call.callee != CONVOLUTION:
        return rw.no_match("it is no convolution")
    options, target = rw.state.options, rw.state.target
    shapes = shapes_of(call, rw.state.constants, options.vector_bits or target.vector_bits)
    if isinstance(shapes, str):
        return rw.decline(f"is not computed as Winograd does: {shapes}")
    element = tensor_type(call.results[0]).element
    shape = min(shapes, key=lambda shape: work(shape, target, element)[1])
    reason = options.refusal(shape, target, element)
    if reason is not None:
        return rw.decline(f"is not computed as Winograd does: {reason}")
    rw.remark(f"is computed as Winograd does: {estimated(shape, target, element)}")
    values, _ = operands_of(call)
    image, weight = values["input"], values["weight"]
    assert image is not None and weight is not None
    lines = shape.down, shape.right
    attributes: dict[str, A.Attribute] = {
        "padding": A.DenseIntsAttr(shape.padding),
        "taps": A.DenseIntsAttr(line.taps for line in lines),
        "stride": A.DenseIntsAttr(line.stride for line in lines),
        "tile": A.DenseIntsAttr(line.tile for line in lines),
    }
    image = without_zeros(image, attributes)
    factors = transformed(rw, weight, shape)
    bias = values.get("bias")
    operands = [image, factors] if bias is None else [image, factors, bias]
    attributes[SEGMENTS] = A.DenseIntsAttr((1, 1, int(bias is not None), 0))
    rw.replace(call, graph.WinogradConv(operands, call.result_types, attributes, (), call.location))
    return True


def transformed(rw: Rewriter, weight: Value, shape: WinogradShape) -> Value:
    """G w G' of a weight [out, in, *taps] in f64, as [panels, products, in, panel] of f32."""
    builder, panel, down, right = rw.builder, shape.panel, shape.down, shape.right
    out, inner = shape.channels_out, shape.channels
    wide = padded(rw, converted(builder, weight, f64), (-out % panel, 0, 0, 0))
    pairs = shape.panels * panel * inner
    lines = reshaped(builder, wide, (pairs * down.taps, right.taps))
    lines = matrix_product(builder, lines, _weight_matrix(builder, right))
    turned = reshaped(builder, lines, (pairs, down.taps, right.products))
    turned = reshaped(
        builder, permuted(builder, turned, (0, 2, 1)), (pairs * right.products, down.taps)
    )
    parts = matrix_product(builder, turned, _weight_matrix(builder, down))
    # A column of the tile's products, then its row.
    parts = reshaped(builder, parts, (shape.panels, panel, inner, right.products, down.products))
    parts = permuted(builder, parts, (0, 4, 3, 2, 1))
    parts = reshaped(builder, parts, (shape.panels, shape.products, inner, panel))
    return converted(builder, parts, f32)


def _weight_matrix(builder: Builder, line: TileLine) -> Value:
    """G', of taps by products."""
    rows = zip(*line.weight_matrix(), strict=True)
    numbers = [float(v) for row in rows for v in row]
    type_ = TensorType((line.taps, line.products), f64)
    data = struct.pack(f"<{len(numbers)}d", *numbers)
    return builder.value(graph.Constant, value=A.DenseAttr(type_, data), result_types=type_)


@register_pass
class WinogradConvolutions(PatternPass):
    """Rewrites convolutions with constant weights so that they take fewer multiplications, a quarter
    of those of 3x3 weights, where it is estimated to pay.

    Winograd's forms (`irc.dialects.graph.winograd`): weights of 2 to 5 taps in a direction, of up to 7 with a stride of 2, or one in one of them, any stride that
    leaves several taps on the same elements, dilation 1, one group, any padding,
    any sizes. The tile of results is that with the least estimated work. The weights are transformed by operations on the constant, in f64, which
    `fold-constants` computes once; they take as many times the memory as a tile has products for each tap, four times for 4x4 results of 3x3.
    Remarks say of each convolution why it was rewritten or not, with what the estimate is made of.

    Images of bf16 are multiplied as f32, half as fast as a library multiplies them where vectors
    add up pairs of terms.

    gain, narrow_gain: how many times less work the estimate must find, of f32 and of bf16. vector_bits: the width of the vector
    registers (0: the target's), by which the weights are laid out.

    Before:
        %w = graph.constant {value = #irc.resource<"w"> : tensor<64x64x3x3xf32>} : tensor<64x64x3x3xf32>
        %y = graph.call_aten %x, %w {callee = "aten.convolution.default", ...} : (...) -> ...
    After:
        %w = graph.constant {value = #irc.resource<"w"> : tensor<64x64x3x3xf32>} : tensor<64x64x3x3xf32>
        ...
        %u = graph.cast %t : (tensor<2x36x64x32xf64>) -> tensor<2x36x64x32xf32>
        %y = graph.winograd_conv %x, %u {padding = array<i64: 1, 1>, stride = array<i64: 1, 1>, taps = array<i64: 3, 3>, tile = array<i64: 4, 4>, ...} : (...) -> ...
    """  # noqa: E501

    name = "winograd-convolutions"
    summary = "rewrite convolutions with constant weights into Winograd's form"
    anchor = "func.func"
    preserves = "real"
    asks_target = True
    gain: float = 1.25
    narrow_gain: float = 1.1
    vector_bits: int = 0

    patterns = (rewrite,)

    def prepare(self, op: Operation, context: PassContext) -> Convolutions | None:
        return Convolutions.of(self, target_of(context))

    def refusal(
        self, shape: WinogradShape, target: Target, element: Type = f32
    ) -> str | None:
        """Why a convolution is left as it is; None where it pays."""
        direct, ours = work(shape, target, element)
        gain = self.gain if element is f32 else self.narrow_gain
        return None if direct >= gain * ours else estimated(shape, target, element)


__all__ = ["WinogradConvolutions", "shapes_of", "transformed", "work"]
