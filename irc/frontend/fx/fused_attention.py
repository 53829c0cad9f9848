"""Attention in torch's graphs is recognized and replaced, its backward included.

What takes its place is what torch traces of `scaled_dot_product_attention` for the same operands.
`irc.frontend.fx.attention` says when.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import torch
import torch.nn.functional as F
from torch import fx
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.utils._python_dispatch import _disable_current_modes

from irc.passes.graph.attention.dims import moves, start, through
from irc.passes.graph.attention.masks import MaskPlan, planned
from irc.passes.graph.attention.operators import Role
from irc.passes.graph.attention.program import NotAttention, OperatorCall
from irc.passes.graph.attention.recognize import (
    Attention,
    number_of,
    objection,
    operand,
    recognize,
    scaling,
)
from irc.passes.graph.attention.rewrite import four_dimensions

aten = torch.ops.aten
_ALIASES = (aten.alias.default, aten.detach.default)
#: How torch says that a node belongs to the backward.
_TAG, _FORWARD, _BACKWARD = "partitioner_tag", "is_forward", "is_backward"


class TracedGraph:
    """A graph of ATen's operators as a program; new nodes stand before `place`, and have its
    notes."""

    def __init__(self, module: fx.GraphModule, place: fx.Node) -> None:
        self.module = module
        self.place = place

    def call(self, value: fx.Node) -> OperatorCall | None:
        target = value.target
        if value.op != "call_function" or not isinstance(target, torch._ops.OpOverload):
            return None
        if target.namespace != "aten" or target._schema.is_mutable:
            return None
        declared = target._schema.arguments
        arguments = {a.name: a.default_value if a.has_default_value() else None for a in declared}
        arguments.update(zip((a.name for a in declared), value.args, strict=False))
        arguments.update(value.kwargs)
        words = {name: _word(argument) for name, argument in arguments.items()}
        return OperatorCall(str(target).removeprefix("aten."), words)

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, fx.Node) and isinstance(value.meta.get("val"), torch.Tensor)

    def shape(self, value: fx.Node) -> Sequence[Any]:
        return tuple(value.meta["val"].shape)

    def dtype(self, value: fx.Node) -> str:
        return str(value.meta["val"].dtype).removeprefix("torch.")

    def last_stride(self, value: fx.Node) -> Any:
        strides = value.meta["val"].stride()
        return strides[-1] if strides else 1

    def uses(self, value: fx.Node) -> int:
        return len(value.users)

    def estimate(self, size: Any) -> int:
        if isinstance(size, int):
            return size
        return int(size.node.hint) if size.node.has_hint() else 64

    def same(self, first: Any, second: Any) -> bool:
        if isinstance(first, int) and isinstance(second, int):
            return first == second
        return statically_known_true(first == second)

    def is_positive(self, size: Any) -> bool:
        return size > 0 if isinstance(size, int) else statically_known_true(size > 0)

    def constant(self, value: fx.Node) -> Any:
        if value.op != "get_attr":
            return None
        held = getattr(self.module, str(value.target), None)
        plain = type(held) in (torch.Tensor, torch.nn.Parameter)
        return held if plain and held is not None and held.numel() <= 1 << 16 else None

    def number(self, value: fx.Node) -> float | None:
        held = self.constant(value)
        if held is None or held.numel() != 1:
            return None
        with _disable_current_modes():
            return float(held)

    def emit(self, name: str, *arguments: Any, **keywords: Any) -> fx.Node:
        packet, _, overload = name.partition(".")
        named = {key: getattr(torch, v) if key in ("dtype", "memory_format") else v
                 for key, v in keywords.items()}  # fmt: skip
        if name == "full.default":
            named["device"] = self.place.meta["val"].device
        return self.node(getattr(getattr(aten, packet), overload), arguments, named)

    def node(self, target: Any, arguments: Any, keywords: Any = None) -> fx.Node:
        """A new node of a call, with what it gives for fake tensors."""
        keywords = keywords or {}
        with self.module.graph.inserting_before(self.place):
            node = self.module.graph.call_function(target, tuple(arguments), keywords)
        self.note(node)
        values, named = fx.node.map_arg((tuple(arguments), keywords), lambda n: n.meta["val"])
        with self.place.meta["val"].fake_mode:
            node.meta["val"] = target(*values, **named)
        return node

    def note(self, node: fx.Node) -> None:
        """Give a new node the notes of `place`: where it comes from, and whose it is."""
        kept = ("stack_trace", "nn_module_stack", "source_fn_stack", "seq_nr", _TAG)
        node.meta.update({k: v for k, v in self.place.meta.items() if k in kept})

    def merged(self, value: fx.Node) -> fx.Node:
        """A value with its first two dimensions as one."""
        shape = self.shape(value)
        sizes = [
            n if isinstance(n, int) else self.node(aten.sym_size.int, (value, d))
            for d, n in enumerate(shape)
        ]
        first, second, *rest = sizes
        if isinstance(first, int) and isinstance(second, int):
            together: Any = first * second
        else:
            together = self.node(operator.mul, (first, second))
        return self.emit("reshape.default", value, [together, *rest])


def _word(argument: Any) -> Any:
    if isinstance(argument, torch.dtype | torch.memory_format | torch.layout):
        return str(argument).removeprefix("torch.")
    return str(argument) if isinstance(argument, torch.device) else argument


# -- the backward of an attention


@attrs.frozen
class Backward:
    """The backward of an attention in the same graph: the gradient of the second product, and the
    nodes that are gradients of the products' factors (None: nobody wants it)."""

    gradient: fx.Node
    query: fx.Node | None
    key: fx.Node | None
    value: fx.Node | None
    begin: fx.Node


