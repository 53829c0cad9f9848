"""Whether a program's convolutions should have images with channels innermost, and why.

On a GPU each convolution has the layout with which least time goes into converting
(`image_layouts`). Elsewhere the questions are asked in this order, and the first that applies
decides for all: is there a convolution;
would most of what it gives be copied back; are all convolutions on a CPU with oneDNN; would all
change their precision; are there many operations for each convolution; is a size symbolic;
what would be gained, by the kinds of the convolutions.

*Precision*: where cuDNN may compute with TF32, as torch lets it by default, whether it does so
depends on the layout: for many shapes it has such a kernel for channels innermost only. An f32
convolution then loses 13 bits of its factors by a choice of layout. So it keeps eager's layout.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import attrs

from irc.analysis.image_layouts import LAST, PLAIN, choose, order_of, orders_of
from irc.dialects import aten, func, graph
from irc.ir import attributes as A
from irc.ir.core import Operation
from irc.ir.strides import channels_last_strides, same_layout
from irc.ir.symbols import Expr
from irc.ir.types import TensorType, f32, f64
from irc.target import Target

CONVOLUTION = "aten.convolution.default"
BACKWARD = "aten.convolution_backward.default"
MOST_OPERATIONS = 300
"""Images stay as they are with as many operations for each convolution."""


@attrs.frozen
class Verdict:
    """`innermost`: channels innermost or not. `reason`: the question that decided, with its answer.
    `figures`: numbers behind it. `calls`: the convolutions that it is for; on a GPU those whose
    image comes with channels innermost anyway, too, where the weight doesn't."""

    innermost: bool
    reason: str
    figures: dict[str, int | float]
    calls: tuple[Operation, ...] = ()

    def attribute(self) -> A.DictAttr:
        """The verdict as an attribute of the function."""
        entries: dict[str, A.Attribute] = {
            "wanted": A.BoolAttr(self.innermost),
            "reason": A.StringAttr(self.reason),
        }
        for name, value in self.figures.items():
            attribute = A.IntegerAttr if isinstance(value, int) else A.FloatAttr
            entries[name] = attribute(value)  # type: ignore[arg-type]
        return A.DictAttr(entries)

    def __str__(self) -> str:
        numbers = ", ".join(
            f"{name.replace('_', ' ')} {value if isinstance(value, int) else format(value, '.3g')}"
            for name, value in self.figures.items()
        )
        return f"channels last: {'yes' if self.innermost else 'no'}, {self.reason} ({numbers})"


def is_convolution(op: Operation) -> bool:
    """Whether an operation is a convolution that reads an image."""
    return isinstance(op, graph.PackedConv | graph.WinogradConv) or (
        isinstance(op, graph.CallAten) and op.callee == CONVOLUTION
    )


def decide(
    function: func.FuncOp,
    target: Target,
    limit: int,
    any_precision: bool = False,
) -> Verdict:
    """The verdict on a function of the graph level.

    limit: images stay as they are with as many operations for each convolution. any_precision:
    convolutions may get another precision than eager's.
    """
    if target.is_gpu:
        return by_time(function, target, any_precision)
    convolutions = [op for op in function.block.ops if is_convolution(op)]
    backward = [o for o in function.block.ops if getattr(o, "callee", "") == BACKWARD]
    operations = len(function.block)
    figures: dict[str, int | float] = {"convolutions": len(convolutions), "operations": operations}
    if not convolutions:
        return Verdict(False, "there is no convolution", figures)
    saved = returned_images(function)
    figures["returned_images"] = saved
    if backward:
        return Verdict(False, "it holds a convolution's backward", figures)
    if saved >= len(convolutions):  # the forward of a training step, or a convolution alone
        return Verdict(False, "as many images are returned, in eager's strides", figures)
    devices = {image_of(op).device for op in convolutions}
    if devices == {"cpu"} and target.library:
        return Verdict(True, "all convolutions are on a CPU with oneDNN", figures)
    if not any_precision:
        free = [op for op in convolutions if not may_lose_precision(op, target)]
        figures["kept_for_precision"] = len(convolutions) - len(free)
        if not free:
            return Verdict(False, "with channels last, TF32 could take the place of f32", figures)
        convolutions = free
    if operations >= limit * len(convolutions):
        return Verdict(False, f"there are {limit} operations or more for each", figures)
    if any(symbolic(op) for op in convolutions):
        return Verdict(False, "the sizes of a convolution are symbolic", figures)
    return by_gain(convolutions, target, figures)


