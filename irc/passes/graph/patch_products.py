"""The pass `patch-products`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from irc.analysis.channels_last import BACKWARD, CONVOLUTION
from irc.analysis.loop import estimate
from irc.dialects import aten, graph
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import Operation, Value
from irc.ir.passes import PassContext, register_pass
from irc.ir.rewrite.passes import PatternPass
from irc.ir.rewrite.patterns import pattern
from irc.ir.symbols import Dim, dim_product
from irc.ir.types import FloatType, TensorType, Type, contiguous_strides, element_bytes, f32
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
    arguments = call.arguments.as_dict()
    image, weight = (_operand(call, name).type for name in ("input", "weight"))
    assert isinstance(image, TensorType) and isinstance(weight, TensorType)
    if not isinstance(image.element, FloatType) or image.element.width != 16:
        return "its elements are not of 16 bits, and other floats have modes of their own"
    ones: dict[str, Any] = {"groups": 1, "dilation": 1, "padding": 0, "output_padding": 0}
    if arguments["transposed"] != A.FALSE or not all(
        _are_all(arguments[name], value) for name, value in ones.items()
    ):
        return "its windows have gaps, groups or a border, or it is transposed"
    extents, window = image.shape[2:], weight.shape[2:]
    if not all(isinstance(size, int) for size in (*image.shape[1:], *weight.shape)):
        return "its sizes are symbolic"
    if _numbers(arguments["stride"]) != tuple(window):
        return "its windows overlap or leave gaps"
    counts = tuple(have // size for have, size in zip(extents, window, strict=True))
    if image.rank < 3 or 0 in (*image.shape, *weight.shape, *counts):
        return "there is no batch, or nothing to compute"
    used = (*image.shape[:2], *(n * size for n, size in zip(counts, window, strict=True)))
    return Patches(image.element, image.shape, used, counts, tuple(window))


def _operand(call: graph.CallAten, name: str) -> Value:
    operand = call.arguments.as_dict()[name]
    assert isinstance(operand, aten.OperandAttr)
    value: Value = call._operands[operand.index]
    return value


def _numbers(attribute: A.Attribute) -> tuple[Any, ...]:
    """An integer, or a list of them."""
    each = attribute if isinstance(attribute, A.ArrayAttr) else [attribute]
    return tuple(a.value if isinstance(a, A.IntegerAttr) else a for a in each)


def _are_all(attribute: A.Attribute, value: int) -> bool:
    return set(_numbers(attribute)) <= {value}


def objection(call: graph.CallAten, patches: Patches, target: Target) -> str | None:
    """Why the library computes a convolution faster; None where a product does."""
    pixel = estimate(patches.shape[1]) * element_bytes(patches.element)
    if pixel % target.pixel_bytes == 0:
        return f"the channels of a pixel fill {pixel} bytes, for which the library has fast kernels"
    weight = _operand(call, "weight").type
    assert isinstance(weight, TensorType)
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
    if any(r._users and not isinstance(r.type, TensorType) for r in call.results):
        return rw.no_match("somebody reads what it doesn't give")
    why = objection(call, patches, rw.state)
    if why is not None:
        return rw.decline(f"the convolution's patches were not multiplied: {why}")
    replace = _forward if call.callee == CONVOLUTION else _backward
    rw.replace(call, replace(rw.before(call), call, patches))
    return True


def _forward(builder: Builder, call: graph.CallAten, patches: Patches) -> list[Value]:
    """The image of products of patches and weights, with the bias added by the product."""
    weight = _matrix_of_weight(builder, call, patches)
    left, right = _matrix_of_patches(builder, call, patches), _turned(builder, weight)
    bias = call.arguments.as_dict()["bias"]
    if isinstance(bias, aten.OperandAttr):
        rows = _product(builder, [call._operands[bias.index], left, right], "aten.addmm.default")
    else:
        rows = _product(builder, [left, right], "aten.mm.default")
    return [_image(builder, rows, patches)]


def _backward(builder: Builder, call: graph.CallAten, patches: Patches) -> list[Any]:
    """The gradients that the call gives, of the image, the weight and the bias; what is no tensor
    is the call's, which nobody reads."""
    gradient = _operand(call, "grad_output")
    assert isinstance(gradient.type, TensorType)
    rank, results = gradient.type.rank, gradient.type.shape[1]
    turned = builder.value(graph.Permute, gradient, permutation=[0, *range(2, rank), 1])
    rows = _reshaped(builder, turned, (patches.points, results))
    old: list[Any] = list(call.results)
    gradients = list(old)
    asked = [isinstance(r.type, TensorType) for r in old]
    if asked[0]:
        weight = _matrix_of_weight(builder, call, patches)
        gradients[0] = _put_together(
            builder, _product(builder, [rows, weight], "aten.mm.default"), patches
        )
    if asked[1]:
        left, right = _turned(builder, rows), _matrix_of_patches(builder, call, patches)
        of_weight = _product(builder, [left, right], "aten.mm.default")
        gradients[1] = _reshaped(builder, of_weight, old[1].type.shape)
    if asked[2]:
        wide = builder.value(graph.Cast, rows, result_types=rows.type.with_element(f32))
        total = builder.value(graph.Reduce, wide, combiner="sum", dims=[0], keepdim=False)
        gradients[2] = builder.value(graph.Cast, total, result_types=old[2].type)
    return gradients


