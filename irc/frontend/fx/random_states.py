"""Random numbers that are drawn again.

Where activations are computed again in the backward, what was random in the forward must come out
the same. torch's graphs say so by two operators around the one that draws:
`run_and_save_rng_state` also gives the state of the generator before it, and `run_with_rng_state`
draws from such a state and leaves the generator as it was. Both are the operator itself beside
`irc::rng_state` and `irc::set_rng_state`, and the operator is then like any other.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterator
from typing import Any

import torch
from torch import fx
from torch._guards import detect_fake_mode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes

from irc.dialects.aten import own as aten_own

OPERATORS = frozenset({"run_and_save_rng_state", "run_with_rng_state"})
_GET = torch.ops.irc.rng_state.default
_SET = torch.ops.irc.set_rng_state.default


def expand_random(node: fx.Node) -> fx.Node:
    """Put the operator that a call of `OPERATORS` draws with, and what it does to the generator,
    in the place of the call; gives the operator's node."""
    saves = node.target.name() == "run_and_save_rng_state"  # type: ignore[union-attr]
    target, *args = node.args if saves else node.args[1:]
    graph = node.graph
    with graph.inserting_before(node):
        drawn = _copy(node, target, tuple(args), dict(node.kwargs))
        device = _device_of(drawn)
    with graph.inserting_before(drawn):
        before = _copy(node, _GET, (device,))
        before.meta["val"] = _state(node, device)
        if not saves:
            _copy(node, _SET, (node.args[0], device))
    if saves:
        for user in list(node.users):
            assert user.target is operator.getitem, "a pair is taken apart"
            user.replace_all_uses_with((before, drawn)[user.args[1]])  # type: ignore[index]
            graph.erase_node(user)
    else:
        with graph.inserting_before(node):
            _copy(node, _SET, (before, device))
        node.replace_all_uses_with(drawn)
    graph.erase_node(node)
    return drawn


def _copy(node: fx.Node, target: Any, args: tuple[Any, ...], kwargs: Any = None) -> fx.Node:
    """A call at the model's line of `node`, with what it gives for fake arguments."""
    copied = node.graph.call_function(target, args, kwargs or {})
    copied.meta["stack_trace"] = node.stack_trace or _line_of(node)
    if target not in (_GET, _SET):
        mode = _mode_of(node)
        values = fx.map_arg((args, kwargs), lambda n: n.meta["val"])
        with mode, torch.no_grad():
            copied.meta["val"] = target(*values[0], **values[1])
    return copied


def _line_of(node: fx.Node) -> str | None:
    """The model's line of the nearest reader that has one: torch gives these calls none."""
    for user in node.users:
        line = user.stack_trace or _line_of(user)
        if line:
            return line
    return None


def _mode_of(node: fx.Node) -> Any:
    mode = detect_fake_mode([n.meta.get("val") for n in node.graph.nodes])
    assert mode is not None, "a graph of a compiler has fake tensors"
    return mode


def _device_of(node: fx.Node) -> torch.device:
    """Where a node's results are."""
    leaves = pytree.tree_leaves(node.meta["val"])
    return next(leaf.device for leaf in leaves if isinstance(leaf, torch.Tensor))


def _state(node: fx.Node, device: torch.device) -> torch.Tensor:
    """A fake tensor like the state of a generator."""
    with _disable_current_modes():
        size = aten_own.rng_state(device).shape
    with _mode_of(node):
        return torch.empty(size, dtype=torch.uint8)


@contextlib.contextmanager
def eager_generators() -> Iterator[None]:
    """Let torch write `OPERATORS` on a GPU, too, while it splits a graph: else it makes a second
    generator, whose numbers are not those of eager mode."""
    from torch._functorch import config

    if not hasattr(config, "graphsafe_rng_functionalization"):
        yield
        return
    with config.patch(graphsafe_rng_functionalization=False):
        yield


__all__ = ["OPERATORS", "eager_generators", "expand_random"]
