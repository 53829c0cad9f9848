"""Arrays that are filled in the shape of others, in joint graphs.

`zeros_like(x)` reads nothing of `x`, but torch's partition takes it for something that is made of
it: a backward that returns zeros gets them from the forward. What has a known size is filled by
`full`, which needs nothing.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

aten = torch.ops.aten
#: Operator -> what it fills an array with: a number, or one of its arguments.
_FILLED: dict[Any, float | str] = {
    aten.full_like.default: "fill_value", aten.new_full.default: "fill_value",
    aten.zeros_like.default: 0, aten.new_zeros.default: 0,
    aten.ones_like.default: 1, aten.new_ones.default: 1,
}  # fmt: skip


def spare_shapes(joint: fx.GraphModule) -> int:
    """Let arrays of known sizes that are filled, with elements in order, read no other array; how
    many."""
    spared = 0
    for target, number in _FILLED.items():
        for node in joint.graph.find_nodes(op="call_function", target=target):
            value = node.meta["val"]
            static = all(isinstance(size, int) for size in value.shape)
            if not static or not value.is_contiguous():
                continue
            content = _argument(node, number) if isinstance(number, str) else number
            facts = {"dtype": value.dtype, "layout": value.layout, "device": value.device}
            with joint.graph.inserting_before(node):
                full = joint.graph.call_function(
                    aten.full.default, (list(value.shape), content), facts
                )
            full.meta.update(node.meta)
            node.replace_all_uses_with(full)
            joint.graph.erase_node(node)
            spared += 1
    if spared:
        joint.recompile()
    return spared


def _argument(node: fx.Node, name: str) -> Any:
    target: Any = node.target
    for position, argument in enumerate(target._schema.arguments):
        if argument.name == name:
            return node.args[position] if position < len(node.args) else node.kwargs[name]
    raise AssertionError(f"{target} has no argument '{name}'")


__all__ = ["spare_shapes"]
