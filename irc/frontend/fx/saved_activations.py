"""Tensors that a forward program saves for its backward, and for nobody else.

The caller never sees them (`saved` in `result_info`), so `pad-strides` may move their rows apart,
and `propagate-channels-last` have the channels of images innermost.
The backward program must then be compiled for the strides that they have: AOTAutograd asks the
compiler of the forward graph for them and gives the backward's arguments those strides.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import torch
from torch import fx

from irc.frontend.fx.placeholders import replace_placeholder_values
from irc.frontend.fx.stride_order import dimension_order
from irc.frontend.importing.importer import Given, Imported, Output


@attrs.frozen
class JoinedParts:
    """Which tensors of a graph stand for several of its program's. `blocks`: where each is in the
    graph, in order, and for how many it stands; by position of an output, or by name of an
    argument, the block, the place in it and (of arguments) the bytes of all of it."""

    blocks: tuple[tuple[int, int], ...] = ()
    results: Mapping[int, tuple[int, int]] = attrs.field(factory=dict)
    arguments: Mapping[str, tuple[int, int, int]] = attrs.field(factory=dict)

    def shifted(self, positions: frozenset[int]) -> frozenset[int]:
        """Where outputs of the graph are in the program's, the joined ones left out."""
        apart = positions - {position for position, _ in self.blocks}
        return frozenset(
            p + sum(count - 1 for block, count in self.blocks if block < p) for p in apart
        )

    def held(self, imported: Imported) -> Imported:
        """What was imported, by the positions that the caller knows."""
        if not self.blocks:
            return imported
        if self.arguments:
            absent = tuple(self._before(p) for p in imported.absent)
            outputs: Sequence[Output] = [
                Given(self._before(o.position)) if isinstance(o, Given) else o
                for o in imported.outputs
            ]
            return attrs.evolve(imported, outputs=tuple(outputs), absent=absent)
        entries = imported.outputs
        rest = {p for first, count in self._ranges() for p in range(first + 1, first + count)}
        gone = sorted(o for p, o in enumerate(entries) if p in rest and isinstance(o, int))
        kept = [o for p, o in enumerate(entries) if p not in rest]
        after = [o - bisect_left(gone, o) if isinstance(o, int) else o for o in kept]
        return attrs.evolve(imported, outputs=tuple(after))

    def _ranges(self) -> Iterator[tuple[int, int]]:
        """Where the parts of each block begin in the program, and how many they are."""
        more = 0
        for position, count in self.blocks:
            yield position + more, count
            more += count - 1

    def _before(self, position: int) -> int:
        return position - sum(count - 1 for first, count in self._ranges() if first < position)


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
    order = dimension_order
    reordered = {n for n, tensor in changed.items() if order(tensor) != order(n.meta["val"])}
    replace_placeholder_values(module, changed, reordered)
