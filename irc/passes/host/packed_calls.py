"""The operators of torch that packed operations of the graph dialect become (oneDNN's, for x86)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from irc.dialects import aten, graph
from irc.ir import attributes as A
from irc.ir.core import Value

NAMESPACE = "aten.extern.mkldnn."
#: torch's names of the activations, with the algorithm that it wants beside them.
_TORCH_NAMES = {"silu": ("swish", ""), "gelu": ("gelu", "none"), "gelu_tanh": ("gelu", "tanh")}

Call = tuple[str, list[Value], dict[str, A.Attribute]]


def packing_of(op: graph.Pack) -> tuple[str, dict[str, A.Attribute]]:
    """The operator that packs a weight, and its arguments but for the weight."""
    input_sizes = op.attributes.get("input")
    if op.format == "linear":
        rows = None if op.input is None else A.IntegerAttr(op.input[0])
        return f"{NAMESPACE}_reorder_linear_weight.default", {"batch_size": rows or aten.NONE}
    arguments = {name: op.attributes[name] for name in ("padding", "stride", "dilation", "groups")}
    arguments["input_size"] = input_sizes or aten.NONE
    return f"{NAMESPACE}_reorder_convolution_weight.default", arguments


def call_of(op: graph.PackedConv | graph.PackedLinear, in_place: bool) -> Call:
    """The call that computes `op`: operator, operands, arguments.

    `in_place`: the result is computed in the memory of `op.other` (convolutions only).
    """
    operands: list[Value] = []
    arguments: dict[str, A.Attribute] = {}

    def give(name: str, value: Value | None) -> None:
        arguments[name] = aten.NONE if value is None else aten.OperandAttr(len(operands))
        if value is not None:
            operands.append(value)

    for name, value in (("X", op.source), ("W", op.weight), ("B", op.bias)):
        give(name, value)
    if op.other is not None:
        give("other", op.other)
    name = "_linear_pointwise"
    if isinstance(op, graph.PackedConv):
        name = "_convolution_pointwise_" if in_place else "_convolution_pointwise"
        for key in ("padding", "stride", "dilation", "groups"):
            arguments[key] = op.attributes[key]
    arguments.update(_epilogue(op))
    overload = "default" if op.other is None else "binary"
    return f"{NAMESPACE}{name}.{overload}", operands, arguments


def _epilogue(op: Any) -> Mapping[str, A.Attribute]:
    """The arguments that say what is done to each element of the result."""
    name, algorithm = _TORCH_NAMES.get(op.activation, (op.activation or "none", ""))
    scalars: Sequence[A.Attribute] = tuple(op.scalars or ())
    text = A.StringAttr
    if op.other is None:
        return {"attr": text(name), "scalars": A.ArrayAttr(scalars), "algorithm": text(algorithm)}
    if isinstance(op, graph.PackedLinear):
        return {"attr": text("add")}
    return {
        "binary_attr": text("add"),
        "alpha": A.FloatAttr(1.0),
        "unary_attr": aten.NONE if op.activation is None else text(name),
        "unary_scalars": A.ArrayAttr(scalars),
        "unary_algorithm": aten.NONE if op.activation is None else text(algorithm),
    }
