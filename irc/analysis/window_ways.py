"""Who computes a convolution channel by channel on a CPU: the library, or a reduction over the
window with vectors along the channels.

    if window_objection(call, target) is None: ...

Such a reduction has several places of a row in registers (`jam_axis` of a schedule), so that it
multiplies as fast as the processor does where the window is read once for all of them. How fast
that is of the library's speed is a figure of the processor (`own_windows`, `own_pair_windows`), for
windows with few and with many elements. Elements of bf16 are multiplied and summed up as f32, the
weight's widened as it is laid out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from irc.dialects import aten, graph
from irc.dialects.graph.inferred import tensor_type
from irc.ir.types import bf16, f32
from irc.target import Target


def window_objection(call: graph.CallAten, target: Target, line: bool = False) -> str | None:
    """Why a convolution is left to the library; None where irc's reduction is surely as fast.
    line: vectors would run along the places of a line, not along channels."""
    arguments = aten.arguments_of(call)
    image, weight = tensor_type(arguments["input"]), tensor_type(arguments["weight"])
    groups = arguments["groups"]
    features = target.features
    speeds = {f32: features.own_windows, bf16: features.own_pair_windows}.get(image.element)
    if speeds is None:
        return f"it is of {image.element}"
    if groups == 1 or weight.shape[1] != 1:
        return f"it sums up over {weight.shape[1]} channels in each of {groups} groups"
    if weight.shape[0] != groups:
        return "several results of a channel would be stored apart"
    taps = [n for n in weight.shape[2:] if isinstance(n, int)]
    if len(taps) != weight.rank - 2:
        return "its window is symbolic"
    lanes = target.lanes(f32)
    empty = 1 - groups / (-(-groups // lanes) * lanes)
    if not line and empty > target.panel_empty:
        return f"{groups} channels leave {empty:.0%} of their vectors empty"
    return _figures_objection(taps, speeds, call, target)


def _figures_objection(
    taps: Sequence[int], speeds: Sequence[int], call: graph.CallAten, target: Target
) -> str | None:
    features = target.features
    if max(taps) > features.most_taps:
        return f"a row of its window has {max(taps)} elements, over {features.most_taps}"
    few, many = speeds
    count = math.prod(taps)
    speed = few if count < features.many_taps else many
    if speed < 100 * features.sure_products:
        return f"irc has {speed} % of the library's speed for windows of {count} elements"
    result = tensor_type(call.results[0])
    if 0 in result.shape:
        return "it has no elements"
    return None


__all__ = ["window_objection"]
