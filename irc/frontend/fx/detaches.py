"""Detached tensors in joint graphs.

`detach` stays whole while torch traces: in the body of a scan or map it becomes a copy, without
which a result that is also saved for the backward would be given twice, and torch refuses that.
"""

from __future__ import annotations

import torch
from torch import fx


def as_aliases(joint: fx.GraphModule) -> None:
    """Write `detach` as `alias`, which torch's partition knows as a view that costs nothing."""
    for node in joint.graph.find_nodes(
        op="call_function", target=torch.ops.aten.detach.default, sort=False
    ):
        node.target = torch.ops.aten.alias.default
