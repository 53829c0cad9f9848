"""Block masks of `flex_attention`: which blocks of the scores are looked at.

A mask's function says of each score whether it stays; the lists of a block mask say for each block
of queries which blocks of keys have any that does, and which have no other. Eager mode calls the
function for all scores. What is not listed is not looked at by TorchInductor, nor here: so a mask
that is told by its lists alone (`BlockMask.from_kv_blocks`) is what it says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Mask = Callable[..., torch.Tensor]

#: The place of the block mask among the arguments, by the operator's name.
PLACES = {"flex_attention": 4, "flex_attention_backward": 9}


def with_blocks(name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of an attention, whose mask looks up the lists of its blocks."""
    place = PLACES[name]
    mask = args[place]
    *_, rows, columns, function = mask
    counts, lists, full_counts, full_lists = mask[2:6]
    if lists.shape[-1] == 1 and lists.shape[-2] == 1:
        return args  # all of it is one block
    some = listed(counts, lists)
    every = None if full_counts is None else listed(full_counts, full_lists)
    looked = _looked_up(function, some, every, rows, columns)
    return (*args[:place], (*mask[:-1], looked), *args[place + 1 :])


def listed(counts: torch.Tensor, lists: torch.Tensor) -> torch.Tensor:
    """Of each block of queries whether a block of keys is among the first so many of its list."""
    blocks = torch.arange(lists.shape[-1], device=lists.device, dtype=lists.dtype)
    counted = blocks < counts.unsqueeze(-1)
    return ((lists.unsqueeze(-1) == blocks) & counted.unsqueeze(-1)).any(-2)


def _looked_up(
    function: Mask, some: torch.Tensor, every: torch.Tensor | None, rows: int, columns: int
) -> Mask:
    """A mask's function that asks it of listed blocks alone."""

    def looked(b: Any, h: Any, q: Any, k: Any, *others: Any) -> torch.Tensor:
        def there(table: torch.Tensor) -> torch.Tensor:
            # torch makes an indexing by tensors a function with gradients here, which no bool has.
            pairs = zip(table.shape[:2], (b, h), strict=True)
            places = [zero if size == 1 else place for size, place in pairs]
            return torch.ops.aten.index(table, [*places, q // rows, k // columns])

        zero = torch.zeros_like(b)
        keeps = there(some) & function(b, h, q, k, *others)
        return keeps if every is None else there(every) | keeps

    return looked


__all__ = ["PLACES", "listed", "with_blocks"]
