"""Calls of custom operators that write their arguments, as Dynamo hands them over.

AOTAutograd's wrapper of such a call says where a written view lies in its storage as it was when
the view was made. What it is a view of may have been written since, and be another value, which
begins elsewhere. So each call is given views that are made right before it: `alias` of the
operand, after a copy of it that nothing uses, for which AOTAutograd brings the operand up to date.
Of both nothing is left in AOTAutograd's own graphs.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from irc.frontend.fx.storage_places import copied


def view_written_operands(module: fx.GraphModule) -> fx.GraphModule:
    """A graph of Dynamo's whose calls of custom operators have new views of what they write."""
    if not isinstance(module, fx.GraphModule):
        return module
    if not any(_written(node) for node in module.graph.nodes):
        return module
    module = copied(module)
    for node in list(module.graph.nodes):
        for operand in _written(node):
            with module.graph.inserting_before(node):
                module.graph.call_function(torch.ops.aten.clone.default, (operand,))
                view = module.graph.call_function(torch.ops.aten.alias.default, (operand,))
            view.meta = {k: v for k, v in node.meta.items() if k == "stack_trace"}
            node.replace_input_with(operand, view)
    module.recompile()
    return module


def _written(node: fx.Node) -> list[fx.Node]:
    """What a node writes, each once, if it calls an operator that is none of torch's own."""
    target: Any = node.target
    if node.op != "call_function":
        return []
    if isinstance(target, torch._ops.OpOverloadPacket) and len(target.overloads()) == 1:
        target = getattr(target, target.overloads()[0])
    if not isinstance(target, torch._ops.OpOverload) or not target._schema.is_mutable:
        return []
    if target.namespace in ("aten", "prim", "prims"):
        return []
    written: dict[fx.Node, None] = {}
    for place, argument in enumerate(target._schema.arguments):
        if argument.alias_info is None or not argument.alias_info.is_write:
            continue
        value = node.args[place] if place < len(node.args) else node.kwargs.get(argument.name)
        leaves = value if isinstance(value, list | tuple) else [value]
        written.update(dict.fromkeys(x for x in leaves if isinstance(x, fx.Node)))
    return list(written)


__all__ = ["view_written_operands"]
