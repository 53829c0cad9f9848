"""Sparse tensors that a graph makes, as gradients of embeddings.

Programs have strided tensors alone. What makes a sparse tensor, and what is computed of one, is
taken out of a graph and run by torch after the program, on what the program gives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from irc.frontend.importing.locations import location_of
from irc.ir.diagnostics import UserError

#: What is left: takes the program's outputs and gives the graph's.
Rest = Callable[[list[Any]], list[Any]]


def take_sparse(module: fx.GraphModule) -> Rest | None:
    """Take what makes sparse tensors out of a graph with fake metas, in place; None where nothing
    does. The graph then gives None for them, and more outputs, which the rest is computed of.

    Raises UserError where that would come too late: if it draws random numbers, or the graph
    writes its arguments.
    """
    outside: dict[fx.Node, None] = {}
    for node in module.graph.nodes:
        if node.op == "call_function" and (
            _is_sparse(node) or any(n in outside for n in node.all_input_nodes)
        ):
            outside[node] = None
    if not outside:
        return None
    _check(module, outside)
    (output,) = module.graph.find_nodes(op="output")
    returned = list(output.args[0])
    needed: dict[fx.Node, int] = {}
    for node in outside:
        for source in node.all_input_nodes:
            if source not in outside:
                needed.setdefault(source, len(returned) + len(needed))
    untouched = {k: entry for k, entry in enumerate(returned) if entry in outside}
    rest = _graph_of(list(outside), list(needed), list(untouched.values()))
    kept = [None if k in untouched else entry for k, entry in enumerate(returned)]
    output.args = ([*kept, *needed],)
    for node in reversed(outside):
        module.graph.erase_node(node)
    module.recompile()

    def run(results: list[Any]) -> list[Any]:
        outputs = list(results[: len(returned)])
        with torch.no_grad():
            results_of_rest = rest(*results[len(returned) :])
        for position, value in zip(untouched, results_of_rest, strict=True):
            outputs[position] = value
        return outputs

    return run


def with_rest(run: Callable[..., Any], rest: Rest) -> Callable[..., Any]:
    """The boxed function of a graph, from that of its program and `rest`."""

    def call(arguments: list[Any]) -> list[Any]:
        return rest(run(arguments))

    call._boxed_call = True  # type: ignore[attr-defined]
    return call


def _is_sparse(node: fx.Node) -> bool:
    leaves = pytree.tree_leaves(node.meta.get("val"))
    return any(isinstance(x, torch.Tensor) and x.layout is not torch.strided for x in leaves)


def _check(module: fx.GraphModule, outside: dict[fx.Node, None]) -> None:
    writes = any(
        getattr(getattr(n.target, "_schema", None), "is_mutable", False)
        for n in module.graph.nodes
    )
    for node in outside:
        if writes or torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
            where = "writes its arguments" if writes else "draws random numbers there"
            raise UserError(
                f"{node.target} makes a sparse tensor, in a graph that {where}: not supported",
                location_of(node),
            )


def _graph_of(
    nodes: list[fx.Node], needed: list[fx.Node], results: list[fx.Node]
) -> fx.GraphModule:
    graph = fx.Graph()
    copies = {node: graph.placeholder(node.name) for node in needed}
    for node in nodes:
        copies[node] = graph.node_copy(node, lambda n: copies[n])
    graph.output(tuple(copies[node] for node in results))
    return fx.GraphModule(torch.nn.Module(), graph)


__all__ = ["Rest", "take_sparse", "with_rest"]
