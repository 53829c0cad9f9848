"""Results of normalizations that a backward computes again instead of reading them.

The gradient of `native_layer_norm` and `native_group_norm` reads their source and two numbers of
each row, and so can what else needs the normalized values there, as the gradient of an activation
behind them does: it computes them again. For that, the operators' last steps are written out in a
joint graph; their statistics are the operators' own.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from irc.frontend.fx.spelled import CASTS, VIEWS, Emit, cast, sizes, spell, wide
from irc.frontend.fx.stride_order import dimension_order
from irc.frontend.fx.undone_copies import is_same

aten = torch.ops.aten
Steps = Callable[[fx.Node, fx.Node, list[fx.Node], Emit], fx.Node]
#: What reads its operands from memory in any case.
_IN_MEMORY = (
    aten.addmm, aten.bmm, aten.convolution, aten.convolution_backward, aten.mm,
)  # fmt: skip


def spell_norms(joint: fx.GraphModule) -> int:
    """Write out the results of normalizations that gradients compute with; how many."""
    spelled = 0
    late: set[fx.Node] | None = None
    for packet, steps in (
        (aten.native_layer_norm, _layer_norm), (aten.native_group_norm, _group_norm),
    ):  # fmt: skip
        for node in joint.graph.find_nodes(op="call_function", target=packet.default):
            if packet is aten.native_group_norm and not _has_known_channels(node):
                continue
            parts = {user.args[1]: user for user in node.users if user.target is operator.getitem}
            if 0 not in parts:
                continue
            if late is None:
                late = _gradients(joint)
            if node not in late and _is_computed_with(parts[0], late, node.args[0]):
                spelled += _spell(node, parts, steps)
    if spelled:
        joint.graph.eliminate_dead_code()
        joint.recompile()
    return spelled


def _has_known_channels(node: fx.Node) -> bool:
    source: Any = node.args[0]
    return isinstance(source.meta["val"].shape[1], int)


def _gradients(joint: fx.GraphModule) -> set[fx.Node]:
    """What is computed from the gradients of results."""
    late: set[fx.Node] = set()
    for node in joint.graph.nodes:
        tangent = node.op == "placeholder" and str(node.target).startswith("tangents")
        if tangent or any(source in late for source in node.all_input_nodes):
            late.add(node)
    return late


def _is_computed_with(node: fx.Node, late: set[fx.Node], source: fx.Node) -> bool:
    """Whether gradients need a value, or what is computed from its elements, other than in memory,
    and beside nothing whose elements lie in another order than the source's: of two orders each
    kernel reads one across, and what was saved lies as gradients do."""
    reached, pending, is_read = {node}, [node], False
    order = dimension_order(source.meta["val"])
    while pending:
        for user in pending.pop().users:
            packet = getattr(user.target, "overloadpacket", None)
            if user in late and packet is not None and packet not in _IN_MEMORY:
                is_read = True
                others = [n for n in user.all_input_nodes if _shape(n) == _shape(source)]
                if any(dimension_order(other.meta["val"]) != order for other in others):
                    return False
            if user not in late and user not in reached and _is_pointwise(user):
                reached.add(user)
                pending.append(user)
    return is_read


def _shape(node: fx.Node) -> Any:
    value = node.meta.get("val")
    return value.shape if isinstance(value, torch.Tensor) else None


def _is_pointwise(node: fx.Node) -> bool:
    target = node.target
    if not isinstance(target, torch._ops.OpOverload):
        return False
    return torch.Tag.pointwise in target.tags or target in (*VIEWS, *CASTS)


def _spell(node: fx.Node, parts: dict[Any, fx.Node], steps: Steps) -> bool:
    """Write out the result of a normalization, whose results are `parts`, where what is written
    lies in memory as the result does."""
    result = parts[0]
    value = result.meta["val"]

    def normalized(emit: Emit) -> fx.Node:
        statistics = [cast(_part(node, k), wide(value.dtype), emit) for k in (1, 2)]
        source = cast(node.args[0], wide(value.dtype), emit)
        return cast(steps(node, source, statistics, emit), value.dtype, emit)

    written = spell(result, result, normalized)
    same = written.meta["val"]
    if same.shape != value.shape or not all(map(is_same, same.stride(), value.stride())):
        return False
    result.replace_all_uses_with(written)
    return True


def _part(node: fx.Node, number: int) -> fx.Node:
    """One of a normalization's results."""
    with node.graph.inserting_after(node):
        part = node.graph.call_function(operator.getitem, (node, number))
    part.meta.update(node.meta)
    part.meta["val"] = node.meta["val"][number]
    return part


def _layer_norm(node: fx.Node, source: fx.Node, statistics: list[fx.Node], emit: Emit) -> fx.Node:
    _, _, weight, bias, _ = node.args
    return _scaled(_centered(source, statistics, emit), weight, bias, emit=emit)


def _group_norm(node: fx.Node, source: fx.Node, statistics: list[fx.Node], emit: Emit) -> fx.Node:
    """With the statistics of each channel's group."""
    _, weight, bias, *_ = node.args
    groups: Any = node.args[6]
    batch, channels, *rest = sizes(source, emit)
    width = node.args[0].meta["val"].shape[1] // groups  # type: ignore[union-attr]
    ones = [1] * len(rest)

    def of_channels(statistic: fx.Node) -> fx.Node:
        alone = emit(aten.view.default, statistic, [batch, groups, 1])
        repeated = emit(aten.expand.default, alone, [batch, groups, width])
        return emit(aten.view.default, emit(aten.clone.default, repeated), [batch, channels, *ones])

    result = _centered(source, [of_channels(s) for s in statistics], emit)
    scales = (
        w if w is None else emit(aten.view.default, w, [channels, *ones]) for w in (weight, bias)
    )
    return _scaled(result, *scales, emit=emit)


def _centered(source: fx.Node, statistics: list[fx.Node], emit: Emit) -> fx.Node:
    mean, scale = statistics
    return emit(aten.mul.Tensor, emit(aten.sub.Tensor, source, mean), scale)


def _scaled(result: fx.Node, weight: Any, bias: Any, *, emit: Emit) -> fx.Node:
    dtype = result.meta["val"].dtype
    if weight is not None:
        result = emit(aten.mul.Tensor, result, cast(weight, dtype, emit))
    return result if bias is None else emit(aten.add.Tensor, result, cast(bias, dtype, emit))


__all__ = ["spell_norms"]
