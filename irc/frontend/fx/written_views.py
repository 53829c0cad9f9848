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
    if not any(_writes_by_itself(node) for node in module.graph.nodes):
        return module
    module = copied(module)
    for node in list(module.graph.nodes):
        if not _writes_by_itself(node):
            continue
        written = _written_operands(node)
        views: dict[fx.Node, fx.Node] = {}
        with module.graph.inserting_before(node):
            for operand in written:
                module.graph.call_function(torch.ops.aten.clone.default, (operand,))
                views[operand] = module.graph.call_function(
                    torch.ops.aten.alias.default, (operand,)
                )
        for operand, view in views.items():
            view.meta = {k: v for k, v in node.meta.items() if k == "stack_trace"}
            node.replace_input_with(operand, view)
    module.recompile()
    return module


def _writes_by_itself(node: fx.Node) -> bool:
    """Whether a node calls an operator that writes operands and that is none of torch's own."""
    target = node.target
    if node.op != "call_function":
        return False
    if isinstance(target, torch._ops.OpOverloadPacket):
        names = target.overloads()
        target = getattr(target, names[0]) if len(names) == 1 else target
    if not isinstance(target, torch._ops.OpOverload):
        return False
    return target._schema.is_mutable and target.namespace not in ("aten", "prim", "prims")


def _written_operands(node: fx.Node) -> list[fx.Node]:
    """What a call writes, each once."""
    target: Any = node.target
    if isinstance(target, torch._ops.OpOverloadPacket):
        target = getattr(target, target.overloads()[0])
    written: dict[fx.Node, None] = {}
    for place, argument in enumerate(target._schema.arguments):
        if argument.alias_info is None or not argument.alias_info.is_write:
            continue
        value = node.args[place] if place < len(node.args) else node.kwargs.get(argument.name)
        leaves = value if isinstance(value, list | tuple) else [value]
        written.update(dict.fromkeys(x for x in leaves if isinstance(x, fx.Node)))
    return list(written)
