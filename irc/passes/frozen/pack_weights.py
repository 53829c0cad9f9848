"""The pass `pack-weights`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from irc.analysis.calls import integers
from irc.analysis.channels_last import CONVOLUTION
from irc.dialects import aten, graph
from irc.dialects.aten.facts import LINEARS, factors_of
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import Operation, Value
from irc.ir.definition import SEGMENTS
from irc.ir.passes import PassContext, register_pass
from irc.ir.rewrite.driver import pattern
from irc.ir.rewrite.passes import PatternPass
from irc.ir.types import TensorType
from irc.target import Target, target_of


def operands_of(call: graph.CallAten) -> tuple[dict[str, Value | None], Mapping[str, Any]]:
    """A call's tensors by the names of its schema's arguments (None where one is absent), and all
    its arguments."""
    arguments = call.arguments.as_dict()
    values = {
        name: call.operands[attr.index]
        for name, attr in arguments.items()
        if isinstance(attr, aten.OperandAttr)
    }
    return {name: values.get(name) for name in arguments}, arguments


def constant_of(value: Value) -> Value | None:
    """The constant that a value is."""
    return value if isinstance(value.defining_op, graph.Constant) else None


def known_sizes(type_: TensorType) -> list[int] | None:
    """The sizes of a tensor, if all of them are numbers."""
    sizes = [size for size in type_.shape if isinstance(size, int)]
    return sizes if len(sizes) == type_.rank else None


def declined(call: graph.CallAten, rw: Any, why: str) -> bool:
    """Say why a weight stays as it is."""
    declined: bool = rw.decline(f"the weight of {call.callee} was not packed: {why}")
    return declined


# convolution(x, constant) -> packed_conv(x, pack(constant))
@pattern(graph.CallAten, name="graph.pack_convolution", counted="packed")
def pack_convolution(call: Any, rw: Any) -> Any:
    if call.callee != CONVOLUTION or not rw.state.options.takes(CONVOLUTION):
        return rw.no_match("it is no convolution to pack")
    values, arguments = operands_of(call)
    image, weight, bias = values["input"], values["weight"], values.get("bias")
    assert image is not None and weight is not None
    why = convolution_objection(image, weight, arguments, rw.state.target.library)
    if why is not None:
        return declined(call, rw, why)
    shape: dict[str, A.Attribute] = {"groups": arguments["groups"]}
    for name in ("stride", "padding", "dilation"):
        numbers = integers(arguments[name])
        if numbers is None:
            return declined(call, rw, f"its {name} is symbolic")
        spatial = image.type.rank - 2  # type: ignore[attr-defined]
        shape[name] = A.DenseIntsAttr(numbers * spatial if len(numbers) == 1 else numbers)
    image = without_zeros(image, shape)
    packed = _pack(rw.builder, weight, "convolution", known_sizes(image.type), **shape)  # type: ignore[arg-type]
    rw.replace(call, packed_op(call, graph.PackedConv, [image, packed], bias, shape))
    return True


def convolution_objection(
    image: Value, weight: Value, arguments: Mapping[str, Any], elements: Sequence[str]
) -> str | None:
    """Why the weight of a convolution can't be packed; None where it can."""
    if constant_of(weight) is None:
        return "it is no constant"
    if arguments["transposed"] is A.TRUE:
        return "the convolution is transposed"
    why = objection(elements, image.type, weight.type)
    if why is None and image.type.rank not in (4, 5):  # type: ignore[attr-defined]
        return "the image has another rank than 4 or 5"
    return why


def without_zeros(image: Value, shape: dict[str, A.Attribute]) -> Value:
    """The image without the zeros that were put around it, which become the convolution's own
    padding (in `shape`) where it has as many on both sides."""
    op = image.defining_op
    if not isinstance(op, graph.Pad) or getattr(op.attributes["value"], "value", None) != 0.0:
        return image
    low = [size for size in op.low if isinstance(size, int) and size >= 0]
    if low != list(op.high) or len(low) != image.type.rank or any(low[:2]):  # type: ignore[attr-defined]
        return image
    own = shape["padding"]
    assert isinstance(own, A.DenseIntsAttr)
    pairs = zip(own.values, low[2:], strict=True)
    shape["padding"] = A.DenseIntsAttr([mine + around for mine, around in pairs])
    return op.source


def objection(packable: Sequence[str], *types: Any) -> str | None:
    """Why tensors of these types can't take part in a packed operation."""
    elements = {str(type_.element) for type_ in types}
    if len(elements) > 1 or not elements <= set(packable):
        named = ", ".join(sorted(elements))
        return f"oneDNN doesn't pack {named} here"
    for type_ in types:
        if type_.device != "cpu":
            return f"it is on {type_.device}"
        if 0 in type_.shape:
            return "it has no elements"
    return None


