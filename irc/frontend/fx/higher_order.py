"""Higher-order operators become plain graphs.

torch's higher-order operators take graphs as arguments. One without control flow is only a way to
say something shorter: the same graph called many times, or an attention whose scores a graph
changes. Its call is traced again into ATen operators, on the values that it has where it stands,
and these take its place. What is left (control flow) keeps its graphs, in which the same is done.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import fx
from torch._C import DispatchKey
from torch._guards import detect_fake_mode
from torch._ops import HigherOrderOperator
from torch.fx import traceback as fx_traceback
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import rebind_unbacked
from torch.utils import _pytree as pytree

from irc.frontend.fx import random_states

_CAST = torch.ops.aten._to_copy.default
Table = Mapping[Any, Callable[..., Any]]

#: Operators whose own dense form, which eager mode runs, consists of ATen operators.
DENSE = frozenset(
    {
        "associative_scan",
        "flex_attention",
        "flex_attention_backward",
        "hints_wrapper",
        "invoke_quant",
        "invoke_quant_packed",
        "invoke_subgraph",
        "out_dtype",
        "strict_mode",
    }
)

#: Those that call a graph, and tell a compiler how its numbers were quantized.
QUANTIZED = frozenset({"invoke_quant", "invoke_quant_packed"})
#: Those with a block mask.
ATTENTION = frozenset({"flex_attention", "flex_attention_backward"})


def is_higher_order(node: fx.Node) -> bool:
    """Whether a node calls a higher-order operator."""
    return node.op == "call_function" and isinstance(node.target, HigherOrderOperator)


def expand_higher_order(module: fx.GraphModule, table: Table) -> None:
    """Replace the calls of `DENSE` in a graph with fake metas, and in the graphs of its other
    higher-order operators, in place. `table` has the decompositions for what they become."""
    _Expansion(table).expand(module)


class _Expansion:
    """Every graph is expanded once, however often it is called."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.done: set[int] = set()

    def expand(self, module: fx.GraphModule) -> None:
        if id(module) in self.done:
            return
        self.done.add(id(module))
        inlined: set[fx.Node] = set()
        for node in list(module.graph.nodes):
            if not is_higher_order(node):
                continue
            for graph in graphs_of(module, node):
                self.expand(graph)
            name = node.target.name()  # type: ignore[union-attr]
            if name in random_states.OPERATORS:
                node = random_states.expand_random(node)
                inlined.add(node)
            if name in DENSE or node.target in self.table:
                told = [n for n in node.all_input_nodes if n.op == "call_function"]
                inlined |= _inline(module, node, self.trace(module, node))
                for each in told:  # objects that the call alone was told
                    if "val" not in each.meta and not each.users:
                        module.graph.erase_node(each)
        if inlined:
            from irc.frontend.fx.whole_views import skip_whole_views  # few graphs have such calls

            skip_whole_views(node for node in module.graph.nodes if node in inlined)
            _refresh_views(module, inlined)
            _drop_unused_graphs(module)
            module.recompile()

    def trace(self, module: fx.GraphModule, node: fx.Node) -> fx.GraphModule:
        """What the call does as a graph of the nodes among its arguments, in their order."""
        run = _dense(node.target)  # type: ignore[arg-type]
        leaves, spec = pytree.tree_flatten((node.args, dict(node.kwargs)))
        places = _places(module, leaves)
        constant = [_constant(module, leaf) for leaf in leaves]

        def call(*values: Any) -> list[Any]:
            filled = list(constant)
            for place, value in zip(places, values, strict=True):
                filled[place] = value
            args, keywords = pytree.tree_unflatten(filled, spec)
            outcome = run(*args, **keywords)
            return list(outcome) if isinstance(outcome, list | tuple) else [outcome]

        mode = detect_fake_mode([n.meta.get("val") for n in module.graph.nodes])
        assert mode is not None, "a graph of a compiler has fake tensors"
        with mode, torch.no_grad(), fx_traceback.preserve_node_meta():
            fakes = _apart([leaves[place].meta["val"] for place in places])
            if node.target.name() == "invoke_subgraph":  # type: ignore[union-attr]
                return self.traced(call, fakes)
            differentiated = _with_gradients(node)
            marked = [
                fake.detach().requires_grad_() if leaves[place] in differentiated else fake
                for place, fake in zip(places, fakes, strict=True)
            ]
            plain = self.traced(call, marked) if differentiated else call
            return self.traced(torch.func.functionalize(plain, remove="mutations"), fakes)

    def traced(self, function: Callable[..., Any], fakes: list[Any]) -> fx.GraphModule:
        """The graph of a function of fake values."""
        return make_fx(function, decomposition_table=self.table)(*fakes)  # type: ignore[arg-type]


