"""Statistics of 16-bit tensors stay f32 between a forward program and its backward.

Eager mode's normalizations and norms of 16-bit tensors on a CPU save means, scales and norms
rounded to 16 bits, and every gradient has that error. Here they are computed in f32, and nobody but
the backward sees what is saved.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection
from typing import Any

import torch
from torch import fx

from irc.frontend.fx.spelled import CASTS, NARROW

aten = torch.ops.aten
_VIEWS = (
    aten.alias.default, aten.detach.default, aten.expand.default, aten.squeeze.dim,
    aten.squeeze.dims, aten.unsqueeze.default, aten.view.default,
)  # fmt: skip
_REDUCTIONS = (
    aten.amax, aten.amin, aten.linalg_vector_norm, aten.logsumexp, aten.mean,
    aten.native_group_norm, aten.native_layer_norm, aten.sum, aten.var, aten.var_mean,
)  # fmt: skip
# Computed in f32 between roundings by the programs' kernels in any case.
_ARITHMETIC = (
    aten.add, aten.div, aten.exp, aten.log, aten.mul, aten.neg, aten.pow, aten.reciprocal,
    aten.rsqrt, aten.sqrt, aten.sub,
)  # fmt: skip
# How many operations lie between a statistic and its reduction: a scale is rsqrt(variance + eps).
_REACH = 6


def keep_statistics_wide(joint: fx.GraphModule) -> int:
    """Let what widens a rounded f32 statistic again, or computes with it in f32, read it
    unrounded; how many readers do.

    A statistic has at most half as many elements as what it is a reduction of, so that saving it
    in f32 costs little memory.
    """
    changed = 0
    for node in list(joint.graph.nodes):
        if _is_cast(node, NARROW):
            wide = node.args[0]
            if _dtype(wide) is torch.float32 and _is_statistic(wide):
                changed += _widen_readers(node, wide)
    if changed:
        joint.graph.eliminate_dead_code()
        joint.recompile()
    return changed


def _widen_readers(narrow: fx.Node, wide: fx.Node) -> int:
    changed = 0
    for user in list(narrow.users):
        if _is_cast(user, (torch.float32,)):
            user.replace_all_uses_with(wide)
            changed += 1
        elif user.target in _VIEWS:
            changed += _widen_readers(user, _same_view(user, wide))
        elif _computes_in_f32(user):
            user.replace_input_with(narrow, wide)
            changed += 1
        elif _is_narrow_arithmetic(user):
            user.replace_all_uses_with(_in_f32(user, narrow, wide))
            changed += 1
    return changed


def _in_f32(user: fx.Node, narrow: fx.Node, wide: fx.Node) -> fx.Node:
    """The result of arithmetic on 16-bit floats, computed in f32 from `wide` instead of `narrow`
    and then rounded."""
    graph, value = user.graph, user.meta["val"]
    arguments: list[Any] = []
    with graph.inserting_before(user), value.fake_mode:

        def emit(target: Any, *operands: Any) -> fx.Node:
            node = graph.call_function(target, operands)
            node.meta.update(user.meta)
            node.meta["val"] = target(*(_value(g) for g in operands))
            return node

        for argument in user.args:
            if argument is narrow:
                argument = wide
            elif _dtype(argument) in NARROW:
                argument = emit(CASTS[0], argument, torch.float32)
            arguments.append(argument)
        return emit(CASTS[0], emit(user.target, *arguments), value.dtype)


def _value(argument: Any) -> Any:
    """What an argument was while tracing, of a list's items too."""
    return fx.node.map_arg(argument, lambda node: node.meta["val"])


def _same_view(view: fx.Node, wide: fx.Node) -> fx.Node:
    """`view` of `wide`; it stays only if something reads it."""
    value = view.meta["val"]
    arguments = [_value(a) for a in view.args[1:]]
    with view.graph.inserting_before(view):
        moved = view.graph.call_function(view.target, (wide, *view.args[1:]), view.kwargs)  # type: ignore[arg-type]
    moved.meta.update(view.meta)
    with value.fake_mode:
        moved.meta["val"] = view.target(wide.meta["val"], *arguments, **view.kwargs)  # type: ignore[operator]
    return moved


def _is_cast(node: fx.Node, to: Collection[torch.dtype]) -> bool:
    """Whether a node does nothing but change the dtype of a tensor to one of `to`."""
    if node.op != "call_function" or node.target not in CASTS or _dtype(node) not in to:
        return False
    return set(node.kwargs) <= {"dtype"}


def _is_narrow_arithmetic(node: fx.Node) -> bool:
    target = node.target
    known = isinstance(target, torch._ops.OpOverload) and target.overloadpacket in _ARITHMETIC
    return known and not node.kwargs and _dtype(node) in NARROW


def _computes_in_f32(node: fx.Node) -> bool:
    target = node.target
    pointwise = isinstance(target, torch._ops.OpOverload) and torch.Tag.pointwise in target.tags
    return pointwise and target not in CASTS and _dtype(node) is torch.float32


def _dtype(node: Any) -> torch.dtype | None:
    value = node.meta.get("val") if isinstance(node, fx.Node) else None
    return value.dtype if isinstance(value, torch.Tensor) else None


def _is_statistic(wide: fx.Node, size: int | None = None, reach: int = _REACH) -> bool:
    """Whether a node is, pointwise, of a reduction to at most half as many elements."""
    size = _elements(wide) if size is None else size
    target = wide.target
    if size is None or reach == 0 or wide.op != "call_function":
        return False
    if isinstance(target, torch._ops.OpOverload):
        if target.overloadpacket in _REDUCTIONS:
            count = _elements(wide.all_input_nodes[0])
            return count is not None and count >= 2 * size
        if torch.Tag.pointwise not in target.tags and target not in (*_VIEWS, *CASTS):
            return False
    elif target is not operator.getitem:
        return False
    return any(_is_statistic(source, size, reach - 1) for source in wide.all_input_nodes)


def _elements(node: fx.Node) -> int | None:
    """The number of elements as seen while tracing; None for what is no tensor or depends on
    data."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        return None
    count = value.numel()
    if isinstance(count, int):
        return count
    return count.node.hint if count.node.has_hint() else None


def rounding_statistics(function: Callable[..., Any]) -> Callable[..., Any]:
    """A reduction or normalization of 16-bit tensors on a CPU as one of f32 tensors whose results
    are rounded, so that `keep_statistics_wide` finds its statistics; NotImplemented for others."""

    def rounded(source: torch.Tensor, *rest: Any, **keywords: Any) -> Any:
        tensors = [t for t in (source, *rest) if isinstance(t, torch.Tensor)]
        if source.device.type != "cpu" or any(t.dtype is not source.dtype for t in tensors):
            return NotImplemented
        if source.dtype not in NARROW or keywords.get("dtype") is not None:
            return NotImplemented
        wide = [t.float() if isinstance(t, torch.Tensor) else t for t in (source, *rest)]
        results = function(*wide, **keywords)
        if isinstance(results, torch.Tensor):
            return results.to(source.dtype)
        return tuple(result.to(source.dtype) for result in results)

    return rounded