def backward_of(program: TracedGraph, attention: Attention) -> Backward:
    """The backward of an attention whose probabilities it reads. Raises NotAttention."""
    soft: fx.Node = attention.weights
    ends = [n for n in _aliases(soft) if n.target is aten._softmax_backward_data.default]
    if len(ends) != 1:
        raise NotAttention("its probabilities are read elsewhere, too")
    (end,) = ends
    product, values = attention.product, attention.product.args[1]
    grown, turned = _product_behind(program, end.args[0])
    gradient = grown.args[0]
    if not _is_transposed(turned, values) or not isinstance(gradient, fx.Node):
        raise NotAttention("its backward is not that of two products")
    by_value = None
    for user in attention.multiplied.users:
        if user is product or user is end or user.target in _ALIASES:
            continue  # what reads aliases is checked below
        readers = list(user.users)
        if not _is_transposed(user, attention.multiplied) or len(readers) != 1:
            raise NotAttention("its probabilities are read elsewhere, too")
        by_value = readers[0]
        if by_value.target is not aten.bmm.default or by_value.args != (user, gradient):
            raise NotAttention("its backward is not that of two products")
    _check_readers(attention, end)
    scores = _scores_gradient(program, attention, end)
    query, key = _factors(attention, scores)
    nodes = {node: number for number, node in enumerate(program.module.graph.nodes)}
    begin = min((n for n in (by_value, grown) if n is not None), key=nodes.__getitem__)
    return Backward(gradient, query, key, by_value, begin)


def _aliases(node: fx.Node) -> Iterator[fx.Node]:
    """The readers of a value and of its aliases."""
    for user in node.users:
        if user.target in _ALIASES:
            yield from _aliases(user)
        else:
            yield user


def _check_readers(attention: Attention, end: fx.Node) -> None:
    """Refuse probabilities that anything but both products and the softmax's backward reads."""
    inside: set[fx.Node] = set()
    node = attention.multiplied
    while node is not attention.weights:
        inside.add(node)
        node = node.args[0]
    for node in (attention.weights, *inside):
        for user in _aliases(node):
            known = user in inside or user is end or user in attention.multiplied.users
            if not known:
                raise NotAttention("its probabilities are read elsewhere, too")


def _product_behind(program: TracedGraph, value: Any) -> tuple[fx.Node, Any]:
    """The product behind views and casts of its result, and its second factor."""
    while isinstance(value, fx.Node):
        call = program.call(value)
        if call is not None and call.role is Role.PRODUCT:
            return value, value.args[1]
        if call is None or not (moves(call) or call.role is Role.CAST):
            break
        if len(value.users) != 1:
            break
        value = value.args[0]
    raise NotAttention("its backward is not that of two products")


