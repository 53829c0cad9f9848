"""Where attention that was written by hand is fused in torch's graphs.

The pass `fuse-attention` sees one program at a time. But probabilities that a forward saves for its
backward are read by another program; and which fused kernel a GPU runs is torch's decision, made on
fake tensors. So joint graphs, and graphs of a GPU, are rewritten here, with the pass's own
recognition. And calls of `scaled_dot_product_attention` are given the masks that they need, by
`attention_calls`.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from irc.options.options import Options
from irc.target import Target

_ATEN = torch.ops.aten.scaled_dot_product_attention
#: How programs call it, whose masks are judged.
CALLS = frozenset({torch.nn.functional.scaled_dot_product_attention, _ATEN, _ATEN.default})


def fuse_for(module: fx.GraphModule, options: Options, target: Target) -> int:
    """Make operators of the attentions in a graph for a target, where the options have the
    pass, with remarks if they ask for these; how many."""
    if not options.pattern_matcher or options.emulate_rounding:
        return 0
    softmax = torch.ops.aten._softmax.default
    if not module.graph.find_nodes(op="call_function", target=softmax):
        return 0
    from irc.frontend.fx.fused_attention import fuse
    from irc.frontend.importing.locations import location_of
    from irc.ir.passes.context import Remark, chosen_remarks

    core_bytes = None if target.is_gpu else target.features.core_bytes
    told: list[Remark] = []

    def note(node: fx.Node, message: str) -> None:
        told.append(Remark("fuse-attention", message, location_of(node), str(node.target)))

    limit = options.fuel if options.fuel >= 0 else None
    count = fuse(module, core_bytes, note if options.remarks else None, limit)
    for remark in chosen_remarks(told, options.remarks):
        print(remark, file=sys.stderr)
    if limit is not None:
        print(f"irc: fuel: {count} attentions of torch's graph are fused", file=sys.stderr)
    return count


def is_judged(options: Options) -> bool:
    """Whether masks are judged under these options: it changes what is rounded."""
    return options.pattern_matcher and not options.emulate_rounding


class MaskRemarks:
    """Tells what became of the masks of calls, once for each line of the model, as far as the
    option `remarks` asks for it: a program is traced several times."""

    def __init__(self, options: Options) -> None:
        self._pattern = options.remarks
        self._told: set[str] = set()

    def attend_at(self, trace: str | None) -> Callable[..., Any]:
        """`attention_calls.attend` for a call with this traceback."""
        from irc.frontend.fx.attention_calls import attend

        if not self._pattern:
            return attend

        @functools.wraps(attend)
        def telling(*arguments: Any, **keywords: Any) -> Any:
            return attend(*arguments, **keywords, told=functools.partial(self._tell, trace))

        return telling

    def _tell(self, trace: str | None, message: str) -> None:
        from irc.frontend.importing.locations import location_in
        from irc.ir.passes.context import Remark, chosen_remarks

        name = "scaled_dot_product_attention"
        remark = Remark("fuse-attention", message, location_in(trace), name)
        for chosen in chosen_remarks([remark], self._pattern):
            if str(chosen) not in self._told:
                self._told.add(str(chosen))
                print(chosen, file=sys.stderr)


def judge_masks(module: fx.GraphModule, remarks: MaskRemarks) -> fx.GraphModule:
    """A graph of Dynamo's, and those that its nodes name, with `attention_calls.attend` in the
    places of calls that have a mask."""
    if not isinstance(module, fx.GraphModule):
        return module
    inner = {
        str(node.target): getattr(module, str(node.target), None)
        for node in module.graph.nodes if node.op == "get_attr"
    }  # fmt: skip
    graphs = {name: m for name, m in inner.items() if isinstance(m, fx.GraphModule)}
    judged = {name: judge_masks(graph, remarks) for name, graph in graphs.items()}
    changed = {name: graph for name, graph in judged.items() if graph is not graphs[name]}
    if not changed and not any(map(_has_mask, module.graph.nodes)):
        return module

    from irc.frontend.fx.storage_places import copied

    def edit(graph: fx.Graph) -> None:
        for node in graph.nodes:
            if _has_mask(node):
                node.target = remarks.attend_at(node.stack_trace)

    copy = copied(module, edit)
    for name, graph in changed.items():
        setattr(copy, name, graph)
    return copy


def _has_mask(node: fx.Node) -> bool:
    if node.op != "call_function" or node.target not in CALLS:
        return False
    return isinstance(node.args[3] if len(node.args) > 3 else node.kwargs.get("attn_mask"), fx.Node)


__all__ = ["CALLS", "MaskRemarks", "fuse_for", "is_judged", "judge_masks"]
