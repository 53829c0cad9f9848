"""What the passes share that have frozen convolutions computed by kernels of our own."""

from __future__ import annotations

from typing import Any

from irc.analysis.channels_last import CONVOLUTION
from irc.analysis.constant_values import ConstantValues
from irc.analysis.panels import panel_size
from irc.dialects import func, graph
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import Value
from irc.ir.definition import SEGMENTS
from irc.ir.types import f32
from irc.passes.frozen.pack_weights import operands_of
from irc.passes.frozen.weighted_products import tensor_type
from irc.target import Target


def convolutions(function: func.FuncOp, target: Target) -> list[graph.CallAten]:
    """The convolutions of a function; none where the library isn't there that computes those
    which are left."""
    calls = [o for o in function.block.ops
             if isinstance(o, graph.CallAten) and o.callee == CONVOLUTION]  # fmt: skip
    return calls if target.library and not target.is_gpu else []


def common_sizes(
    call: graph.CallAten, constants: ConstantValues, taps: int, bits: int
) -> dict[str, Any] | str:
    """What every `ConvolutionShape` has, of a convolution with a constant f32 weight of
    `taps` x `taps`; or why it is none."""
    values, given = operands_of(call)
    image, weight = values["input"], values["weight"]
    assert image is not None and weight is not None
    source, kind = tensor_type(image), tensor_type(weight)
    if weight not in constants:
        return "its weight is no constant"
    if given["transposed"] is A.TRUE:
        return "it is transposed"
    if {source.element, kind.element} != {f32} or source.device != "cpu":
        return f"it is of {source.element} on {source.device}, not of f32 on cpu"
    if kind.shape[2:] != (taps, taps):
        return f"its weights are {'x'.join(map(str, kind.shape[2:]))}, not {taps}x{taps}"
    if 0 in (*source.shape, *tensor_type(call.results[0]).shape):
        return "it has no elements"
    batch, channels, high, wide = source.shape
    out = kind.shape[0]
    assert isinstance(channels, int) and isinstance(out, int)
    return {
        "batch": batch, "height": high, "width": wide, "channels": channels, "channels_out": out,
        "bits": bits, "panel": panel_size(bits),
    }  # fmt: skip


def replace(
    call: graph.CallAten,
    cls: type[graph.WinogradConv] | type[graph.PanelConv],
    image: Value,
    weight: Value,
    attributes: dict[str, A.Attribute],
) -> None:
    """Put a convolution of ours on `image` and the laid out `weight` in the place of a call."""
    bias = operands_of(call)[0].get("bias")
    operands = [image, weight] if bias is None else [image, weight, bias]
    attributes[SEGMENTS] = A.DenseIntsAttr((1, 1, int(bias is not None), 0))
    made = cls(operands, call.result_types, attributes, (), call.location)
    Builder.before(call).insert(made)
    made.value.name_hint = call.results[0].name_hint
    call.results[0].replace_all_uses_with(made.value)
    call.erase()