def _with_gradients(node: fx.Node) -> set[fx.Node]:
    """The captured tensors that an attention's backward gives gradients of: its dense form asks
    their flags, which fake tensors in a graph have not."""
    if node.target.name() != "flex_attention_backward":  # type: ignore[union-attr]
        return set()
    pairs = zip(node.args[12], node.meta["val"][3], strict=True)  # type: ignore[arg-type]
    return {tensor for tensor, gradient in pairs if isinstance(gradient, torch.Tensor)}


def _apart(fakes: list[Any]) -> list[Any]:
    """The fake values, none of which shares its storage with an earlier one: tracing knows a
    tensor by its identity, and torch may give the results of several calls the same one."""
    seen: set[int] = set()
    distinct = []
    for fake in fakes:
        if isinstance(fake, torch.Tensor):
            storage = fake.untyped_storage()._cdata
            if storage in seen:
                fake = torch.empty_strided(
                    fake.size(), fake.stride(), dtype=fake.dtype, device=fake.device
                )
            seen.add(storage)
        distinct.append(fake)
    return distinct


def _dense(target: Any) -> Callable[..., Any]:
    """The function by which eager mode runs an operator."""
    if not isinstance(target, HigherOrderOperator):
        return target
    if target.name() == "invoke_subgraph":
        return lambda graph, name, *operands: graph(*operands)
    if target.name() in QUANTIZED:
        return lambda graph, *operands, **scheme: graph(*operands)
    run = target.py_kernels[DispatchKey.CompositeExplicitAutograd]
    if target.name() not in ATTENTION:
        return run
    from irc.frontend.fx import block_masks  # few graphs have such calls

    return lambda *args, **keywords: run(
        *block_masks.with_blocks(target.name(), args), **keywords
    )


def graph_at(module: fx.GraphModule, leaf: Any) -> fx.GraphModule | None:
    """The graph that an argument of a higher-order operator names; None for anything else."""
    if not isinstance(leaf, fx.Node) or leaf.op != "get_attr":
        return None
    attribute: Any = module
    for part in str(leaf.target).split("."):
        attribute = getattr(attribute, part)
    return attribute if isinstance(attribute, fx.GraphModule) else None


def graphs_of(module: fx.GraphModule, node: fx.Node) -> list[fx.GraphModule]:
    """The graphs among the arguments of a call, in order."""
    leaves = pytree.tree_leaves((node.args, dict(node.kwargs)))
    return [g for leaf in leaves if (g := graph_at(module, leaf)) is not None]


def _places(module: fx.GraphModule, leaves: list[Any]) -> list[int]:
    """Which leaves of a call's arguments are values of the graph around it; not objects that it
    makes, as what a quantization is told."""
    return [
        place
        for place, leaf in enumerate(leaves)
        if isinstance(leaf, fx.Node) and graph_at(module, leaf) is None and "val" in leaf.meta
    ]


def _constant(module: fx.GraphModule, leaf: Any) -> Any:
    """An argument that is not traced; a graph as the function that runs it, node by node, so
    that what it becomes keeps the lines of the model."""
    graph = graph_at(module, leaf)
    if graph is None:
        return None if isinstance(leaf, fx.Node) else leaf

    def run(*values: Any) -> Any:
        results = fx.Interpreter(graph).run(*values)
        return list(results) if isinstance(results, list) else results

    return run