# mm(x, constant) -> packed_linear(x, pack(constant)), and addmm with a bias
@pattern(graph.CallAten, name="graph.pack_product", counted="packed")
def pack_product(call: Any, rw: Any) -> Any:
    if call.callee not in LINEARS:
        return rw.no_match("it is no product")
    values, arguments = operands_of(call)
    names = factors_of(call.callee)
    rows, right = values[names.left], values[names.right]
    bias = values[names.added] if names.added is not None else None
    assert rows is not None and right is not None
    transposed = not isinstance(right.defining_op, graph.Permute)
    weight = right if transposed else right.defining_op.source  # type: ignore[union-attr]
    why = product_objection(call, rows, weight, bias, rw.state.target)
    if why is not None:
        return declined(call, rw, why)
    flag = {"transposed": A.UNIT} if transposed else {}
    packed = _pack(rw.builder, weight, "linear", known_sizes(rows.type), **flag)  # type: ignore[arg-type]
    rw.replace(call, packed_op(call, graph.PackedLinear, [rows, packed], bias, {}))
    return True


def product_objection(
    call: graph.CallAten, rows: Value, weight: Value, bias: Value | None, target: Target
) -> str | None:
    """Why the weight of a product can't be packed; None where it can."""
    if constant_of(weight) is None:
        return "it is no constant"
    why = objection(target.library, rows.type, weight.type)
    if why is not None:
        return why
    arguments = call.arguments.as_dict()
    for name in ("beta", "alpha"):
        factor = arguments.get(name)
        if factor is not None and factor.value != 1:  # type: ignore[attr-defined]
            return f"{name} is {factor.value}"  # type: ignore[attr-defined]
    count, out = call.results[0].type.shape  # type: ignore[attr-defined]
    if bias is not None and bias.type.shape != (out,):  # type: ignore[attr-defined]
        return f"what is added is {bias.type}, no bias"
    if isinstance(count, int) and count < target.packed_rows:
        return "it is multiplied with one row" if count == 1 else f"{count} rows are few"
    return None


def _pack(
    builder: Builder, weight: Value, format_: str, sizes: list[int] | None, **shape: A.Attribute
) -> Value:
    type_: Any = weight.type
    if "transposed" in shape:
        type_ = type_.with_shape(type_.shape[::-1])
    attributes = {"format": A.StringAttr(format_), **shape}
    if sizes is not None:
        attributes["input"] = A.DenseIntsAttr(sizes)
    pack = graph.Pack([weight], [graph.PackedType(type_)], attributes, (), builder.location)
    return builder.insert(pack).results[0]


def packed_op(
    call: graph.CallAten, cls: Any, operands: list[Value], bias: Value | None, shape: Any
) -> Operation:
    """The packed operation that computes what a call does."""
    if bias is not None:
        operands.append(bias)
    segments = A.DenseIntsAttr((1, 1, int(bias is not None), 0))
    packed: Operation = cls(
        operands, call.result_types, {**shape, SEGMENTS: segments}, (), call.location
    )
    return packed


@attrs.frozen
class WeightPacking:
    """What the patterns have to know: the pass's options, and the target."""

    options: PackWeights
    target: Target


@register_pass
class PackWeights(PatternPass):
    """Lays the constant weights of convolutions and linears out once, as oneDNN reads them.

    A weight is a `graph.constant` (through permutations for a linear), as `freeze` leaves them.
    Zeros around an image, as many on both sides, become the padding of its convolution.
    Packing happens when the program is loaded, not when it is called. What stays as it is says so
    in a remark: transposed convolutions, images of other ranks than 4 and 5, elements that oneDNN
    has no code for on this machine (f32 always has, bf16 and f16 depend on the processor), a
    product that scales its bias or has fewer than two rows, a torch without oneDNN.

    convolutions: pack those of convolutions, too; their images then have channels innermost.

    Before:
        %w = graph.constant {value = #irc.resource<"w"> : tensor<8x4x3x3xf32>} : tensor<8x4x3x3xf32>
        %y = graph.call_aten %x, %w {callee = "aten.convolution.default", ...} : (...) -> ...
    After:
        %p = graph.pack %w {format = "convolution", ...} :
          (tensor<8x4x3x3xf32>) -> !graph.packed<tensor<8x4x3x3xf32>>
        %y = graph.packed_conv %x, %p {...} : (...) -> ...
    """

    name = "pack-weights"
    summary = "pack constant weights of convolutions and linears for oneDNN"
    anchor = "func.func"
    preserves = "real"
    asks_target = True
    convolutions: bool = True

    patterns = (pack_convolution, pack_product)

    def prepare(self, op: Operation, context: PassContext) -> WeightPacking | None:
        target = target_of(context)
        return WeightPacking(self, target) if target.library else None

    def takes(self, callee: str) -> bool:
        """Whether the weights of an operator are to be packed."""
        return callee in LINEARS or (self.convolutions and callee == CONVOLUTION)
