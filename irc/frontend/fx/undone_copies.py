"""Copies that undo a copy, in joint graphs.

A copy into rows, of moved dimensions of a copy into rows, may have the strides that the first one's
source has under these dimensions: `attention(...).contiguous().transpose(1, 2).contiguous()`. A
program compiled alone copies nothing then. But torch's partition saves tensors of both memories for
the backward, and what is saved is stored. So before, such a copy is what its source is.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch import fx
from torch.fx.experimental.symbolic_shapes import statically_known_true

aten = torch.ops.aten
#: What moves dimensions, whatever its operand's strides are.
_MOVES = frozenset(
    {
        aten.alias.default, aten.permute.default, aten.squeeze.dim, aten.squeeze.dims,
        aten.t.default, aten.transpose.int, aten.unsqueeze.default,
    }
)  # fmt: skip


def skip_undone_copies(joint: fx.GraphModule) -> None:
    """Give the readers of such copies views of the source, in place. Nothing but the joint graph's
    last copies into arguments writes there, so no argument is a source."""
    copies = joint.graph.find_nodes(op="call_function", target=aten.clone.default)
    if len(copies) < 2:
        return
    returned = {_root(node) for node in joint.graph.output_node().all_input_nodes}
    for copy in copies:
        moves: list[fx.Node] = []
        first = copy.args[0]
        while isinstance(first, fx.Node) and first.target in _MOVES:
            moves.insert(0, first)
            first = first.args[0]
        if not isinstance(first, fx.Node) or first.target is not aten.clone.default:
            continue
        source = first.args[0]
        if not isinstance(source, fx.Node) or _root(source).op != "call_function":
            continue
        if copy in returned or _root(source) in returned:
            continue
        moved = _moved(source.meta["val"], moves)
        if all(map(is_same, moved[-1].stride(), copy.meta["val"].stride())):
            _replace(copy, moves, source, moved)
            for node in (copy, *reversed(moves), first):
                if not node.users:
                    joint.graph.erase_node(node)


def _moved(value: Any, moves: Sequence[fx.Node]) -> list[Any]:
    """A fake tensor, and what each of some moves makes of it, one after another."""
    values = [value]
    for move in moves:
        values.append(move.target(values[-1], *move.args[1:], **move.kwargs))  # type: ignore[operator]
    return values


def _replace(
    copy: fx.Node, moves: Sequence[fx.Node], source: fx.Node, moved: Sequence[Any]
) -> None:
    with copy.graph.inserting_before(copy):
        for move, value in zip(moves, moved[1:], strict=True):
            arguments = (source, *move.args[1:])
            source = copy.graph.call_function(move.target, arguments, move.kwargs)  # type: ignore[arg-type]
            source.meta = {k: v for k, v in copy.meta.items() if k != "tensor_meta"}
            source.meta["val"] = value
    copy.replace_all_uses_with(source)
    tell_views(source)


def tell_views(node: fx.Node) -> None:
    """Let views of a value know its memory: what lies in the same is told by fake tensors."""
    for user in node.users:
        if user.op == "call_function" and _viewed(user) is node:
            values = fx.node.map_arg((user.args, user.kwargs), lambda n: n.meta["val"])
            user.meta["val"] = user.target(*values[0], **values[1])  # type: ignore[operator, index]
            tell_views(user)


def is_same(first: Any, second: Any) -> bool:
    """Whether two sizes or strides are known to be equal."""
    return statically_known_true(first == second)


def _viewed(node: fx.Node) -> fx.Node | None:
    """What a call gives a view of."""
    target = node.target
    schema = target._schema if isinstance(target, torch._ops.OpOverload) else None
    if schema is None or not schema.arguments or schema.arguments[0].alias_info is None:
        return None
    source = node.args[0] if node.args else None
    return source if isinstance(source, fx.Node) else None


def _root(node: fx.Node) -> fx.Node:
    """What a value may be a view of, however many views are between."""
    while node.op == "call_function":
        source = node.args[0] if node.target is operator.getitem else _viewed(node)
        if not isinstance(source, fx.Node):
            break
        node = source
    return node


__all__ = ["is_same", "skip_undone_copies", "tell_views"]
