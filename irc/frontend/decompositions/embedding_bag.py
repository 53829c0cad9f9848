"""Sums of bags of 16-bit embeddings on a CPU, with results of the sizes that the kernel gives.

The kernel has a fast path for bfloat16 that leaves one result, `offset2bag`, empty, as it does for
f32 and f16; torch's shape function knows of it for these two only. The operator's backward kernels
make that result again from the offsets where it is empty.
"""

from __future__ import annotations

from typing import Any

import torch

aten = torch.ops.aten
_SUM = 0


def embedding_bag(
    weight: torch.Tensor,
    indices: torch.Tensor,
    offsets: torch.Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = _SUM,
    sparse: bool = False,
    per_sample_weights: torch.Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> Any:
    """(output, offset2bag, bag_size, max_indices) of `aten._embedding_bag` for what the fast path
    takes, as the kernel makes them; NotImplemented, so that the operator stays whole, for all
    else. The last result is not initialized there either."""
    scaled = per_sample_weights is not None
    if (
        weight.dtype != torch.bfloat16
        or weight.device.type != "cpu"
        or mode != _SUM
        or padding_idx >= 0
        or weight.stride(1) != 1
        or (scaled and per_sample_weights.stride(0) != 1)  # type: ignore[union-attr]
    ):
        return NotImplemented
    output = aten._embedding_bag_forward_only.default(
        weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
        include_last_offset, padding_idx,
    )[0]  # fmt: skip
    bags = offsets.size(0) - int(include_last_offset)
    return output, offsets.new_empty(0), offsets.new_zeros(bags), offsets.new_zeros(bags)
