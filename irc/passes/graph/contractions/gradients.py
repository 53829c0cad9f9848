"""What a convolution's gradients are as a `graph.dot_general`.

    image's: windows of the result's gradient times the weight, turned round in each dimension
    weight's: windows of the image times the result's gradient, summed over images and places

A transposed convolution is the image's gradient of a convolution, and the other way round. Where
the stride is not 1 that has several products (`strided_gradients`).
"""

from __future__ import annotations

from typing import Any

import attrs

from irc.analysis.channels_last import BACKWARD
from irc.dialects import aten, graph
from irc.dialects.graph.inferred import tensor_type
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import Value
from irc.ir.rewrite.patterns import pattern
from irc.ir.types import TensorType, none
from irc.passes.common.tensors import permuted, reshaped
from irc.passes.graph.contractions.convolutions import (
    ConvolutionParts,
    convolution_product,
    numbers_of,
    padded_image,
    placed,
)
from irc.passes.graph.contractions.products import (
    Form,
    accumulator_of,
    cast,
    dot_general,
    result_type,
)
from irc.passes.graph.contractions.strided_gradients import remainders_of, strided_product

IMAGE, WEIGHT, BIAS = range(3)
"""The gradients that a call gives, in the order of its mask."""


def gradient_of(call: graph.CallAten) -> int | None:
    """Which gradient a call gives, if it gives only one."""
    if call.callee != BACKWARD:
        return None
    outputs = [k for k, value in enumerate(call.results) if isinstance(value.type, TensorType)]
    return outputs[0] if len(outputs) == 1 else None


# convolution_backward(g, x, w) -> one call for each of its results, and a sum
@pattern(graph.CallAten, name="graph.split_gradients", counted="split")
def split_gradients(call: Any, rw: Any) -> Any:
    if call.callee != BACKWARD or gradient_of(call) in (IMAGE, WEIGHT):
        return rw.no_match("it gives no gradients, or only one")
    outputs = [k for k, value in enumerate(call.results) if isinstance(value.type, TensorType)]
    if not outputs or accumulator_of(tensor_type(call.results[outputs[0]]).element) is None:
        return rw.no_match("it gives none, or such as irc has no sums of")
    values = list(call.results)
    for number, output in enumerate(outputs):
        values[output] = (
            gradient_of_bias(rw.builder, call) if output == BIAS
            else _alone(rw.builder, call, output, number)
        )  # fmt: skip
    rw.replace(call, values)
    return True


def _alone(builder: Builder, call: graph.CallAten, output: int, number: int) -> Value:
    """One result of a call by itself."""
    entries = dict(call.attributes)
    mask = A.ArrayAttr([A.BoolAttr(k == output) for k in (IMAGE, WEIGHT, BIAS)])
    entries["arguments"] = A.DictAttr({**call.arguments.as_dict(), "output_mask": mask})
    strides = entries.get("eager_strides")
    if isinstance(strides, A.ArrayAttr):
        entries["eager_strides"] = A.ArrayAttr([strides[number]])
    types = [type_ if k == output else none for k, type_ in enumerate(call.result_types)]
    own = graph.CallAten(call.operands, types, entries, (), call.location)
    return builder.insert(own).results[output]


# convolution_backward(g, x, w) for the image, another one for the weight -> one call
@pattern(graph.CallAten, name="graph.join_gradients", counted="joined")
def join_gradients(call: Any, rw: Any) -> Any:
    if gradient_of(call) not in (IMAGE, WEIGHT):
        return rw.no_match("it gives no gradients, or several")
    other = next((user for user in call.operands[0].users if _is_other(call, user)), None)
    if other is None:
        return rw.no_match("no call behind it gives the other gradient")
    both = (call, other) if gradient_of(call) == IMAGE else (other, call)
    mask = A.ArrayAttr([A.BoolAttr(k != BIAS) for k in (IMAGE, WEIGHT, BIAS)])
    entries = {**call.attributes}
    entries["arguments"] = A.DictAttr({**call.arguments.as_dict(), "output_mask": mask})
    strides = [each.attributes.get("eager_strides") for each in both]
    if all(isinstance(each, A.ArrayAttr) for each in strides):
        entries["eager_strides"] = A.ArrayAttr([each[0] for each in strides])
    types = [*(each.result_types[k] for k, each in enumerate(both)), call.result_types[BIAS]]
    joined = rw.insert(graph.CallAten(call.operands, types, entries, (), call.location))
    for each in (other, call):
        pairs = zip(each.results, joined.results, strict=True)
        rw.replace(each, [new if old.type is new.type else old for old, new in pairs])
    return True


