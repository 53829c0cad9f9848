"""Matrix products that are multiplied by 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.fx.experimental.symbolic_shapes import guard_or_false, statically_known_true

from irc.dialects.aten.facts import LOOPS, skips_unused_factors

_ELEMENTS = {"float32": "f32", "float64": "f64"}


def added_to_nothing(
    product: Callable[[], Tensor], source: Tensor, left: Tensor, right: Tensor, beta: Any
) -> Tensor:
    """`baddbmm` where alpha is 0: `product` where ATen looks at the factors, else what is added
    alone; where that is a matter of sizes that a call knows, the one or the other."""
    points = left.size(1) * left.size(2) * right.size(2)
    skips = (
        [_skips(left, LOOPS)] if statically_known_true(points >= LOOPS)
        else [_skips(left, 0)] if statically_known_true(points < LOOPS)
        else sorted({_skips(left, 0), _skips(left, LOOPS)})
    )  # fmt: skip
    shape = (left.size(0), left.size(1), right.size(2))
    results = [_scaled(source, beta, shape) if skip else product() for skip in skips]
    if len(results) == 1:
        return results[0]
    few, many = results
    count = torch.full((), points, dtype=torch.int64, device=left.device)
    return torch.where(count < LOOPS, few, many)


def _skips(left: Tensor, points: int) -> bool:
    element = str(left.dtype).removeprefix("torch.")
    return skips_unused_factors(left.device.type, _ELEMENTS.get(element, element), points)


def _scaled(source: Tensor, beta: Any, shape: tuple[Any, ...]) -> Tensor:
    if guard_or_false(beta == 0):  # nobody looks at it
        return source.new_zeros(shape)
    scaled = source if guard_or_false(beta == 1) else source * beta
    return scaled.expand(shape).clone(memory_format=torch.contiguous_format)


__all__ = ["added_to_nothing"]