def _inline(module: fx.GraphModule, node: fx.Node, traced: fx.GraphModule) -> set[fx.Node]:
    """Put the nodes of `traced` in the place of `node`; gives those."""
    graph = module.graph
    leaves = pytree.tree_leaves((node.args, dict(node.kwargs)))
    arguments = iter([leaves[place] for place in _places(module, leaves)])
    copies: dict[fx.Node, fx.Node] = {}
    result: Any = ()
    with graph.inserting_before(node):
        for inner in traced.graph.nodes:
            if inner.op == "placeholder":
                copies[inner] = next(arguments)
            elif inner.op == "output":
                values = fx.map_arg(inner.args[0], lambda n: n.meta.get("val"))
                result = fx.map_arg(inner.args[0], lambda n: copies[n])
                _rebind(node, values)
            else:
                copy = copies[inner] = graph.node_copy(inner, lambda n: copies[n])
                copy.meta = dict(inner.meta)
                copy.meta["stack_trace"] = inner.stack_trace or node.stack_trace
                if inner.target is _CAST and not isinstance(inner.args[0], fx.Node):
                    _make_number_a_tensor(copy)
                if inner.op == "get_attr":
                    copy.target = _adopt(module, getattr(traced, str(inner.target)))
    single = not isinstance(node.meta.get("val"), list | tuple)
    _replace(node, result[0] if single else result)
    return {copies[n] for n in copies if n.op != "placeholder"}


def _make_number_a_tensor(node: fx.Node) -> None:
    """A cast of a number, as vmap makes it of one beside a tensor: the tensor of that number."""
    value = node.meta["val"]
    node.target = torch.ops.aten.scalar_tensor.default
    node.args = node.args[:1]
    node.kwargs = {"dtype": value.dtype, "device": value.device}


def _rebind(node: fx.Node, values: Any) -> None:
    """Sizes that depend on data have new symbols where `node` was traced again: they are the ones
    that the graph around it knows."""
    mode = detect_fake_mode(pytree.tree_leaves((node.meta.get("val"), values)))
    if mode is not None and mode.shape_env is not None and node.meta.get("unbacked_bindings"):
        single = not isinstance(node.meta["val"], list | tuple)
        rebind_unbacked(mode.shape_env, node, values[0] if single else values)


def _adopt(module: fx.GraphModule, content: Any) -> str:
    """Make something an attribute of `module`, under a new name."""
    number = 0
    while hasattr(module, f"_inlined_{number}"):
        number += 1
    setattr(module, f"_inlined_{number}", content)
    return f"_inlined_{number}"


def _replace(node: fx.Node, result: Any) -> None:
    """Use `result`, a value or a nested list of values, instead of `node`, and erase it."""
    if isinstance(result, list | tuple):
        for user in list(node.users):
            assert user.target is operator.getitem, "results are taken one by one"
            _replace(user, result[user.args[1]])  # type: ignore[index]
    elif isinstance(result, fx.Node):
        node.replace_all_uses_with(result)
    else:
        for user in list(node.users):
            user.args = fx.map_arg(user.args, lambda n: result if n is node else n)
    node.graph.erase_node(node)


def _refresh_views(module: fx.GraphModule, inlined: set[fx.Node]) -> None:
    """Make views of what was put in anew: who reads the graph knows them by whose storage they
    share, and torch may give all calls of one graph the same fake tensors."""
    for node in module.graph.nodes:
        if _is_view(node) and inlined.intersection(node.all_input_nodes):
            args, keywords = fx.map_arg((node.args, dict(node.kwargs)), lambda n: n.meta["val"])
            mode = detect_fake_mode([n.meta["val"] for n in node.all_input_nodes])
            assert mode is not None
            with mode, torch.no_grad():
                node.meta["val"] = node.target(*args, **keywords)
            inlined.add(node)


def _is_view(node: fx.Node) -> bool:
    """Whether a node's results share memory with its arguments, or are taken from such a node."""
    if node.target is operator.getitem:
        return True
    schema = getattr(node.target, "_schema", None)
    shared = [r.alias_info for r in schema.returns] if schema is not None else []
    return any(info is not None and not info.is_write for info in shared)


def _drop_unused_graphs(module: fx.GraphModule) -> None:
    """Erase the mentions of graphs that nothing calls any more."""
    for node in reversed(list(module.graph.nodes)):
        if node.op == "get_attr" and not node.users:
            module.graph.erase_node(node)


__all__ = ["DENSE", "expand_higher_order", "graph_at", "graphs_of", "is_higher_order"]
