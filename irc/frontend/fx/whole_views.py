"""Views by strides that are all of what they are views of, and sums of single numbers.

What a call becomes may fill tensors of other strides, which are views (`as_strided`) of new ones.
In a graph without writes a view of all of a tensor, in its own strides, is that tensor, and what is
scattered to all of it is the result. And what is summed up over the heads that share another one is
a view where each has its own (but that a sum of -0 is 0).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import fx

from irc.frontend.fx.undone_copies import is_same

aten = torch.ops.aten


def skip_whole_views(nodes: Iterable[fx.Node]) -> None:
    """Give the readers of such views, among nodes of one graph without writes, what they are."""
    for node in nodes:
        if node.target is aten.as_strided.default and _is_whole(node, node.args[0]):
            node.replace_all_uses_with(node.args[0])  # type: ignore[arg-type]
        elif node.target is aten.as_strided_scatter.default:
            source = node.args[1]
            if _is_whole(node, node.args[0]) and _is_whole(node, source):
                node.replace_all_uses_with(source)  # type: ignore[arg-type]
        elif node.target is aten.sum.dim_IntList and _is_of_ones(node):
            with node.graph.inserting_before(node):
                view = node.graph.call_function(aten.squeeze.dims, (node.args[0], node.args[1]))
            view.meta = dict(node.meta)
            node.replace_all_uses_with(view)


def _is_of_ones(node: fx.Node) -> bool:
    """Whether a sum is over dimensions of size 1, which go, of numbers of its own type."""
    source, dims = node.args[0], node.args[1]
    if not isinstance(source, fx.Node) or not isinstance(dims, list | tuple):
        return False
    value, result = source.meta["val"], node.meta["val"]
    sizes = [value.size(dim) for dim in dims]  # type: ignore[arg-type]
    if value.dim() == result.dim():
        return False
    return bool(sizes) and value.dtype is result.dtype and all(is_same(n, 1) for n in sizes)


def _is_whole(node: fx.Node, other: object) -> bool:
    """Whether a tensor has all of the sizes and strides that a view of it, or of another one, is
    given, from its first element on."""
    if not isinstance(other, fx.Node) or not isinstance(other.meta.get("val"), torch.Tensor):
        return False
    first = 1 if node.target is aten.as_strided.default else 2
    sizes, strides, *offset = list[Any]((*node.args[first:], *node.kwargs.values()))
    value = other.meta["val"]
    if any(place not in (None, 0) for place in offset) or value.storage_offset() != 0:
        return False
    pairs = [*zip(sizes, value.size(), strict=False), *zip(strides, value.stride(), strict=False)]
    return len(sizes) == value.dim() and all(is_same(a, b) for a, b in pairs)


__all__ = ["skip_whole_views"]
