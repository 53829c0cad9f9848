"""Logarithms of softmaxes that a backward computes again instead of reading them.

A loss over a vocabulary takes `log_softmax` of all scores and then one number of each row, but its
gradient needs all of them, so that a forward would store an array as large as the scores. In a
joint graph both are written out here: torch's partition then saves the scores and two numbers of
each row, and both programs compute the rest where they need it.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import fx

from irc.frontend.fx.spelled import CASTS, VIEWS, Emit, cast, readers_through, spell, wide

aten = torch.ops.aten
_GRADIENT = aten._log_softmax_backward_data.default


def spell_log_softmaxes(joint: fx.GraphModule) -> int:
    """Write out the logarithms of softmaxes that a gradient reads, and that gradient; how many.
    What the caller gets is in memory in any case, and stays."""
    (output,) = joint.graph.find_nodes(op="output")
    changed = 0
    for node in joint.graph.find_nodes(op="call_function", target=aten._log_softmax.default):
        readers = readers_through(node, (*VIEWS, *CASTS))
        # torch may have taken the gradient apart already: then its power is what reads it.
        read_again = any(reader.target in (_GRADIENT, aten.exp.default) for reader in readers)
        if not read_again or output in readers_through(node, VIEWS) or not node.meta["val"].dim():
            continue
        for reader in readers:
            if reader.target is _GRADIENT:
                _replace(reader, _gradient)
        _replace(node, _log_softmax)
        changed += 1
    if changed:
        joint.recompile()
    return changed


def _replace(node: fx.Node, steps: Callable[[fx.Node, Emit], fx.Node]) -> None:
    """Put what `steps` emits, in f32 instead of 16-bit floats, in place of a node."""
    dtype = node.meta["val"].dtype
    written = spell(node, node, lambda emit: cast(steps(node, emit), dtype, emit))
    node.replace_all_uses_with(written)
    node.graph.erase_node(node)


def _log_softmax(node: fx.Node, emit: Emit) -> fx.Node:
    """`x - max(x) - log(sum(exp(x - max(x))))`, as irc computes the operator."""
    scores, dim = node.args[0], [node.args[1]]
    scores = cast(scores, wide(node.meta["val"].dtype), emit)
    shifted = emit(aten.sub.Tensor, scores, emit(aten.amax.default, scores, dim, True))
    total = emit(aten.sum.dim_IntList, emit(aten.exp.default, shifted), dim, True)
    return emit(aten.sub.Tensor, shifted, emit(aten.log.default, total))


def _gradient(node: fx.Node, emit: Emit) -> fx.Node:
    """`g - exp(y) * sum(g)`."""
    of_result, result = node.args[:2]
    gradient = cast(of_result, wide(node.meta["val"].dtype), emit)
    result = cast(result, wide(node.meta["val"].dtype), emit)
    total = emit(aten.sum.dim_IntList, gradient, [node.args[2]], True)
    share = emit(aten.mul.Tensor, emit(aten.exp.default, result), total)
    return emit(aten.sub.Tensor, gradient, share)


__all__ = ["spell_log_softmaxes"]