def _matrix_of_patches(builder: Builder, call: graph.CallAten, patches: Patches) -> Any:
    """A row for each window."""
    image = _operand(call, "input")
    assert isinstance(image.type, TensorType)
    for dim, size in enumerate(patches.used):
        if image.type.shape[dim] != size:
            cut = graph.replace_size(image.type, dim, size)
            image = builder.value(graph.Slice, image, dim=dim, start=0, step=1, result_types=cut)
    split = _reshaped(builder, image, patches.split)
    rows = builder.value(graph.Permute, split, permutation=patches.order)
    return _reshaped(builder, rows, (patches.points, patches.depth))


def _put_together(builder: Builder, rows: Any, patches: Patches) -> Value:
    """The image of such rows, with zeros where no window is."""
    order = patches.order
    parts = _reshaped(builder, rows, [patches.split[dim] for dim in order])
    back = [order.index(dim) for dim in range(len(order))]
    image = _reshaped(builder, builder.value(graph.Permute, parts, permutation=back), patches.used)
    if patches.used == patches.shape:
        return image
    high = [have - used for have, used in zip(patches.shape, patches.used, strict=True)]
    zero = graph.scalar_attribute(0, patches.element)
    whole: Value = builder.value(
        graph.Pad, image, low=[0] * len(high), high=high, value=zero,
        result_types=image.type.with_shape(patches.shape),
    )  # fmt: skip
    return whole


def _matrix_of_weight(builder: Builder, call: graph.CallAten, patches: Patches) -> Any:
    """A row for each channel that is computed."""
    weight = _operand(call, "weight")
    assert isinstance(weight.type, TensorType)
    return _reshaped(builder, weight, (weight.type.shape[0], patches.depth))


def _image(builder: Builder, rows: Any, patches: Patches) -> Value:
    """The image whose pixels are the rows."""
    shape = (patches.shape[0], *patches.counts, rows.type.shape[1])
    last = len(shape) - 1
    pixels = _reshaped(builder, rows, shape)
    image: Value = builder.value(graph.Permute, pixels, permutation=[0, last, *range(1, last)])
    return image


def _turned(builder: Builder, matrix: Any) -> Any:
    return builder.value(graph.Permute, matrix, permutation=[1, 0])


def _reshaped(builder: Builder, value: Any, shape: Sequence[Dim]) -> Any:
    return builder.value(graph.Reshape, value, result_types=value.type.with_shape(tuple(shape)))


def _product(builder: Builder, operands: Sequence[Any], callee: str) -> Any:
    """A call of `mm` of two matrices, or of `addmm` of a row and these."""
    left, right = (value.type for value in operands[-2:])
    result = left.with_shape((left.shape[0], right.shape[1]))
    names = ("self", "mat2") if len(operands) == 2 else ("self", "mat1", "mat2")
    attributes: dict[str, A.Attribute] = {
        "callee": A.StringAttr(callee),
        "arguments": A.DictAttr({name: aten.OperandAttr(k) for k, name in enumerate(names)}),
        "eager_strides": A.ArrayAttr([A.DimsAttr(contiguous_strides(result.shape))]),
    }
    call = graph.CallAten(list(operands), [result], attributes, (), builder.location)
    return builder.insert(call).results[0]


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
