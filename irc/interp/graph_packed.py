"""The meaning of packed operations: a packed weight is the weight, whatever its order in memory.

Torch's operators of the `mkldnn` namespace, which these become in a host program, mean the same
here; the library that they stand for isn't called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.nn import functional

from irc.dialects import graph, host
from irc.interp.core import Frame, interprets
from irc.interp.operators import decode
from irc.ir.diagnostics import UserError

Tensor = torch.Tensor

ACTIVATIONS: dict[str, Callable[..., Tensor]] = {
    "relu": torch.relu,
    "leaky_relu": functional.leaky_relu,
    "hardtanh": functional.hardtanh,
    "hardswish": functional.hardswish,
    "silu": functional.silu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "gelu": functional.gelu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
}
_NAMED: dict[Any, str] = {"swish": "silu", ("gelu", "none"): "gelu", ("gelu", "tanh"): "gelu_tanh"}


@interprets(graph.Pack)
def pack(frame: Frame, op: graph.Pack) -> Tensor:
    weight: Tensor = frame[op.weight]
    return weight.t() if op.transposed else weight


@interprets(host.PackOp)
def host_pack(frame: Frame, op: host.PackOp) -> Tensor:
    source: Tensor = frame[op.source]
    return source.t() if op.transposed else source


def finished(
    made: Tensor, other: Tensor | None, activation: str | None, scalars: Sequence[float]
) -> Tensor:
    """`activation(made + other)`."""
    made = made if other is None else made + other
    return made if activation is None else ACTIVATIONS[activation](made, *scalars)


def optional(frame: Frame, value: Any) -> Tensor | None:
    """The content of an operand that may be absent."""
    return None if value is None else frame[value]


def _convolution(
    x: Tensor, weight: Tensor, bias: Tensor | None, stride: list[int], padding: list[int],
    dilation: list[int], groups: int,
) -> Tensor:  # fmt: skip
    none = [0] * len(stride)
    return torch.ops.aten.convolution(
        x, weight, bias, stride, padding, dilation, False, none, groups
    )


def placed(frame: Frame, made: Tensor, op: Any) -> Tensor:
    """A result with the strides that its type says, once strides are decided."""
    strides = op.value.type.strides
    if strides is None:
        return made
    return torch.empty_strided(made.shape, frame.dims(strides), dtype=made.dtype).copy_(made)


@interprets(graph.PackedConv)
def packed_conv(frame: Frame, op: graph.PackedConv) -> Tensor:
    made = _convolution(
        frame[op.source], frame[op.weight], optional(frame, op.bias), list(op.stride),
        list(op.padding), list(op.dilation), op.groups,
    )  # fmt: skip
    scalars = [s.value for s in op.scalars or ()]
    made = finished(made, optional(frame, op.other), op.activation, scalars)
    return placed(frame, made, op)


@interprets(graph.PackedLinear)
def packed_linear(frame: Frame, op: graph.PackedLinear) -> Tensor:
    made = functional.linear(frame[op.source], frame[op.weight], optional(frame, op.bias))
    scalars = [s.value for s in op.scalars or ()]
    made = finished(made, optional(frame, op.other), op.activation, scalars)
    return placed(frame, made, op)


# -- torch's operators on packed weights


def call_packed(
    frame: Frame, callee: str, arguments: Mapping[str, Any], inputs: Sequence[Any]
) -> Tensor | None:
    """What an operator of the namespace mkldnn gives; None for an operator of another one."""
    namespace, _, name = callee.removeprefix("aten.extern.").partition(".")
    if namespace != "mkldnn":
        return None
    given = {key: decode(frame, attr, inputs) for key, attr in arguments.items()}
    x, weight, bias = given["X"], given["W"], given.get("B")
    if name.startswith("_linear_pointwise"):
        made = functional.linear(x, weight, bias)
    elif name.startswith("_convolution_pointwise"):
        made = _convolution(
            x, weight, bias, given["stride"], given["padding"], given["dilation"], given["groups"]
        )
    else:
        raise UserError(f"the interpreter has no meaning for mkldnn.{name}")
    made = made.contiguous() if x.dim() < 4 else made.to(memory_format=torch.channels_last)
    binary = given.get("other") is not None
    attr = given.get("unary_attr") if binary else given["attr"]
    key = given.get("algorithm")
    activation = _NAMED.get((attr, key)) or _NAMED.get(attr, attr)
    scalars = given.get("scalars") or ()
    made = finished(made, given.get("other"), None if attr == "none" else activation, scalars)
    return given["other"].copy_(made) if name.endswith("_.binary") else made