def turned_images(
    function: func.FuncOp, target: Target, any_precision: bool = False
) -> frozenset[Operation]:
    """The convolutions that get channels innermost where eager has them row by row; on a GPU also
    what gives their gradients. On a CPU a kernel of irc's own that computes one gives such images,
    too."""
    verdict = decide(function, target, MOST_OPERATIONS, any_precision)
    if target.is_gpu or not verdict.innermost:
        return frozenset(verdict.calls)
    return frozenset(op for op in function.block.ops if is_convolution(op))


def by_time(function: func.FuncOp, target: Target, any_precision: bool) -> Verdict:
    """The verdict by the time that converting takes, for each convolution, its backward too."""
    convolutions = [op for op in function.block.ops if is_convolution(op) or is_backward(op)]
    figures: dict[str, int | float] = {"convolutions": len(convolutions)}
    if not convolutions:
        return Verdict(False, "there is no convolution", figures)
    kept = {op for op in convolutions if not any_precision and may_lose_precision(op, target)}
    figures["kept_for_precision"] = len(kept)

    def pinned(op: Operation) -> str | None:
        image = image_of(op)
        if op in kept or image.element is f64 or orders_of(image) is None:
            return PLAIN
        return order_of(image, _image_strides(op)) if has_last(op) else None

    choice = choose(function, target, convolutions, pinned)
    calls = tuple(op for op in choice.last if not has_last(op) or _converts(op))
    figures["channels_last"] = len(choice.last)
    figures["microseconds_before"] = round(choice.before * 1e-9, 1)
    figures["microseconds_after"] = round(choice.after * 1e-9, 1)
    if not calls and len(kept) == len(convolutions):
        return Verdict(False, "with channels last, TF32 could take the place of f32", figures)
    return Verdict(bool(calls), "by the time that converting takes", figures, calls)


def is_backward(op: Operation) -> bool:
    """Whether an operation gives gradients of a convolution."""
    return isinstance(op, graph.CallAten) and op.callee == BACKWARD


def has_last(op: Operation) -> bool:
    """Whether eager's image has its channels innermost."""
    return order_of(image_of(op), _image_strides(op)) == LAST


def _converts(op: Operation) -> bool:
    """Whether the library is given something in another order, weights for one, and so converts
    it by itself, in a launch that nothing can join or overlap."""
    recorded = op.attributes.get("operand_strides")
    strides = recorded if isinstance(recorded, A.ArrayAttr) else ()
    tensors = [v.type for v in op.operands if isinstance(v.type, TensorType)]
    return any(order_of(t, s) == PLAIN for t, s in zip(tensors, strides, strict=False))


def _image_strides(op: Operation) -> A.Attribute | None:
    """The strides in which eager passes the image of a convolution."""
    recorded = op.attributes.get("operand_strides")
    return recorded[image_number(op)] if isinstance(recorded, A.ArrayAttr) else None


def innermost_strides(call: graph.CallAten, weights: bool) -> dict[str, A.Attribute]:
    """The strides of what a convolution, or its backward, reads and gives, as attributes of it,
    with channels innermost; nothing where it says no strides. weights: those of weights that are
    no constants, too."""
    recorded = call.attributes.get("operand_strides")
    of_eager = call.attributes.get("eager_strides")
    if not isinstance(recorded, A.ArrayAttr) or not isinstance(of_eager, A.ArrayAttr):
        return {}
    if orders_of(image_of(call)) is None:
        return {}
    asked = list(recorded)
    for number, value in enumerate(call.operands):
        fixed = number == weight_number(call) and not isinstance(
            value.defining_op, graph.Constant
        )
        if weights or not fixed:
            asked[number] = _last(value.type, recorded[number])
    tensors = [r.type for r in call.results if isinstance(r.type, TensorType)]
    return {"operand_strides": A.ArrayAttr(asked),
            "eager_strides": A.ArrayAttr(map(_last, tensors, of_eager))}  # fmt: skip


def weight_number(call: graph.CallAten) -> int:
    """Which operand of a convolution is its weight."""
    operand = call.arguments.as_dict()["weight"]
    assert isinstance(operand, aten.OperandAttr)
    return operand.index


def _last(type_: A.Attribute, strides: A.Attribute) -> A.Attribute:
    """Channels-last strides for an image or the weight of one; else those that it has."""
    if not isinstance(type_, TensorType) or type_.rank not in (4, 5):
        return strides
    return A.DimsAttr(channels_last_strides(type_.shape))


