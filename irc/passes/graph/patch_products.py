"""The pass `patch-products`."""

from __future__ import annotations

from typing import Any

import attrs

from irc.analysis.channels_last import BACKWARD, CONVOLUTION
from irc.analysis.loop import estimate
from irc.dialects import aten, graph
from irc.dialects.graph.inferred import tensor_type
from irc.ir.builder import Builder
from irc.ir.core import Operation, Value
from irc.ir.passes import PassContext, register_pass
from irc.ir.rewrite.passes import PatternPass
from irc.ir.rewrite.patterns import pattern
from irc.ir.symbols import Dim, dim_product
from irc.ir.types import FloatType, TensorType, Type, element_bytes
from irc.passes.common.tensors import cut, matrix_product, permuted, reshaped, with_zeros
from irc.passes.graph.contractions.convolutions import numbers_of, overlapping
from irc.passes.graph.contractions.gradients import BIAS, IMAGE, WEIGHT, gradient_of_bias
from irc.target import Target, target_of
from irc.target.costs import Cost


@attrs.frozen
class Patches:
    """An image cut into the windows of a convolution, which neither overlap nor leave gaps.

    shape: the image's, of which `used` is in windows (batch, channels, extents); counts: windows
    along each extent; window: their sizes.
    """

    element: Type
    shape: tuple[Dim, ...]
    used: tuple[Dim, ...]
    counts: tuple[Any, ...]
    window: tuple[Any, ...]

    @property
    def points(self) -> Dim:
        """How many windows there are."""
        return dim_product([self.shape[0], *self.counts])

    @property
    def depth(self) -> int:
        """The elements of a window, of all channels."""
        depth = dim_product([self.shape[1], *self.window])
        assert isinstance(depth, int)
        return depth

    @property
    def split(self) -> tuple[Dim, ...]:
        """Batch, channels, and windows and their size for each extent."""
        pairs = zip(self.counts, self.window, strict=True)
        return (*self.shape[:2], *(size for pair in pairs for size in pair))

    @property
    def order(self) -> list[int]:
        """The dimensions of `split` as a matrix has them: those of the windows, then of a point."""
        extents = range(len(self.counts))
        return [0, *(2 + 2 * k for k in extents), 1, *(3 + 2 * k for k in extents)]