def _is_other(call: graph.CallAten, other: Any) -> bool:
    """Whether an operation behind a call gives the other gradient of the same convolution, and is
    the library's as that one."""
    if not isinstance(other, graph.CallAten) or {gradient_of(call), gradient_of(other)} != {
        IMAGE, WEIGHT
    }:  # fmt: skip
        return False
    if other.operands != call.operands or other.parent is not call.parent:
        return False
    first, second = ({**each.attributes, **each.arguments.as_dict()} for each in (call, other))
    for own in ("arguments", "output_mask", "eager_strides"):
        first.pop(own, None)
        second.pop(own, None)
    return first == second and call.is_before_in_block(other)


def gradient_of_bias(builder: Builder, call: graph.CallAten) -> Value:
    """The bias's gradient of a call: the sum of the result's over images and places."""
    gradient = aten.arguments_of(call)["grad_output"]
    element = tensor_type(gradient).element
    wide = accumulator_of(element)
    assert wide is not None
    dims = [d for d in range(tensor_type(gradient).rank) if d != 1]
    sums = builder.value(
        graph.Reduce, cast(builder, gradient, wide), combiner="sum", dims=dims, keepdim=False
    )
    return cast(builder, sums, element)


@attrs.frozen
class _Gradient:
    """A call's operands, and the numbers of each spatial dimension of its convolution."""

    gradient: Value
    image: Value
    weight: Value
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int
    transposed: bool


def gradient_form(call: graph.CallAten, taps_first: bool = False) -> Form | str:
    """What makes the only gradient that a call gives, or why nothing does."""
    arguments, output = aten.arguments_of(call), gradient_of(call)
    numbers = numbers_of(call, arguments)
    result = result_type(call)
    wide = accumulator_of(result.element)
    if isinstance(numbers, str):
        return numbers
    if wide is None or output not in (IMAGE, WEIGHT):
        return f"there are no products of {result.element}" if wide is None else "it is a sum"
    g = _Gradient(
        arguments["grad_output"], arguments["input"], arguments["weight"], *numbers,
        arguments["groups"], bool(arguments["transposed"]),
    )  # fmt: skip
    if len({tensor_type(v).element for v in (g.gradient, g.image, g.weight)}) > 1:
        return "its operands are of several types"
    if output == WEIGHT:
        pair = (g.image, g.gradient) if g.transposed else (g.gradient, g.image)
        return lambda builder, schedule: _of_weight(
            builder, g, pair, result, wide, schedule, taps_first
        )
    if g.transposed:
        parts = ConvolutionParts(g.gradient, g.weight, None, *numbers, g.groups)
        return lambda builder, schedule: convolution_product(
            builder, parts, result, wide, schedule, taps_first
        )
    return turned_form(g.gradient, g.weight, None, numbers, g.groups, result, taps_first)


def transposed_form(call: graph.CallAten, taps_first: bool = False) -> Form | str:
    """What makes the result of a transposed convolution, or why nothing does."""
    arguments = aten.arguments_of(call)
    numbers = numbers_of(call, arguments)
    if isinstance(numbers, str):
        return numbers
    if any(arguments["output_padding"]):
        return "it is transposed, and its result has more places"
    image, weight, bias = (arguments[name] for name in ("input", "weight", "bias"))
    result = result_type(call)
    return turned_form(image, weight, bias, numbers, arguments["groups"], result, taps_first)


