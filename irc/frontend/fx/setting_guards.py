"""Guards on settings of torch that decide what a program is, and that Dynamo doesn't look at.

Dynamo compiles again where the precision of products, deterministic algorithms, the default dtype
or the number of threads change. It doesn't where cuDNN's use of TF32 does, which decides in which
layout a GPU's f32 convolutions get their images.
"""

from __future__ import annotations

import torch
from torch import fx

from irc.target import Target

_CONVOLUTIONS = frozenset(
    (torch.ops.aten.convolution.default, torch.ops.aten.convolution_backward.default)
)


def guard_settings(module: fx.GraphModule, target: Target) -> bool:
    """Let Dynamo compile a graph of aten operators again where a setting changes that its target
    holds; whether there is one. Graphs that don't come from Dynamo have no guards."""
    if not target.is_gpu or not any(_is_f32_convolution(node) for node in module.graph.nodes):
        return False
    from torch._guards import TracingContext

    context = TracingContext.try_get()
    if context is None:
        return False
    from torch._dynamo.guards import GuardBuilder
    from torch._dynamo.source import AttrSource, CallFunctionNoArgsSource, ImportSource

    room = AttrSource(AttrSource(ImportSource("irc"), "target"), "host")
    asked = CallFunctionNoArgsSource(AttrSource(room, "allows_tf32"))
    context.guards_context.dynamo_guards.add(asked.make_guard(GuardBuilder.EQUALS_MATCH))
    return True


def _is_f32_convolution(node: fx.Node) -> bool:
    if node.target not in _CONVOLUTIONS:
        return False
    values = [source.meta.get("val") for source in node.all_input_nodes]
    return any(isinstance(v, torch.Tensor) and v.dtype == torch.float32 for v in values)


__all__ = ["guard_settings"]
