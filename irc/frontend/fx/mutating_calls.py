"""Calls of custom operators that write their arguments, as AOTAutograd leaves them.

AOTAutograd wraps such a call into one of its functional operators, `auto_functionalized`: it
copies the storages and calls the operator on views of the copies. Here the wrapper is put back as
those copies, views and the call, which `functionalize` then understands.

Where a written view lies in its storage is counted from where the storage's value begins in the
trace, which `written_views` sees to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

WRAPPERS = ("auto_functionalized", "auto_functionalized_v2")


def is_wrapper(node: fx.Node) -> bool:
    """Whether a node is one of AOTAutograd's wrapped calls."""
    target = node.target
    return (
        node.op == "call_function"
        and isinstance(target, torch._ops.HigherOrderOperator)
        and target.name() in WRAPPERS
    )


def unwrap_mutating_calls(module: fx.GraphModule) -> bool:
    """Replace the wrapped calls of a graph, in place; whether there were any."""
    calls = [n for n in module.graph.nodes if is_wrapper(n)]
    for node in calls:
        _unwrap(module.graph, node)
    if calls:
        module.graph.eliminate_dead_code(lambda n: _is_impure(n))
        module.recompile()
    return bool(calls)


def _is_impure(node: fx.Node) -> bool:
    schema = getattr(node.target, "_schema", None)
    if node.op in ("placeholder", "output") or (schema is not None and schema.is_mutable):
        return True
    return bool(node.is_impure())


def _plain(name: str) -> Callable[..., Any]:
    """The function that does densely what the wrapper called `name` stands for."""
    from torch._higher_order_ops import auto_functionalize

    return getattr(auto_functionalize, f"{name}_dense")


def _begin_at_zero(graph: fx.Graph, node: fx.Node) -> None:
    """Copy the bases of a wrapped call: the wrapper copies the whole of their storages, of which
    a view has no more here than its elements, and where a new tensor begins in one is told
    otherwise by traces than by eager mode. Where the operator's arguments lie is counted anew."""
    bases: Any = node.kwargs.get("_all_bases")
    if not isinstance(bases, list | tuple):
        return
    moved = dict(node.kwargs)
    new = list(bases)
    for number, base in enumerate(bases):
        value = base.meta.get("val") if isinstance(base, fx.Node) else None
        if not isinstance(value, torch.Tensor) or not isinstance(value.storage_offset(), int):
            continue
        span = _span(value)
        if span is None or not (_is_new(base) or _holds_all(node, number, value, span)):
            continue
        with graph.inserting_before(node):
            new[number] = _copy(graph, base, value, span)
        for key, index in node.kwargs.items():
            place = key.removesuffix("_base_index") + "_storage_offset"
            if key.endswith("_base_index") and index == number and place in moved:
                moved[place] = moved[place] - value.storage_offset()  # type: ignore[operator]
    node.kwargs = {**moved, "_all_bases": new}


def _span(value: torch.Tensor) -> Any:
    """How many elements of memory a tensor reaches over, or None where that can't be said."""
    if _is_dense(value):
        return value.numel()
    places = (*value.shape, *value.stride())
    if not all(isinstance(p, int) for p in places) or _overlaps(value):
        return None
    return 1 + sum((n - 1) * s for n, s in zip(value.shape, value.stride(), strict=True))


def _copy(graph: fx.Graph, base: fx.Node, value: torch.Tensor, span: Any) -> fx.Node:
    """A copy of a base that begins its storage and has the base's strides."""

    def call(target: Any, *args: Any) -> fx.Node:
        values = [a.meta["val"] if isinstance(a, fx.Node) else a for a in args]
        copied = graph.call_function(target, args)
        with value.fake_mode, torch.no_grad():  # type: ignore[attr-defined]
            copied.meta = {**base.meta, "val": target(*values)}
        return copied

    if _is_dense(value):
        return call(torch.ops.aten.clone.default, base)
    memory = call(torch.ops.aten.new_zeros.default, base, [span])
    shape, strides = list(value.shape), list(value.stride())
    elements = call(torch.ops.aten.as_strided.default, memory, shape, strides, 0)
    call(torch.ops.aten.copy_.default, elements, base)
    return elements