def _is_transposed(node: Any, source: Any) -> bool:
    permuted = isinstance(node, fx.Node) and node.target is aten.permute.default
    return permuted and node.args[0] is source and list(node.args[1]) == [0, 2, 1]


def _scores_gradient(program: TracedGraph, attention: Attention, end: fx.Node) -> fx.Node:
    """The gradient of the first product, behind that of the softmax."""
    scale, node, groups = 1.0, end, start(program, end)
    top = groups
    conditions = [mask.tensor for mask in attention.masks if mask.number is not None]
    while True:
        readers = list(node.users)
        if readers and all(r.target is aten.bmm.default for r in readers):
            break
        if len(readers) != 1:
            raise NotAttention("the gradient of its scores is read elsewhere, too")
        (node,) = readers
        call = program.call(node)
        if call is None:
            raise NotAttention("the gradient of its scores is read elsewhere, too")
        scaled = scaling(program, call)
        if scaled is not None:
            scale *= scaled[1]
        elif call.role is Role.CHOOSE:
            condition, yes, no = call.choice
            if condition not in conditions or 0 not in (
                number_of(program, yes), number_of(program, no)
            ):  # fmt: skip
                raise NotAttention("the gradient of its scores is something else")
        elif moves(call):
            moved = through(program, groups, call, node)
            if moved is None:
                raise NotAttention("the gradient of its scores is taken apart")
            groups = moved
        elif call.role is not Role.CAST:
            raise NotAttention("the gradient of its scores is something else")
    first, last = top[:-2], top[-2:]
    if groups != (tuple(label for group in first for label in group), *last):
        raise NotAttention("the gradient of its scores is moved")
    if not math.isclose(scale, attention.score_scale, rel_tol=1e-6):
        raise NotAttention("the gradient of its scores has another scale")
    return node


def _factors(attention: Attention, scores: fx.Node) -> tuple[fx.Node | None, fx.Node | None]:
    """The gradients of the first product's factors."""
    query = key = None
    first, second = attention.first.args
    for reader in scores.users:
        left, right = reader.args
        if left is scores and _is_transposed(right, second) and query is None:
            query = reader
        elif right is scores and _is_transposed(left, first) and key is None:
            key = reader
        else:
            raise NotAttention("its backward is not that of two products")
    return query, key


# -- what takes their place


def traced_attention(
    operands: Sequence[Any], mask: Any, gradient: Any, causal: bool, scale: float, grouped: bool
) -> fx.GraphModule:
    """What torch traces of `scaled_dot_product_attention` for fake tensors: a graph of query, key,
    value, with `gradient` the gradient of the result, and the mask, if there is one. With a
    gradient it gives those of query, key and value, too. Raises NotAttention where eager mode has
    no fused kernel for it."""
    from irc.frontend.decompositions.table import decompositions

    def attend(q: Any, k: Any, v: Any, *masks: Any) -> Any:
        return F.scaled_dot_product_attention(
            q, k, v, attn_mask=masks[0] if masks else None, is_causal=causal, scale=scale,
            enable_gqa=grouped,
        )  # fmt: skip

    def both(q: Any, k: Any, v: Any, grad: Any, *masks: Any) -> Any:
        with torch.enable_grad():
            leaves = [x.detach().requires_grad_() for x in (q, k, v)]
            result = attend(*leaves, *masks)
            return result.detach(), *torch.autograd.grad(result, leaves, grad)

    masks = [] if mask is None else [mask]
    function = attend if gradient is None else both
    inputs = [*operands, *([] if gradient is None else [gradient]), *masks]
    with torch.no_grad():
        traced = make_fx(function, decomposition_table=decompositions())(*inputs)
    targets = [str(node.target) for node in traced.graph.nodes]
    if not any("attention" in target for target in targets):
        raise NotAttention("eager mode has no fused kernel for it")
    return traced


