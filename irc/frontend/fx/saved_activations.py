"""Tensors that a forward program saves for its backward, and for nobody else.

The caller never sees them (`saved` in `result_info`), so `pad-strides` may move their rows apart,
and `propagate-channels-last` have the channels of images innermost.
The backward program must then be compiled for the strides that they have: AOTAutograd asks the
compiler of the forward graph for them and gives the backward's arguments those strides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import torch
from torch import fx

from irc.frontend.fx.placeholders import replace_placeholder_values
from irc.frontend.importing.importer import Given, Imported, Output


@attrs.frozen
class JoinedParts:
    """What stands for one tensor of a graph in the program's: `count` from `position` on; places by
    position of an output, or (with the bytes of all) by name of an argument."""

    position: int = 0
    count: int = 1
    results: Mapping[int, int] = attrs.field(factory=dict)
    arguments: Mapping[str, tuple[int, int]] = attrs.field(factory=dict)

    def shifted(self, positions: frozenset[int]) -> frozenset[int]:
        """Where outputs of the graph are in the program's, the joined one left out."""
        more = self.count - 1
        return frozenset(
            p + more * (p > self.position) for p in positions if p != self.position or not more
        )

    def held(self, imported: Imported) -> Imported:
        """What was imported, by the positions that the caller knows."""
        if self.count == 1:
            return imported
        if self.arguments:
            absent = tuple(self._before(p) for p in imported.absent)
            outputs: Sequence[Output] = [
                Given(self._before(o.position)) if isinstance(o, Given) else o
                for o in imported.outputs
            ]
            return attrs.evolve(imported, outputs=tuple(outputs), absent=absent)
        first, more = imported.outputs[self.position], self.count - 1
        assert isinstance(first, int)
        rest = imported.outputs[self.position + self.count :]
        outputs = [*imported.outputs[: self.position + 1], *rest]
        after = [o - more if isinstance(o, int) and o > first else o for o in outputs]
        return attrs.evolve(imported, outputs=tuple(after))

    def _before(self, position: int) -> int:
        return position - (self.count - 1) * (position > self.position)


def saved_outputs(module: fx.GraphModule) -> frozenset[int]:
    """The outputs of a forward graph that are tensors saved for the backward: none if
    AOTAutograd does not say which, or does not ask for their strides."""
    from torch._guards import TracingContext

    context = TracingContext.try_get()
    metadata = None if context is None else context.fw_metadata
    if metadata is None or context.output_strides is None:  # type: ignore[union-attr]
        return frozenset()
    if metadata.num_symints_saved_for_bw is None:
        return frozenset()
    (output,) = [node for node in module.graph.nodes if node.op == "output"]
    returned: Any = output.args[0]
    if not isinstance(returned, list | tuple):
        return frozenset()
    return frozenset(range(len(returned))[metadata.tensors_saved_for_backwards_slice])


def report_strides(
    returned: Sequence[Any], strides: Sequence[Any], saved: frozenset[int]
) -> None:
    """Tell AOTAutograd the strides of the saved outputs that differ from eager's. `returned`: a
    forward graph's outputs; `strides`: those of the program's results for each, None for what is no
    tensor."""
    from torch._guards import TracingContext

    context = TracingContext.try_get()
    told: list[tuple[int, ...] | None] = []
    for number, entry in enumerate(returned):
        value = entry.meta.get("val") if isinstance(entry, fx.Node) else None
        kept = strides[number] if number in saved else None
        static = kept is not None and all(isinstance(d, int) for d in kept)
        other = static and isinstance(value, torch.Tensor) and tuple(value.stride()) != kept
        told.append(kept if other else None)
    if context is not None and context.output_strides == [] and any(told):
        context.output_strides.extend(told)


def take_strides(module: fx.GraphModule, inputs: Sequence[Any]) -> None:
    """Give the placeholders of a backward graph the strides of `inputs`, where these have others
    than the graph was traced with. In place. What lies in another order is read as it was traced:
    an operator that cares gets a copy in eager's order, all others read it as it lies."""
    changed: dict[fx.Node, torch.Tensor] = {}
    for node, tensor in zip(module.graph.find_nodes(op="placeholder"), inputs, strict=False):
        traced = node.meta.get("val")
        if not isinstance(tensor, torch.Tensor) or not isinstance(traced, torch.Tensor):
            continue
        static = all(isinstance(d, int) for d in (*tensor.stride(), *traced.stride()))
        if static and tensor.stride() != traced.stride():
            changed[node] = tensor
    reordered = {n for n, tensor in changed.items() if _order(tensor) != _order(n.meta["val"])}
    replace_placeholder_values(module, changed, reordered)


def _order(value: torch.Tensor) -> list[int]:
    """The dimensions of more than one element, by decreasing stride."""
    steps = value.stride()
    return sorted((d for d, n in enumerate(value.shape) if n != 1), key=lambda d: (-steps[d], d))
