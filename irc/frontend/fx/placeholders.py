"""Placeholders of a graph that are given other strides than it was traced with."""

from __future__ import annotations

from collections.abc import Container, Mapping

import torch
from torch import fx

_AS_STRIDED = ("aten::as_strided", "aten::as_strided_scatter", "aten::as_strided_copy")


def replace_placeholder_values(
    module: fx.GraphModule,
    values: Mapping[fx.Node, torch.Tensor],
    reordered: Container[fx.Node] = (),
) -> None:
    """Make `values` the metas of these placeholders, in place; each has the shape and dtype of the
    old meta. The users of those that are `reordered`, and of all in a graph with views that are
    given by places in a storage, read a clone with the old meta instead: operators are told by it
    what eager passes."""
    placeholders = module.graph.find_nodes(op="placeholder")
    by_place = _reads_by_place(module)
    for node, value in values.items():
        traced = node.meta["val"]
        node.meta["val"] = value
        if not by_place and node not in reordered:
            continue
        with module.graph.inserting_after(placeholders[-1]):
            copy = module.graph.call_function(torch.ops.aten.clone.default, (node,))
        copy.meta["val"] = traced
        for user in list(node.users):
            if user is not copy:
                user.replace_input_with(node, copy)


def _reads_by_place(module: fx.GraphModule) -> bool:
    return any(
        isinstance(n.target, torch._ops.OpOverload) and n.target.name().split(".")[0] in _AS_STRIDED
        for n in module.graph.nodes
    )


__all__ = ["replace_placeholder_values"]