def fuse(
    module: fx.GraphModule, core_bytes: int | None, told: Any = None, limit: int | None = None
) -> int:
    """Make operators of the attentions in a graph; how many. core_bytes: of a CPU's second-level
    cache, where small ones stay as they are; None on a GPU. told: is given each node with what was
    done, or the reason why not. limit: how many may be made (None: all)."""
    count = 0
    for node in list(module.graph.find_nodes(op="call_function", target=aten.bmm.default)):
        if not _may_be_attention(node) or count == limit:
            continue
        try:
            remark = _fuse_at(module, node, core_bytes)
        except NotAttention as error:
            if error.told and told is not None:
                told(node, f"attention is left as it is written: {error.reason}")
            continue
        count += 1
        if told is not None:
            told(node, remark)
    if count:
        module.graph.eliminate_dead_code()
        module.recompile()
    return count


def _may_be_attention(node: fx.Node) -> bool:
    """Whether a product's first factor is, through single operands, a softmax."""
    value = node.args[0]
    for _ in range(8):
        if not isinstance(value, fx.Node) or not value.all_input_nodes:
            return False
        if value.target is aten._softmax.default:
            return True
        value = value.args[-1] if value.target is aten.where.self else value.args[0]
    return False


def _fuse_at(module: fx.GraphModule, product: fx.Node, core_bytes: int | None) -> str:
    """What a user is told of an attention that is fused now. Raises NotAttention."""
    program = TracedGraph(module, product)
    backward = None
    attention = recognize(program, product, forward_only=False)
    if len(list(_aliases(attention.weights))) == 1 and len(attention.multiplied.users) == 1:
        attention = recognize(program, product)
    else:
        backward = backward_of(program, attention)
    if core_bytes is None:
        reason = _objection_on_gpu(program, attention)
    else:
        reason = objection(program, attention, core_bytes)
    if reason:
        raise NotAttention(reason)
    if "recompute" in product.meta:
        raise NotAttention("it is computed again in the backward, as the program says")
    try:
        return _replace_or_undo(program, attention, backward)
    except NotAttention:
        if not attention.key.is_grouped:
            raise
        # Not every fused kernel has heads that share keys.
        program.place = product
        return _replace_or_undo(program, recognize(program, product, shares=False), backward)


def _objection_on_gpu(program: TracedGraph, attention: Attention) -> str:
    """Why attention is better left as it is written on a GPU; "" where it isn't: the fused kernel
    for f32 works on 32 queries at a time, whatever there is."""
    few = program.estimate(attention.sizes[2]) < 16
    if few and program.dtype(attention.query.base) == "float32":
        return "the fused kernel for f32 is slow for so few queries"
    return ""


def _replace_or_undo(program: TracedGraph, attention: Attention, backward: Backward | None) -> str:
    """`_replace`; where it raises NotAttention, what it added is gone."""
    graph = program.module.graph
    before = set(graph.nodes)
    try:
        return _replace(program, attention, backward)
    except NotAttention:
        for node in reversed(list(graph.nodes)):
            if node not in before:
                graph.erase_node(node)
        raise


def _replace(program: TracedGraph, attention: Attention, backward: Backward | None) -> str:
    product: fx.Node = attention.product
    factors = attention.query, attention.key, attention.value
    operands = [four_dimensions(program, factor) for factor in factors]
    dtype, lifts = _mask_dtype(program, attention), _is_on_gpu(attention.product)
    plan = planned(program, attention, dtype, gradients=backward is not None, lifts=lifts)
    # A row without a gradient adds nothing to those of the keys if its query is 0.
    operands[0] = _where(program, plan.kept, operands[0], 0.0)
    place, gradient = program.place, None
    if backward is not None:
        labels = _labels(program, operands[0], operands[1])
        program.place = backward.begin
        gradient = four_dimensions(
            program, operand(program, backward.gradient, labels, (0, 1), False, False)
        )
        if plan.otherwise == 0:  # what a row is that is 0 anyway changes nothing
            gradient = _where(program, plan.rows, gradient, 0.0)
    parts = [*operands, *([] if gradient is None else [gradient]),
             *([] if plan.mask is None else [plan.mask])]  # fmt: skip
    values = [part.meta["val"] for part in operands]
    traced = traced_attention(
        values, None if plan.mask is None else plan.mask.meta["val"],
        None if gradient is None else gradient.meta["val"], plan.causal, attention.scale,
        attention.key.is_grouped,
    )  # fmt: skip
    results = _inlined(program, traced, parts, place, gradient)
    program.place = place
    result = _where(program, plan.rows, results[0], plan.otherwise)
    product.replace_all_uses_with(program.merged(result))
    if backward is not None:
        program.place = backward.begin
        _replace_gradients(program, plan, backward, results[1:])
    return plan.remark


