"""Operators written out in joint graphs, so that torch's partition can cut between their steps."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, TypeVar

import torch
from torch import fx

aten = torch.ops.aten
CAST = torch.ops.prims.convert_element_type.default
CASTS = (CAST, aten._to_copy.default)
NARROW = frozenset({torch.bfloat16, torch.float16})
#: What gives an operand's elements, whatever these are for.
VIEWS = (
    aten.alias.default, aten.detach.default, aten.permute.default, aten.squeeze.dims,
    aten.transpose.int, aten.unsqueeze.default, aten.view.default,
)  # fmt: skip
T = TypeVar("T")
Emit = Callable[..., fx.Node]


def spell(node: fx.Node, like: fx.Node, steps: Callable[[Emit], T]) -> T:
    """What `steps` emits before `node`, at the place in the model that `like` is from."""
    graph, made_by = node.graph, {k: v for k, v in like.meta.items() if k != "tensor_meta"}
    with graph.inserting_before(node), _first(like.meta["val"]).fake_mode:

        def emit(target: Any, *operands: Any) -> fx.Node:
            call = graph.call_function(target, operands)
            call.meta.update(made_by)
            call.meta["val"] = target(*fx.node.map_arg(operands, lambda n: n.meta["val"]))
            return call

        return steps(emit)


def wide(dtype: torch.dtype) -> torch.dtype:
    """What irc computes in where values are of `dtype`."""
    return torch.float32 if dtype in NARROW else dtype


def cast(node: Any, dtype: torch.dtype, emit: Emit) -> fx.Node:
    """A node's values in another dtype."""
    return node if node.meta["val"].dtype is dtype else emit(CAST, node, dtype)


def sizes(node: fx.Node, emit: Emit) -> list[int | fx.Node]:
    """How many elements there are along each dimension."""
    shape = node.meta["val"].shape
    return [
        d if isinstance(d, int) else emit(aten.sym_size.int, node, k) for k, d in enumerate(shape)
    ]


def readers_through(node: fx.Node, through: Collection[Any]) -> set[fx.Node]:
    """What reads a node, be it through operators of `through`."""
    readers: set[fx.Node] = set()
    for user in node.users:
        readers |= readers_through(user, through) if user.target in through else {user}
    return readers


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list | tuple) else value
