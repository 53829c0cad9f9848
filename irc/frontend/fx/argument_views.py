"""Results that are views of arguments, with symbolic sizes.

Of such a result AOTAutograd keeps only sizes, strides and offset, and makes the view of the
argument again from these. In its graph the result is a view of what the argument was written with,
a new tensor, which begins at 0 wherever the argument does. Here it becomes one of the argument.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import Tensor, fx

from irc.frontend.direct_calls import is_subclass


def show_arguments(module: fx.GraphModule, metadata: Any) -> None:
    """Let results that `metadata`, AOTAutograd's account of the graph, says are views of arguments
    be views of them, in place, where sizes of arguments are symbolic."""
    from torch._functorch._aot_autograd.schemas import OutputType

    if metadata is None or metadata.tokens:
        return
    if any(map(is_subclass, (*metadata.subclass_inp_meta, *metadata.subclass_fw_graph_out_meta))):
        return
    graph = module.graph
    arguments = graph.find_nodes(op="placeholder")
    if not any(map(_is_symbolic, arguments)):
        return
    (output,) = graph.find_nodes(op="output")
    results: list[Any] = list(output.args[0])  # type: ignore[arg-type]
    changed, count = False, metadata.num_mutated_inp_runtime_indices
    for number, info in enumerate(metadata.output_info, count):
        if info.output_type is not OutputType.alias_of_input or number >= len(results):
            continue
        argument = arguments[info.base_idx]
        written = {u.args[1] for u in argument.users if _copies_to(u, argument)}
        view = _view_of(output, results[number], argument, written.union(results[:count]))
        changed = changed or view is not results[number]
        results[number] = view
    if changed:
        output.args = (type(output.args[0])(results), *output.args[1:])  # type: ignore[call-arg]
        graph.eliminate_dead_code(lambda node: node.op in ("placeholder", "output") or _acts(node))
        module.recompile()


def _is_symbolic(argument: fx.Node) -> bool:
    """Whether an argument is a symbol, or has sizes that are; others may be numbers by now."""
    value = argument.meta.get("val")
    parts = (*value.shape, *value.stride()) if isinstance(value, Tensor) else (value,)
    return any(isinstance(n, torch.SymInt) for n in parts)


def _acts(node: fx.Node) -> bool:
    schema = getattr(node.target, "_schema", None)
    return bool(node.is_impure()) or (schema is not None and schema.is_mutable)


def _copies_to(node: fx.Node, argument: fx.Node) -> bool:
    return node.target is torch.ops.aten.copy_.default and node.args[0] is argument


def _view_of(output: fx.Node, result: Any, argument: fx.Node, written: set[Any]) -> Any:
    """The views that lead to `result` from a new tensor, one of `written` if any, taken of
    `argument` instead."""
    chain: list[fx.Node] = []
    root = result
    while isinstance(root, fx.Node) and root not in written and _is_view(root):
        chain.append(root)
        root = root.args[0]
    value = result.meta.get("val") if isinstance(result, fx.Node) else None
    if not isinstance(value, Tensor) or root is argument or not isinstance(root, fx.Node):
        return result
    if not _fits(root.meta.get("val"), argument.meta.get("val")):
        return result
    shown = argument
    for step in reversed(chain):
        args = (shown, *step.args[1:])
        with output.graph.inserting_before(output):
            view = output.graph.call_function(step.target, args, dict(step.kwargs))  # type: ignore[arg-type]
        values, keywords = fx.map_arg((args, dict(step.kwargs)), lambda n: n.meta["val"])
        view.meta = {**step.meta, "val": step.target(*values, **keywords)}  # type: ignore[operator]
        shown = view
    return shown


def _fits(value: Any, argument: Any) -> bool:
    """Whether a tensor can stand for what an argument holds."""
    if not isinstance(value, Tensor) or not isinstance(argument, Tensor):
        return False
    return value.dtype == argument.dtype and value.shape == argument.shape


def _is_view(node: fx.Node) -> bool:
    """Whether a call gives a view of its first operand, or a list of such, or one of a list."""
    if node.target is operator.getitem:
        return isinstance(node.args[0], fx.Node) and _is_view(node.args[0])
    schema = getattr(node.target, "_schema", None)
    if schema is None or len(schema.returns) != 1 or not node.args:
        return False
    alias = schema.returns[0].alias_info
    return alias is not None and not alias.is_write and isinstance(node.args[0], fx.Node)