def image_number(op: Operation) -> int:
    """Which operand of a convolution is its image."""
    if not isinstance(op, graph.CallAten):
        return 0
    operand = op.arguments.as_dict()["input"]
    assert isinstance(operand, aten.OperandAttr)
    return operand.index


def may_lose_precision(op: Operation, target: Target) -> bool:
    """Whether channels last could make an f32 convolution a TF32 one that it isn't in eager: on a
    GPU whose cuDNN may use TF32, where eager's image has another layout."""
    image = image_of(op)
    if image.device == "cpu" or image.element is not f32 or not target.tf32_convolutions:
        return False
    recorded = op.attributes.get("operand_strides")
    arguments = recorded[image_number(op)] if isinstance(recorded, A.ArrayAttr) else None
    if not isinstance(arguments, A.DimsAttr):
        return True
    strides = [dim for dim in arguments.dims if dim is not None]
    last = channels_last_strides(image.shape)
    return len(strides) != image.rank or not same_layout(image.shape, strides, last)


def image_of(op: Operation) -> TensorType:
    """The type of the image that a convolution reads."""
    type_ = op.operands[image_number(op)].type
    assert isinstance(type_, TensorType)
    return type_


def returned_images(function: func.FuncOp) -> int:
    """How many results of the function have the rank of an image."""
    kinds = [value.type for value in function.return_op.operands]
    return sum(isinstance(type_, TensorType) and type_.rank in (4, 5) for type_ in kinds)


def symbolic(op: Operation) -> bool:
    """Whether a size of an operand is symbolic."""
    kinds = [v.type for v in op.operands if isinstance(v.type, TensorType)]
    return any(isinstance(size, Expr) for type_ in kinds for size in type_.shape)


def by_gain(
    convolutions: Sequence[Operation], target: Target, figures: dict[str, int | float]
) -> Verdict:
    """The verdict by operations of each kind, weighted with what measurements say of it: the time
    with channels innermost over the time without."""
    work: Counter[str] = Counter()
    for op in convolutions:
        weight, groups = weight_of(op)
        work[kind_of(weight, groups, target.small_channels)] += operations_of(op, weight)
    total = sum(work.values())
    times = relative_times(target)
    relative = sum(times[kind] * count for kind, count in work.items()) / max(total, 1)
    for kind, count in work.items():
        figures[kind.replace("-", "_")] = round(count / max(total, 1), 3)
    figures["relative_time"] = round(relative, 3)
    return Verdict(relative < 1.0, "by what the kinds of the convolutions gain", figures)


def weight_of(op: Operation) -> tuple[tuple[int, ...], int]:
    """The sizes of a convolution's weight, and its groups."""
    if isinstance(op, graph.PackedConv):
        return tuple(op.weight.type.tensor.shape), op.groups
    if isinstance(op, graph.WinogradConv):
        channels = op.value.type.shape[1], op.source.type.shape[1]
        return (*channels, *op.taps), 1
    assert isinstance(op, graph.CallAten)
    arguments = op.arguments.as_dict()
    operand, groups = arguments["weight"], arguments["groups"]
    assert isinstance(operand, aten.OperandAttr) and isinstance(groups, A.IntegerAttr)
    return tuple(op.operands[operand.index].type.shape), groups.value  # type: ignore[attr-defined]


def relative_times(target: Target) -> dict[str, float]:
    """The time with channels innermost over the time without, by the kind of a convolution."""
    return {"grouped": target.grouped_time, "in-out": target.narrowing_time,
            "small": target.small_time, "default": target.usual_time}  # fmt: skip


def kind_of(weight: tuple[int, ...], groups: int, most: int) -> str:
    """The kind of a convolution: grouped (not depthwise), in-out (many more channels in than out),
    small (at most so many of both), or default."""
    out, inner = weight[0], weight[1]
    if groups > 1 and inner > 1:
        return "grouped"
    if out * 2 <= inner and weight[2] > 1:
        return "in-out"
    return "small" if out <= most and inner <= most else "default"


def operations_of(op: Operation, weight: tuple[int, ...]) -> int:
    """Multiplications of a convolution of known sizes."""
    image = op.results[0].type
    return int(math.prod(image.shape) * math.prod(weight[1:]))  # type: ignore[attr-defined]