def _labels(program: TracedGraph, query: fx.Node, key: fx.Node) -> Any:
    """Dimensions of the product's result: batch, heads, queries and the values' width."""
    groups = start(program, query)
    return (groups[0], groups[1], groups[2], groups[3])


def _replace_gradients(
    program: TracedGraph, plan: MaskPlan, backward: Backward, operands: Sequence[fx.Node]
) -> None:
    """Put gradients into the places of those that were written. A row that is NaN makes those of
    all values NaN."""
    lost = plan.rows if math.isnan(plan.otherwise) else None
    query, key, value = operands
    if backward.query is not None:
        query = program.merged(_where(program, plan.kept, query, 0.0))
        backward.query.replace_all_uses_with(query)
    if backward.key is not None:
        key = program.merged(program.emit("permute.default", key, [0, 1, 3, 2]))
        backward.key.replace_all_uses_with(key)
    if backward.value is not None:
        every = None if lost is None else program.emit("all.dim", lost, 2, True)
        value = program.merged(_where(program, every, value, math.nan))
        backward.value.replace_all_uses_with(value)


def _where(
    program: TracedGraph, rows: fx.Node | None, value: fx.Node, otherwise: float
) -> fx.Node:
    """A value where `rows` says so, elsewhere a number."""
    if rows is None:
        return value
    number = program.emit("full.default", [], otherwise, dtype=program.dtype(value))
    return program.emit("where.self", rows, value, number)


def _is_on_gpu(node: fx.Node) -> bool:
    on_cpu: bool = node.meta["val"].device.type == "cpu"
    return not on_cpu


def _mask_dtype(program: TracedGraph, attention: Attention) -> str:
    """The dtype of the mask that the operator is given. Raises NotAttention."""
    dtype = program.dtype(attention.query.base)
    if attention.product.meta["val"].device.type == "cpu":
        return "float64" if dtype == "float64" else "float32"
    for mask in attention.masks:
        if mask.number is None and program.dtype(mask.tensor) not in (dtype, "bool"):
            raise NotAttention(f"a mask of {program.dtype(mask.tensor)} is added, not of {dtype}")
    return dtype


def _inlined(
    program: TracedGraph,
    traced: fx.GraphModule,
    parts: Sequence[fx.Node],
    forward: fx.Node,
    gradient: fx.Node | None,
) -> Sequence[fx.Node]:
    """The results of a traced graph whose nodes were copied: those that read `gradient` to where
    `program.place` is, others before `forward`."""
    copies: dict[fx.Node, Any] = {}
    late: set[fx.Node] = set()
    arguments = iter(parts)
    backward = program.place
    for node in traced.graph.nodes:
        if node.op == "placeholder":
            copies[node] = argument = next(arguments)
            if argument is gradient:
                late.add(node)
            continue
        if node.op == "output":
            results = node.args[0]
            listed = results if isinstance(results, list | tuple) else [results]
            return [copies[result] for result in listed]
        if node.op == "get_attr":
            raise NotAttention("what torch traces of it holds a constant")
        is_late = any(source in late for source in node.all_input_nodes)
        if is_late:
            late.add(node)
        program.place = backward if is_late else forward
        with program.module.graph.inserting_before(program.place):
            copies[node] = copied = program.module.graph.node_copy(node, copies.__getitem__)
        program.note(copied)
    raise AssertionError("a graph has an output")


__all__ = ["Backward", "TracedGraph", "backward_of", "fuse", "traced_attention"]
