"""Dropouts that drop nothing: eager mode returns the tensor itself, a traced graph a copy. And the
way to what becomes of the others on a GPU."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, fx
from torch.fx.experimental.symbolic_shapes import guard_or_false

from irc.frontend.fx.storage_places import copied

#: ATen's own, as packets; exported graphs call their overloads.
PACKETS = tuple(
    getattr(torch.ops.aten, name + end)
    for name in ("dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout")
    for end in ("", "_")
)
#: What Dynamo's graphs call, each with its input, p and whether it is training in front.
DROPOUTS = frozenset((*PACKETS, *(packet.default for packet in PACKETS))) | frozenset(
    {
        F.dropout, F.dropout1d, F.dropout2d, F.dropout3d, F.alpha_dropout, F.feature_alpha_dropout,
        torch.dropout, torch.alpha_dropout, torch.feature_dropout, torch.feature_alpha_dropout,
        torch.dropout_, torch.alpha_dropout_, torch.feature_dropout_,
        torch.feature_alpha_dropout_,
    }
)  # fmt: skip
#: Those that give a view of an operand without a batch: of how many dimensions one with it is.
BATCHED = {F.dropout1d: 3, F.dropout3d: 5}


def skip_dropouts(module: fx.GraphModule) -> fx.GraphModule:
    """A graph with the operands of the dropouts that return them in their places."""
    whole = isinstance(module, fx.GraphModule)
    if not whole or not any(_kept_operand(node) for node in module.graph.nodes):
        return module
    return copied(module, _skip)


def _skip(graph: fx.Graph) -> None:
    for node in graph.nodes:
        operand = _kept_operand(node)
        if operand is not None:
            node.replace_all_uses_with(operand)
            graph.erase_node(node)


def draw_dropouts(module: fx.GraphModule) -> None:
    """Let a GPU's program compute its dropouts itself, in place (`drawn_dropouts`)."""
    if any(node.target is torch.ops.aten.native_dropout.default for node in module.graph.nodes):
        from irc.frontend.fx import drawn_dropouts  # not for programs without one

        drawn_dropouts.draw_dropouts(module)


def _kept_operand(node: fx.Node) -> fx.Node | None:
    """The operand that a call of a dropout returns in eager mode."""
    if node.op != "call_function" or node.target not in DROPOUTS:
        return None
    source, p, training = _arguments(node)
    if not isinstance(source, fx.Node) or not isinstance(p, int | float) or not 0 <= p <= 1:
        return None
    value = source.meta.get("example_value")
    if node.target in BATCHED and (value is None or value.dim() != BATCHED[node.target]):
        return None
    empty = isinstance(value, Tensor) and guard_or_false(value.numel() == 0)
    return source if p == 0 or training is False or empty else None


def _arguments(node: fx.Node) -> list[Any]:
    bound = _signature(node.target).bind(*node.args, **node.kwargs)
    bound.apply_defaults()
    return list(bound.arguments.values())[:3]


@functools.cache
def _signature(target: Any) -> inspect.Signature:
    if not inspect.isfunction(target):  # in C++
        return inspect.signature(lambda input, p, train: None)
    return inspect.signature(target)