def turned_form(
    image: Value, weight: Value, bias: Value | None, numbers: Any, groups: int, result: TensorType,
    taps_first: bool = False,
) -> Form | str:
    """A convolution of an image whose channels are a weight's first dimension, with that weight
    turned round: the result has the places that a convolution makes the image's of."""
    stride, padding, dilation = numbers
    wide, sizes = accumulator_of(result.element), tensor_type(weight).shape
    if wide is None:
        return f"there are no products of {result.element}"
    taps = [n for n in sizes[2:] if isinstance(n, int)]
    if len(taps) != len(stride) or not isinstance(sizes[0], int) or not isinstance(sizes[1], int):
        return "its weight has symbolic sizes"
    around = [d * (n - 1) - p for d, n, p in zip(dilation, taps, padding, strict=True)]
    whole = all(step == 1 for step in stride) and min(around) >= 0
    alike = [remainders_of(*each) for each in zip(stride, padding, dilation, taps, strict=True)]
    every = [each for each in alike if each is not None]
    if not whole and len(every) < len(alike):
        return "it is transposed, and a stride and a dilation have a common divisor"
    places = (*tensor_type(image).shape[2:], *result.shape[2:])
    if not whole and not all(isinstance(size, int) for size in places):
        return "it is transposed, with a stride or more padding than its window, and symbolic"
    inner, outer = sizes[0] // groups, sizes[1]

    def form(builder: Builder, schedule: A.Attribute | None) -> Value:
        apart = reshaped(builder, weight, (groups, inner, outer, *taps))
        order = [0, 2, 1, *range(3, 3 + len(taps))]
        turned = reshaped(builder, permuted(builder, apart, order), (groups * outer, inner, *taps))
        if not whole:
            c = ConvolutionParts(image, turned, bias, stride, padding, dilation, groups)
            return strided_product(builder, c, every, result, wide, schedule, taps_first)
        dims = [2 + k for k, n in enumerate(taps) if n != 1]
        if dims:
            turned = builder.value(graph.Reverse, turned, dims=dims)
        parts = ConvolutionParts(image, turned, bias, stride, tuple(around), dilation, groups)
        return convolution_product(builder, parts, result, wide, schedule, taps_first)

    return form


def _of_weight(
    builder: Builder, g: _Gradient, pair: tuple[Value, Value], result: TensorType, wide: Any,
    schedule: A.Attribute | None, taps_first: bool,
) -> Value:  # fmt: skip
    """The weight's gradient: `pair` is what is read at places, and what in windows around them.
    taps_first: channels are the innermost of its sums' columns, behind the taps."""
    places, image = pair
    parts = ConvolutionParts(image, places, None, g.stride, g.padding, g.dilation, g.groups)
    counts, taps = tensor_type(places).shape[2:], result.shape[2:]
    windows, split = padded_image(builder, image, g.padding), int(g.groups > 1)
    if split:
        sizes = tensor_type(windows).shape
        windows = reshaped(builder, windows, (sizes[0], g.groups, result.shape[1], *sizes[2:]))
        sizes = tensor_type(places).shape
        rows = result.shape[0] // g.groups  # type: ignore[operator]
        places = reshaped(builder, places, (sizes[0], g.groups, rows, *sizes[2:]))
    for k in range(len(counts)):
        windows = placed(builder, windows, 2 + split + k, parts, k, taps[k], counts[k])
    depth = [0, *range(2 + split, 2 + split + len(counts))]
    last = tensor_type(windows).rank
    moved = taps_first and last > 2 + split + len(counts)
    if moved:
        order = [*range(1 + split), *range(2 + split, last), 1 + split]
        windows = permuted(builder, windows, order)
    around = [max(0, d - moved) for d in depth]
    sums = dot_general(
        builder, places, windows, wide, batch=([1], [1]) if split else ([], []),
        depth=(depth, around), schedule=schedule,
    )  # fmt: skip
    if moved:
        last = tensor_type(sums).rank - 1
        sums = permuted(builder, sums, [*range(1 + split), last, *range(1 + split, last)])
    return reshaped(builder, cast(builder, sums, result.element), result.shape)


__all__ = ["BACKWARD", "gradient_form", "gradient_of", "gradient_of_bias", "join_gradients",
           "split_gradients", "transposed_form"]  # fmt: skip
