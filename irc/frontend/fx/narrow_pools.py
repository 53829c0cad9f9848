"""Maxima of windows whose places a backward reads, in a byte each.

`max_pool2d_with_indices` gives where in a plane each maximum is, in eight bytes, and its gradient
needs nothing else. Where in its window it is says as much: `irc::max_pool_places` gives that, and
`irc::max_pool_places_backward` reads it.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import torch
from torch import fx
from torch.fx.experimental.symbolic_shapes import statically_known_true

from irc.dialects.aten import own  # noqa: F401  (its import makes irc's operators known)
from irc.frontend.fx.spelled import VIEWS, readers_through, sizes, spell
from irc.frontend.fx.undone_copies import tell_views

aten = torch.ops.aten
_POOLS = {
    aten.max_pool2d_with_indices.default: aten.max_pool2d_with_indices_backward.default,
    aten.max_pool3d_with_indices.default: aten.max_pool3d_with_indices_backward.default,
}
_DTYPES = (torch.int8, torch.int16)


def narrow_pools(joint: fx.GraphModule) -> int:
    """Let pools tell places in windows where only their gradients read them; how many."""
    narrowed = 0
    for target, gradient in _POOLS.items():
        for pool in joint.graph.find_nodes(op="call_function", target=target):
            narrowed += _narrow(joint, pool, gradient)
    if narrowed:
        joint.recompile()
    return narrowed


def _narrow(joint: fx.GraphModule, pool: fx.Node, gradient: Any) -> bool:
    parts = {user.args[1]: user for user in pool.users if user.target is operator.getitem}
    readers = readers_through(parts[1], VIEWS) if 1 in parts else set()
    if not readers or any(reader.target is not gradient for reader in readers):
        return False
    *windows, ceil_mode, _ = next(iter(readers)).args[2:]
    kernel: Any = windows[0]
    dtype = next((d for d in _DTYPES if math.prod(kernel) <= torch.iinfo(d).max), None)
    if dtype is None:
        return False
    source: Any = pool.args[0]
    values, positions = pool.meta["val"]
    with positions.fake_mode:
        places = positions.to(dtype)
    pool.target = torch.ops.irc.max_pool_places.default
    pool.args, pool.kwargs = (source, *windows, ceil_mode, dtype), {}
    pool.meta["val"] = (values, places)
    parts[1].meta["val"] = places
    tell_views(parts[1])
    for reader in readers:
        size = spell(reader, pool, lambda emit: sizes(source, emit))
        reader.target = torch.ops.irc.max_pool_places_backward.default
        innermost = _has_channels_innermost(reader.meta["val"], len(kernel))
        reader.args = (reader.args[0], reader.args[-1], size, *windows, innermost)
    return True


def _has_channels_innermost(value: torch.Tensor, count: int) -> bool:
    """Whether channels, the dimension before `count` others, lie side by side."""
    return value.dim() > count and statically_known_true(value.stride(-count - 1) == 1)