def patches_of(call: graph.CallAten) -> Patches | str:
    """The patches that a convolution, or its backward, multiplies; why there are none."""
    arguments = aten.arguments_of(call)
    image, weight = (tensor_type(arguments[name]) for name in ("input", "weight"))
    if not isinstance(image.element, FloatType) or image.element.width != 16:
        return "its elements are not of 16 bits, and other floats have modes of their own"
    if arguments["transposed"] or any(arguments["output_padding"]):
        return "it is transposed, or its result has more places"
    numbers, reason = numbers_of(call, arguments), overlapping(call)
    if reason is not None or isinstance(numbers, str):
        return f"its windows are no patches: {reason}"
    extents, window = image.shape[2:], weight.shape[2:]
    if not all(isinstance(size, int) for size in (*image.shape[1:], *weight.shape)):
        return "its sizes are symbolic"
    if numbers[0] != tuple(window):
        return "its windows leave gaps"
    counts = tuple(have // size for have, size in zip(extents, window, strict=True))
    if 0 in (*image.shape, *weight.shape, *counts):
        return "there is nothing to compute"
    used = (*image.shape[:2], *(n * size for n, size in zip(counts, window, strict=True)))
    return Patches(image.element, image.shape, used, counts, tuple(window))


def objection(call: graph.CallAten, patches: Patches, target: Target) -> str | None:
    """Why the library computes a convolution faster; None where a product does."""
    pixel = estimate(patches.shape[1]) * element_bytes(patches.element)
    if pixel % target.pixel_bytes == 0:
        return f"the channels of a pixel fill {pixel} bytes, for which the library has fast kernels"
    weight = tensor_type(aten.arguments_of(call)["weight"])
    bytes_ = element_bytes(patches.element)
    points, results = estimate(patches.points), estimate(weight.shape[0])
    operations = 2 * points * patches.depth * results
    matrices = points * patches.depth + points * results + patches.depth * results
    image = bytes_ * estimate(dim_product(patches.shape))
    library = operations * 10**9 // target.narrow_convolution
    copied = target.time(Cost(far=2 * image + bytes_ * matrices, launches=1))
    product = copied + target.time(Cost(far=operations // target.operations_per_byte(16)))
    if product < library:
        return None
    both = f"{product * 1e-9:.1f} us, the library {library * 1e-9:.1f}"
    return f"a product of its patches takes {both}"


# conv(x, w) -> mm(patches of x, w)
@pattern(graph.CallAten, name="graph.multiply_patches", counted="multiplied")
def multiply_patches(call: Any, rw: Any) -> Any:
    if call.callee not in (CONVOLUTION, BACKWARD):
        return rw.no_match("it is no convolution")
    patches = patches_of(call)
    if isinstance(patches, str):
        return rw.no_match(patches)
    if any(r.has_uses and not isinstance(r.type, TensorType) for r in call.results):
        return rw.no_match("somebody reads what it doesn't give")
    why = objection(call, patches, rw.state)
    if why is not None:
        return rw.decline(f"the convolution's patches were not multiplied: {why}")
    replace = _forward if call.callee == CONVOLUTION else _backward
    rw.replace(call, replace(rw.before(call), call, patches))
    return True


def _forward(builder: Builder, call: graph.CallAten, patches: Patches) -> list[Value]:
    """The image of products of patches and weights, with the bias added by the product."""
    arguments = aten.arguments_of(call)
    weight = _matrix_of_weight(builder, arguments["weight"], patches)
    rows = matrix_product(
        builder, _matrix_of_patches(builder, arguments["input"], patches),
        permuted(builder, weight, (1, 0)), arguments["bias"],
    )  # fmt: skip
    results = tensor_type(weight).shape[0]
    pixels = reshaped(builder, rows, (patches.shape[0], *patches.counts, results))
    last = tensor_type(pixels).rank - 1
    return [permuted(builder, pixels, [0, last, *range(1, last)])]


def _backward(builder: Builder, call: graph.CallAten, patches: Patches) -> list[Value]:
    """The gradients that the call gives, of the image, the weight and the bias; what is no tensor
    is the call's, which nobody reads."""
    arguments, gradients = aten.arguments_of(call), list[Value](call.results)
    gradient = arguments["grad_output"]
    rank, results = tensor_type(gradient).rank, tensor_type(gradient).shape[1]
    pixels = permuted(builder, gradient, [0, *range(2, rank), 1])
    rows = reshaped(builder, pixels, (patches.points, results))
    asked = [isinstance(value.type, TensorType) for value in gradients]
    if asked[IMAGE]:
        weight = _matrix_of_weight(builder, arguments["weight"], patches)
        gradients[IMAGE] = _put_together(builder, matrix_product(builder, rows, weight), patches)
    if asked[WEIGHT]:
        left = permuted(builder, rows, (1, 0))
        right = _matrix_of_patches(builder, arguments["input"], patches)
        shape = tensor_type(gradients[WEIGHT]).shape
        gradients[WEIGHT] = reshaped(builder, matrix_product(builder, left, right), shape)
    if asked[BIAS]:
        gradients[BIAS] = gradient_of_bias(builder, call)
    return gradients


def _matrix_of_patches(builder: Builder, image: Value, patches: Patches) -> Value:
    """A row for each window."""
    split = reshaped(builder, cut(builder, image, patches.used), patches.split)
    rows = permuted(builder, split, patches.order)
    return reshaped(builder, rows, (patches.points, patches.depth))


def _put_together(builder: Builder, rows: Value, patches: Patches) -> Value:
    """The image of such rows, with zeros where no window is."""
    order = patches.order
    parts = reshaped(builder, rows, [patches.split[dim] for dim in order])
    back = [order.index(dim) for dim in range(len(order))]
    image = reshaped(builder, permuted(builder, parts, back), patches.used)
    sizes = zip(patches.shape, patches.used, strict=True)
    return with_zeros(builder, image, [have - used for have, used in sizes])


def _matrix_of_weight(builder: Builder, weight: Value, patches: Patches) -> Value:
    """A row for each channel that is computed."""
    return reshaped(builder, weight, (tensor_type(weight).shape[0], patches.depth))


@register_pass
class PatchProducts(PatternPass):
    """Computes convolutions whose windows don't overlap as matrix products, on a GPU.

    Where the windows are as long as their steps, as in the first layer of a vision transformer, the
    image is a matrix with a row for each window, and the convolution its product with the weights;
    so are its gradients. The library takes long for few channels, which fill no 16 bytes of a
    pixel: three of them to 768 in windows of 16x16 take an H200 107 us of bf16 for four images
    (`python -m bench.gpu_layouts`), the copy and the product less than ten. The target's figure
    `narrow_convolution` says how long. 16-bit floats alone: products of others may be of another
    precision than convolutions (TF32).

    Before:
        %y = graph.call_aten %x, %w {callee = "aten.convolution.default", ...} :
          (tensor<4x3x224x224xbf16>, tensor<768x3x16x16xbf16>) -> tensor<4x768x14x14xbf16>
    After:
        %r = graph.reshape %x : ... -> tensor<4x3x14x16x14x16xbf16>
        %p = graph.permute %r {permutation = array<i64: 0, 2, 4, 1, 3, 5>}
        %a = graph.reshape %p : ... -> tensor<784x768xbf16>
        %b = graph.permute (graph.reshape %w : ... -> tensor<768x768xbf16>)
        %m = graph.call_aten %a, %b {callee = "aten.mm.default", ...} -> tensor<784x768xbf16>
        %y = graph.permute (graph.reshape %m) -> tensor<4x768x14x14xbf16>
    """

    name = "patch-products"
    summary = "convolutions of patches of few channels as matrix products"
    anchor = "func.func"
    preserves = "real"
    asks_target = True
    patterns = (multiply_patches,)

    def prepare(self, op: Operation, context: PassContext) -> Target:
        return target_of(context)


__all__ = ["PatchProducts", "Patches", "patches_of"]
