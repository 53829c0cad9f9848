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
    product: Tensor, other: Tensor | None, activation: str | None, scalars: Sequence[float]
) -> Tensor:
    """`activation(product + other)`."""
    product = product if other is None else product + other
    return product if activation is None else ACTIVATIONS[activation](product, *scalars)


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


def placed(frame: Frame, content: Tensor, op: Any) -> Tensor:
    """A result with the strides that its type says, once strides are decided."""
    strides = op.value.type.strides
    if strides is None:
        return content
    held = torch.empty_strided(content.shape, frame.dims(strides), dtype=content.dtype)
    return held.copy_(content)


@interprets(graph.PackedConv)
def packed_conv(frame: Frame, op: graph.PackedConv) -> Tensor:
    product = _convolution(
        frame[op.source], frame[op.weight], optional(frame, op.bias), list(op.stride),
        list(op.padding), list(op.dilation), op.groups,
    )  # fmt: skip
    scalars = [s.value for s in op.scalars or ()]
    product = finished(product, optional(frame, op.other), op.activation, scalars)
    return placed(frame, product, op)


@interprets(graph.PackedLinear)
def packed_linear(frame: Frame, op: graph.PackedLinear) -> Tensor:
    product = functional.linear(frame[op.source], frame[op.weight], optional(frame, op.bias))
    scalars = [s.value for s in op.scalars or ()]
    product = finished(product, optional(frame, op.other), op.activation, scalars)
    return placed(frame, product, op)


# -- torch's operators on packed weights


def call_packed(
    frame: Frame, callee: str, arguments: Mapping[str, Any], inputs: Sequence[Any]
) -> Tensor | None:
    """What an operator of the namespace mkldnn gives; None for an operator of another one."""
    namespace, _, name = callee.removeprefix("aten.extern.").partition(".")
    if namespace != "mkldnn":
        return None
    values = {key: decode(frame, attr, inputs) for key, attr in arguments.items()}
    x, weight, bias = values["X"], values["W"], values.get("B")
    if name.startswith("_linear_pointwise"):
        product = functional.linear(x, weight, bias)
    elif name.startswith("_convolution_pointwise"):
        product = _convolution(
            x, weight, bias,
            values["stride"], values["padding"], values["dilation"], values["groups"],
        )  # fmt: skip
    else:
        raise UserError(f"the interpreter has no meaning for mkldnn.{name}")
    product = product.contiguous() if x.dim() < 4 else product.to(memory_format=torch.channels_last)
    binary = values.get("other") is not None
    attr = values.get("unary_attr") if binary else values["attr"]
    key = values.get("algorithm")
    activation = _NAMED.get((attr, key)) or _NAMED.get(attr, attr)
    scalars = values.get("scalars") or ()
    activation = None if attr == "none" else activation
    product = finished(product, values.get("other"), activation, scalars)
    return values["other"].copy_(product) if name.endswith("_.binary") else product
