"""Arguments that AOTAutograd makes of a storage which several arguments of a program share.

Such a base is the whole storage as a vector. A graph is traced with one that ends at the last
element of its first argument and reads and writes nothing beyond; the one that comes may be longer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx


def base_lengths(module: fx.GraphModule) -> list[tuple[int, int]]:
    """Which arguments of a graph are such bases, and how long they are in it."""
    lengths = []
    for position, node in enumerate(module.graph.find_nodes(op="placeholder")):
        value = node.meta.get("val")
        is_base = type(node.meta.get("desc")).__name__ == "SyntheticBaseAOTInput"
        if is_base and isinstance(value, torch.Tensor) and isinstance(value.shape[0], int):
            lengths.append((position, value.shape[0]))
    return lengths


def cut_to_size(run: Callable[..., Any], lengths: Sequence[tuple[int, int]]) -> Callable[..., Any]:
    """`run`, a boxed function of a graph's arguments, with bases as long as in the graph
    (`base_lengths`)."""
    if not lengths:
        return run

    def call(arguments: list[Any]) -> Any:
        for position, length in lengths:
            if arguments[position].numel() > length:
                arguments[position] = arguments[position][:length]
        return run(arguments)

    call._boxed_call = True  # type: ignore[attr-defined]
    return call
