"""The measure *accurate*: a result is about as near to a float64 run as eager mode's is.

Per tensor, the RMS error against float64 is at most twice eager's, or under 1e-5 (f32) or 1e-2
(16-bit floats) of the reference's RMS; NaN and infinities stand in the same places.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import torch

FLOOR = {torch.float64: 1e-10, torch.float32: 1e-5, torch.bfloat16: 1e-2, torch.float16: 1e-2}
# A gradient that is zero but for rounding (a key's bias in attention) has no scale of its own.
VANISHING = 1e-6


@dataclasses.dataclass(frozen=True)
class Error:
    """RMS errors of one tensor against float64, and the RMS of that reference."""

    mine: float
    eager: float
    scale: float

    def relative(self) -> float:
        """The error in units of the reference's RMS."""
        return self.mine / self.scale if self.scale else self.mine


def _rms(tensor: torch.Tensor) -> float:
    return float(tensor.double().pow(2).mean().sqrt()) if tensor.numel() else 0.0


def error(mine: torch.Tensor, eager: torch.Tensor, exact: torch.Tensor) -> Error | str:
    """The errors of `mine` and `eager` against `exact`, or what is wrong besides the values."""
    if mine.dtype != eager.dtype or mine.shape != eager.shape:
        return f"{mine.dtype} {tuple(mine.shape)}, eager {eager.dtype} {tuple(eager.shape)}"
    if not mine.is_floating_point():
        return Error(0.0, 0.0, 1.0) if torch.equal(mine, eager) else "values differ from eager's"
    mine, eager, exact = (t.detach().double() for t in (mine, eager, exact))
    for test in (torch.isnan, torch.isposinf, torch.isneginf):
        if not torch.equal(test(mine), test(eager)):
            return f"{test.__name__} in other places than eager's"
    finite = eager.isfinite() & exact.isfinite()
    mine, eager, exact = mine[finite], eager[finite], exact[finite]
    return Error(_rms(mine - exact), _rms(eager - exact), _rms(exact))


def inaccurate(
    mine: Sequence[torch.Tensor | None],
    eager: Sequence[torch.Tensor | None],
    exact: Sequence[torch.Tensor | None],
    names: Sequence[str] | None = None,
) -> list[str]:
    """What is not accurate, a line a tensor; empty if all is.  None stands for no gradient."""
    if not len(mine) == len(eager) == len(exact):
        return [f"{len(mine)} tensors, eager {len(eager)}"]
    largest = max((_rms(t) for t in exact if t is not None and t.is_floating_point()), default=0.0)
    lines = []
    for index, (a, b, c) in enumerate(zip(mine, eager, exact, strict=True)):
        name = names[index] if names else f"tensor {index}"
        if a is None or b is None or c is None:
            if not (a is None and b is None):
                lines.append(f"{name}: {'absent' if a is None else 'present'}, unlike eager's")
            continue
        found = error(a, b, c)
        if isinstance(found, str):
            lines.append(f"{name}: {found}")
            continue
        scale = largest if found.scale < VANISHING * largest else found.scale
        floor = FLOOR.get(b.dtype, 0.0) * scale
        if not (found.mine <= 2 * found.eager or found.mine <= floor):
            lines.append(
                f"{name}: RMS error {found.mine:.3g}, eager {found.eager:.3g}, "
                f"RMS of the reference {found.scale:.3g}"
            )
    return lines
