"""In which parts a contraction sums up its depth apart (`split_k`).

A depth of several axes is cut where no vector is: at the points of its leading axes, as the taps of
a window or the images of a batch, or within one axis, in equal parts; where elements lie side by
side along that one, in parts of whole lines.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from irc.analysis.loop import estimate, points
from irc.analysis.multiplied import Multiplied
from irc.dialects import aten, graph
from irc.dialects.aten.facts import MATRIX_PRODUCTS
from irc.dialects.graph.inferred import tensor_type
from irc.ir.symbols import Dim, dim_product, known_divisible
from irc.ir.types import TensorType, bf16, element_bytes, f16, f32
from irc.target import Target


def leading_axes(extents: Sequence[Dim], parts: int) -> int:
    """How many leading axes, but not all, have as many points as there are parts; 0 for none."""
    points: Dim = 1
    for count, extent in enumerate(extents[:-1], 1):
        points = points * extent
        if points == parts:
            return count
    return 0


def cut_axis(extents: Sequence[Dim], lying: Sequence[bool], parts: int, line: int) -> int | None:
    """The first axis that has so many equal parts, of whole lines where elements lie side by side
    along it; None where none has them."""
    for k in range(len(extents)):
        if known_divisible(extents[k], parts):
            if not lying[k] or known_divisible(extents[k] // parts, line):
                return k
    return None


@attrs.frozen
class WindowSums:
    """What a convolution, or a gradient of one, multiplies. depth: the axes that are summed over.
    lies: whether elements lie side by side along the last one."""

    sums: Multiplied
    depth: tuple[Dim, ...]
    lies: bool

    def parts(self, target: Target) -> list[int]:
        """In how many parts of the depth it may be summed up, those first that take the least
        time."""
        line = max(self.sums.least_step, target.gpu.step_bytes // self.sums.size)
        lying = [False] * (len(self.depth) - 1) + [self.lies]
        return [
            each.parts for each in self.sums.by_parts(target.gpu)
            if each.parts == 1 or leading_axes(self.depth, each.parts)
            or cut_axis(self.depth, lying, each.parts, line) is not None
        ]  # fmt: skip


def window_parts(call: graph.CallAten, target: Target) -> list[int]:
    """In how many parts of the depth a GPU's kernels may sum up a convolution or the only gradient
    that a call gives, those first that take the least time; 1 alone where the model says nothing.
    """
    windows = window_sums(call, target)
    if windows is None or windows.sums.plain or not windows.sums.is_worth(target.gpu):
        return [1]
    return windows.parts(target)


def window_sums(call: graph.CallAten, target: Target) -> WindowSums | None:
    """What a call multiplies as windows; None for what has no known sizes, or isn't of floats."""
    if not target.is_gpu or call.callee in MATRIX_PRODUCTS:
        return None
    arguments = aten.arguments_of(call)
    outputs = [k for k, v in enumerate(call.results) if isinstance(v.type, TensorType)]
    result = tensor_type(call.results[outputs[0]])
    image, weight = tensor_type(arguments["input"]), tensor_type(arguments["weight"])
    groups, gradient = arguments["groups"], arguments.get("grad_output")
    sizes = [*image.shape, *weight.shape, *result.shape]
    if not all(isinstance(n, int) and n > 0 for n in sizes):
        return None
    if result.element not in (bf16, f16, f32) or image.element is not result.element:
        return None
    taps = tuple(n for n in weight.shape[2:] if n != 1)
    turned = bool(arguments["transposed"]) != (gradient is not None)
    if turned and outputs == [0] and any(step != 1 for step in arguments["stride"]):
        return None  # several products
    if gradient is not None and outputs == [1]:
        places = arguments["input"] if arguments["transposed"] else gradient
        depth = (image.shape[0], *tensor_type(places).shape[2:])
        m, n = weight.shape[0] // groups, dim_product(weight.shape[1:])
        read, lies = [image, tensor_type(gradient)], False
    else:
        read = [image if gradient is None else tensor_type(gradient), weight]
        m = dim_product([result.shape[0], *result.shape[2:]])
        n, inner = result.shape[1] // groups, read[0].shape[1] // groups  # type: ignore[operator]
        depth, lies = (*taps, inner), True
    size = element_bytes(result.element)
    far = size * sum(points(type_.shape) for type_ in (*read, result))
    sums = Multiplied(groups, estimate(m), estimate(n), points(depth), size, far=far)
    exact = result.element is f32 and not target.tf32_convolutions
    return WindowSums(sums.exactly(target.gpu) if exact else sums, depth, lies)


__all__ = ["WindowSums", "cut_axis", "leading_axes", "window_parts", "window_sums"]