def _overlaps(value: torch.Tensor) -> bool:
    """Whether two elements of a tensor may be one place of memory."""
    reach = 0
    axes = [(s, n) for n, s in zip(value.shape, value.stride(), strict=True) if n != 1]
    for stride, size in sorted(axes):
        if stride <= reach:
            return True
        reach += stride * (size - 1)
    return False


def _is_dense(value: torch.Tensor) -> bool:
    """Whether a tensor's elements fill the memory from its first to its last."""
    return bool(torch.ops.aten.is_non_overlapping_and_dense(value))


def _is_new(node: Any) -> bool:
    """Whether a value is no argument or view of one."""
    root = node
    while isinstance(root, fx.Node) and _is_view(root):
        root = root.args[0]
    return isinstance(root, fx.Node) and root.op == "call_function"


def _holds_all(node: fx.Node, number: int, base: torch.Tensor, span: Any) -> bool:
    """Whether what a wrapped call shows of its base `number` lies within the `span` elements of
    memory that it reaches over: not other places of its storage, nor places that are not known."""
    first = base.storage_offset()
    for key, index in node.kwargs.items():
        name = key.removesuffix("_base_index")
        if not key.endswith("_base_index") or index != number:
            continue
        begin = node.kwargs.get(f"{name}_storage_offset")
        if begin is None:
            continue
        sizes, strides = (node.kwargs[f"{name}_{k}"] for k in ("size", "stride"))
        places: list[Any] = [begin, *sizes, *strides]  # type: ignore[misc]
        if not all(isinstance(p, int) for p in places):
            return False
        steps = zip(sizes, strides, strict=True)  # type: ignore[arg-type]
        end = begin + 1 + sum((n - 1) * s for n, s in steps)  # type: ignore[operator]
        if not first <= begin <= end <= first + span:  # type: ignore[operator]
            return False
    return True


def _is_view(node: fx.Node) -> bool:
    schema = getattr(node.target, "_schema", None)
    return schema is not None and any(r.alias_info is not None for r in schema.returns)


def _unwrap(graph: fx.Graph, node: fx.Node) -> None:
    _begin_at_zero(graph, node)
    leaves, spec = pytree.tree_flatten((node.args, dict(node.kwargs)))
    places = [k for k, leaf in enumerate(leaves) if isinstance(leaf, fx.Node)]
    sources = [leaves[k] for k in places]
    run = _plain(node.target.name())  # type: ignore[union-attr]

    def dense(*values: Any) -> list[Any]:
        filled = list(leaves)
        for place, value in zip(places, values, strict=True):
            filled[place] = value
        args, keywords = pytree.tree_unflatten(filled, spec)
        return list(run(*args, **keywords))

    fakes = [s.meta["val"] for s in sources]
    mode = next(f.fake_mode for f in fakes if isinstance(f, FakeTensor))
    with mode, torch.no_grad():
        inner = make_fx(dense)(*fakes)
    copies: dict[fx.Node, Any] = {}
    sources_left = iter(sources)
    outputs: Any = ()
    with graph.inserting_before(node):
        for inner_node in inner.graph.nodes:
            if inner_node.op == "placeholder":
                copies[inner_node] = next(sources_left)
            elif inner_node.op == "output":
                outputs = fx.map_arg(inner_node.args[0], lambda n: copies[n])
            else:
                copies[inner_node] = graph.node_copy(inner_node, lambda n: copies[n])
                copies[inner_node].meta = {**inner_node.meta, "stack_trace": node.stack_trace}
    for user in list(node.users):  # the wrapper's results are taken one by one
        replacement = outputs[user.args[1]]
        if isinstance(replacement, fx.Node):
            # What is known of views of it is told by whose storage they share: the user's.
            replacement.meta["val"] = user.meta["val"]
            user.replace_all_uses_with(replacement)
        graph.erase_node(user)
    graph.erase_node(node)
