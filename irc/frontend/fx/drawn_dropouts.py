"""Dropouts of a GPU become computing: which elements they keep is a function of their places.

`aten.native_dropout` is a kernel of its own, with a result and a mask in memory. Its random numbers
are known (`irc.boundary.cuda_generator`), so that a program's own kernels draw the same ones where
what is dropped from is computed, or read: of a row of dropouts the generator is asked once.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from irc.boundary import cuda_generator
from irc.boundary.cuda_generator import Draws
from irc.dialects.aten import own  # noqa: F401  (its import makes irc's operators known)
from irc.ir.types import contiguous_strides

aten, prims = torch.ops.aten, torch.ops.prims
_DROPOUT = aten.native_dropout.default
_STATE, _BITS = torch.ops.irc.philox_state.default, torch.ops.irc.philox_bits.default
_ELEMENTS = frozenset({torch.float32, torch.bfloat16, torch.float16})
#: A uniform number of 32 random bits, in (0, 1]: cuRAND's.
_STEP, _HALF_STEP = 2.0**-32, 2.0**-33


def draw_dropouts(
    module: fx.GraphModule, draws: Callable[[], Draws | None] = cuda_generator.dropout_draws
) -> int:
    """Replace a graph's dropouts by what they compute, in place; how many were replaced.

    One stays that is in f64, has a size which isn't known, or drops from memory whose beginning
    isn't known: torch's kernel goes through it by its alignment."""
    nodes = [node for node in module.graph.nodes if _may_be_drawn(node)]
    known = draws() if nodes else None
    if known is None:
        return 0
    _Drawing(module, known).run(set(nodes))
    module.graph.lint()
    module.recompile()
    return len(nodes)


def is_drawn(node: fx.Node) -> bool:
    """Whether `draw_dropouts` replaces a node of a GPU's graph."""
    return _may_be_drawn(node) and cuda_generator.dropout_draws() is not None


def _may_be_drawn(node: fx.Node) -> bool:
    if node.op != "call_function" or node.target is not _DROPOUT:
        return False
    source, p, train = (*node.args, None)[:3]
    if train is False or not isinstance(p, float | int) or not 0 < p < 1:
        return False
    if not isinstance(source, fx.Node) or any(u.target is not operator.getitem for u in node.users):
        return False
    value = source.meta.get("val")
    if not isinstance(value, torch.Tensor) or value.device.type != "cuda":
        return False
    if value.dtype not in _ELEMENTS or not all(isinstance(n, int) for n in value.shape):
        return False
    return value.numel() > 0 and _begins_an_allocation(source) and _fills(value)


def _begins_an_allocation(source: fx.Node) -> bool:
    """Whether the elements are all that an operator has given, which begins aligned."""
    value = source.meta["val"]
    base = source
    while isinstance(base.target, torch._ops.OpOverload) and any(
        r.alias_info is not None for r in base.target._schema.returns
    ):
        if not isinstance(base.args[0], fx.Node):
            return False
        base = base.args[0]
    whole = base.meta.get("val")
    return (
        base.op == "call_function"
        and isinstance(whole, torch.Tensor)
        and isinstance(whole.storage_offset(), int)
        and whole.storage_offset() == value.storage_offset() == 0
        and whole.numel() == value.numel()
    )


def _fills(value: torch.Tensor) -> bool:
    """Whether the elements fill memory without gaps, each in a place of its own."""
    step = 1
    for stride, size in sorted(zip(value.stride(), value.shape, strict=True)):
        if size == 1:
            continue
        if stride != step:
            return False
        step *= size
    return True


class _Drawing:
    """Goes through a graph; the dropouts between two other operators that draw share a state."""

    def __init__(self, module: fx.GraphModule, draws: Draws) -> None:
        self.graph, self.draws = module.graph, draws
        self.state: fx.Node | None = None
        self.device: torch.device | None = None
        self.drawn = 0

    def run(self, dropouts: set[fx.Node]) -> None:
        for node in list(self.graph.nodes):
            if node in dropouts:
                self._replace(node)
            elif _may_draw(node):
                self.state = None

    def _replace(self, node: fx.Node) -> None:
        source, p = node.args[0], float(node.args[1])  # type: ignore[arg-type]
        value = source.meta["val"]  # type: ignore[union-attr]
        base = self._numbers(node, value)
        with self.graph.inserting_before(node):
            kept, result = self._computed(node, source, value, p, base)
        for user in list(node.users):
            user.replace_all_uses_with(result if user.args[1] == 0 else kept)
            self.graph.erase_node(user)
        self.graph.erase_node(node)

    def _numbers(self, node: fx.Node, value: torch.Tensor) -> int:
        """Move the state on for a dropout; where its numbers begin."""
        if self.state is None or self.device != value.device:
            with self.graph.inserting_before(node):
                self.state = self.graph.call_function(_STATE, (0, value.device))
            self.state.meta["val"] = value.new_empty((2,), dtype=torch.int64)
            self.state.meta["stack_trace"] = node.stack_trace
            self.device, self.drawn = value.device, 0
        base = self.drawn
        self.drawn += self.draws.increment(value.numel())
        self.state.args = (self.drawn, value.device)
        return base

    def _computed(
        self, node: fx.Node, source: Any, value: torch.Tensor, p: float, base: int
    ) -> tuple[fx.Node, fx.Node]:
        """What is kept, and the result, as torch's kernel computes them: in f32, rounded once."""
        turns = self.draws.turns(value.numel(), value.dtype.itemsize)
        keep = _as_f32(1.0 - p)

        def call(target: Any, *args: Any) -> fx.Node:
            called = self.graph.call_function(target, args)
            called.meta["stack_trace"] = node.stack_trace
            if target is _BITS:
                called.meta["val"] = torch.empty_like(value, dtype=torch.int64)
            else:
                called.meta["val"] = target(*fx.map_arg(args, lambda n: n.meta["val"]))
            return called

        size, strides = list(value.shape), list(value.stride())
        if turns.vector == 1:
            strides = [*contiguous_strides(size)]  # type: ignore[list-item]
        each = (turns.threads, turns.vector, turns.numbers)
        bits = call(_BITS, self.state, base, size, strides, *each)
        uniform = call(prims.convert_element_type.default, bits, torch.float32)
        uniform = call(aten.mul.Tensor, uniform, _STEP)
        uniform = call(aten.add.Tensor, uniform, _HALF_STEP)
        kept = call(aten.lt.Scalar, uniform, keep)
        wide = source
        if value.dtype is not torch.float32:
            wide = call(prims.convert_element_type.default, source, torch.float32)
        result = call(aten.mul.Tensor, wide, kept)
        result = call(aten.mul.Tensor, result, _as_f32(1.0 / keep))
        if value.dtype is not torch.float32:
            result = call(prims.convert_element_type.default, result, value.dtype)
        return kept, result


def _as_f32(number: float) -> float:
    return float(torch.tensor(number, dtype=torch.float64, device="cpu").to(torch.float32))


def _may_draw(node: fx.Node) -> bool:
    """Whether a call may draw random numbers, or set the generator."""
    if node.op != "call_function" or node.target is operator.getitem:
        return False
    if not isinstance(node.target, torch._ops.OpOverload):
        return isinstance(node.target, torch._ops.HigherOrderOperator)
    known = node.target.namespace in ("aten", "prims")
    return not known or torch.Tag.nondeterministic_seeded in node.target.tags


__all__ = ["draw_dropouts", "is_drawn"]
