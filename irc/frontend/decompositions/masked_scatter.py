"""Writes of values one after the other to where a mask holds, in operators that compile.

The k-th place where the mask holds, in row-major order, gets the k-th value: counting the places
tells each which value is its own.
"""

from __future__ import annotations

from typing import Any

import torch

aten = torch.ops.aten
Tensor = torch.Tensor


def masked_scatter(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """`aten.masked_scatter`: a RuntimeError if the mask holds at more places than `source` has
    elements, as in eager mode."""
    self, mask = torch.broadcast_tensors(self, mask)
    aten._assert_async.msg(
        mask.sum() <= source.numel(), "Number of elements of source < number of ones in mask"
    )
    return _put(self, mask, source)


def index_put(
    self: Tensor, indices: list[Tensor | None], values: Tensor, accumulate: bool = False
) -> Tensor:
    """`aten.index_put` where a mask of all dimensions is the only index and every place has a
    value of its own; any other is left as it is."""
    mask = indices[0] if len(indices) == 1 else None
    if mask is None or mask.dtype is not torch.bool or mask.dim() != self.dim():
        return NotImplemented
    if accumulate or values.dim() != 1 or _is_one(values.shape[0]):
        return NotImplemented
    aten._assert_async.msg(
        mask.sum() == values.numel(), "as many values as places where the mask holds are wanted"
    )
    return _put(self, mask, values.to(self.dtype))


def _is_one(size: Any) -> bool:
    """Whether a size is known to be 1, or may be: one value is for all places."""
    from torch.fx.experimental.symbolic_shapes import guard_or_true

    return guard_or_true(size == 1)


def _put(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    if mask.dim() == 0:
        self, mask = self[None], mask[None]
        return _put(self, mask, source)[0]
    values = source.reshape(-1)
    if not isinstance(values.shape[0], int) or values.shape[0] == 0:
        # There is something to read, also where the mask holds nowhere.
        values = torch.nn.functional.pad(values, (0, 1))
    number = mask.reshape(-1).cumsum(0).clamp(1, values.shape[0]) - 1
    chosen = values[number].reshape(mask.shape)
    return torch.where(mask, chosen, self).contiguous()


def masked_scatter_backward(grad: Tensor, mask: Tensor, sizes: list[Any]) -> Tensor:
    """`aten.masked_scatter_backward`: the gradient of the values, of these sizes."""
    count = 1
    for size in sizes:
        count = count * size
    grad, mask = torch.broadcast_tensors(grad, mask)
    number = mask.reshape(-1).cumsum(0).clamp(min=1) - 1
    taken = torch.where(mask, grad, 0).reshape(-1)
    # Places past the last value, where the mask does not hold, add nothing to one more.
    gradient = grad.new_zeros(count + 1)
    return gradient.index_put([number.clamp(max=count)], taken, accumulate=True)[:count].view(sizes)
