"""Logarithms of softmaxes that a backward computes again instead of reading them.

A loss over a vocabulary takes `log_softmax` of all scores and then one number of each row, but its
gradient needs all of them, so that a forward would store an array as large as the scores. In a
joint graph both are written out here: torch's partition then saves the scores and two numbers of
each row, and both programs compute the rest where they need it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import torch
from torch import fx

aten = torch.ops.aten
_GRADIENT = aten._log_softmax_backward_data.default
_VIEWS = (
    aten.alias.default, aten.detach.default, aten.permute.default, aten.squeeze.dims,
    aten.transpose.int, aten.unsqueeze.default, aten.view.default,
)  # fmt: skip
_FILLED = {aten.full_like.default: None, aten.zeros_like.default: 0, aten.ones_like.default: 1}
_CAST = torch.ops.prims.convert_element_type.default
_CASTS = (_CAST, aten._to_copy.default)
_NARROW = frozenset({torch.bfloat16, torch.float16})
Emit = Callable[..., fx.Node]


def spell_log_softmaxes(joint: fx.GraphModule) -> int:
    """Write out the logarithms of softmaxes that a gradient reads, and that gradient; how many.
    What the caller gets is in memory in any case, and stays."""
    (output,) = joint.graph.find_nodes(op="output")
    changed = 0
    for node in joint.graph.find_nodes(op="call_function", target=aten._log_softmax.default):
        readers = _readers(node, (*_VIEWS, *_CASTS))
        # torch may have taken the gradient apart already: then its power is what reads it.
        read_again = any(reader.target in (_GRADIENT, aten.exp.default) for reader in readers)
        if not read_again or output in _readers(node, _VIEWS) or not node.meta["val"].dim():
            continue
        _spare_shapes(node)
        for reader in readers:
            if reader.target is _GRADIENT:
                _replace(reader, _gradient)
        _replace(node, _log_softmax)
        changed += 1
    if changed:
        joint.recompile()
    return changed


def _readers(node: fx.Node, through: Collection[Any]) -> set[fx.Node]:
    """What reads a node, be it through operators of `through`."""
    readers: set[fx.Node] = set()
    for user in node.users:
        readers |= _readers(user, through) if user.target in through else {user}
    return readers


def _spare_shapes(node: fx.Node) -> None:
    """Let arrays of known sizes that are filled in the shape of a node, or of a view of it, not
    read it."""
    for user in _readers(node, _VIEWS):
        value: Any = user.meta.get("val")
        if user.target not in _FILLED or not value.is_contiguous():
            continue
        if not all(isinstance(size, int) for size in value.shape):
            continue
        number = _FILLED[user.target]
        content = user.args[1] if number is None else number
        facts = {"dtype": value.dtype, "layout": value.layout, "device": value.device}
        with node.graph.inserting_before(user):
            full = node.graph.call_function(aten.full.default, (list(value.shape), content), facts)
        full.meta.update(user.meta)
        user.replace_all_uses_with(full)
        node.graph.erase_node(user)


def _replace(node: fx.Node, spell: Callable[[fx.Node, Emit], fx.Node]) -> None:
    """Put what `spell` emits, in f32 instead of 16-bit floats, in place of a node."""
    graph, value = node.graph, node.meta["val"]
    with graph.inserting_before(node), value.fake_mode:

        def emit(target: Any, *operands: Any) -> fx.Node:
            call = graph.call_function(target, operands)
            call.meta.update(node.meta)
            call.meta["val"] = target(*fx.node.map_arg(operands, lambda n: n.meta["val"]))
            return call

        node.replace_all_uses_with(_cast(spell(node, emit), value.dtype, emit))
    graph.erase_node(node)


def _log_softmax(node: fx.Node, emit: Emit) -> fx.Node:
    """`x - max(x) - log(sum(exp(x - max(x))))`, as irc computes the operator."""
    scores, dim = node.args[0], [node.args[1]]
    scores = _cast(scores, _wide(node.meta["val"].dtype), emit)
    shifted = emit(aten.sub.Tensor, scores, emit(aten.amax.default, scores, dim, True))
    total = emit(aten.sum.dim_IntList, emit(aten.exp.default, shifted), dim, True)
    return emit(aten.sub.Tensor, shifted, emit(aten.log.default, total))


def _gradient(node: fx.Node, emit: Emit) -> fx.Node:
    """`g - exp(y) * sum(g)`."""
    of_result, result = node.args[:2]
    gradient = _cast(of_result, _wide(node.meta["val"].dtype), emit)
    result = _cast(result, _wide(node.meta["val"].dtype), emit)
    total = emit(aten.sum.dim_IntList, gradient, [node.args[2]], True)
    share = emit(aten.mul.Tensor, emit(aten.exp.default, result), total)
    return emit(aten.sub.Tensor, gradient, share)


def _wide(dtype: torch.dtype) -> torch.dtype:
    return torch.float32 if dtype in _NARROW else dtype


def _cast(node: Any, dtype: torch.dtype, emit: Emit) -> fx.Node:
    return node if node.meta["val"].dtype is dtype else emit(_CAST, node, dtype)


__all__ = ["spell_log_softmaxes"]
