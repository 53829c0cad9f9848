"""Holding the outcomes of a program before and after a pass against each other.

What must be equal follows from the pass's `preserves`:

* mode "real" (floats carried as f64): equal to 1e-10 of the largest element, whatever it says,
  or to the rounding of the narrowest float type where the pass `rounds_constants`;
* mode "exact", preserves "bits": every element equal, NaN with NaN;
* mode "exact", preserves "real": floats no farther from the real outcome than twice the program
  before, or than the rounding of the dtype; integers made from floats may differ, and are
  compared in mode "real" only.

Elements that are undefined before (they change with the poison) may be anything after.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import torch

from irc.ir.core import Operation
from irc.ir.types import FloatType
from irc.validation.running import Outcome

REAL_TOLERANCE = 1e-10
#: Allowed error relative to the RMS of the real outcome (REQUIREMENTS, "Accurate").
ROUNDING = {torch.float64: 1e-12, torch.float32: 1e-5}
ROUNDING_16_BIT = 1e-2


@attrs.frozen
class Difference:
    """One output that differs: which, what about it, and the worst element if it is an element.

    error: the largest absolute error; index, before, after: the element where it is.
    """

    output: str
    message: str
    error: float = float("nan")
    index: tuple[int, ...] | None = None
    before: Any = None
    after: Any = None
    count: int = 0
    total: int = 0

    def __str__(self) -> str:
        if self.index is None:
            return f"{self.output}: {self.message}"
        place = f"[{', '.join(map(str, self.index))}]"
        return (
            f"{self.output}: {self.message}: largest error {self.error:.6g} at {place} "
            f"({self.before!r} before, {self.after!r} after); "
            f"{self.count} of {self.total} elements differ"
        )


def compare(
    before: Sequence[Outcome],
    after: Sequence[Outcome],
    mode: str,
    preserves: str,
    real: Outcome | None = None,
    tolerance: float = REAL_TOLERANCE,
) -> Difference | None:
    """The first difference, None when there is none.

    before, after: an outcome per poison (the second one only where something was poisoned).
    real: the program before in mode "real", for mode "exact" of a pass that preserves "real".
    tolerance: of mode "real", relative to the largest element (or 1).
    """
    tolerance = tolerance if mode == "real" else 0.0
    loose = mode == "exact" and preserves == "real"
    if after[0].error is not None:
        error = after[0].error
        return Difference("the function", f"raises {type(error).__name__}: {error}")
    for place in ("results", "arguments"):
        parts = [getattr(o, place) for o in (*before, *after)]
        if len({len(p) for p in parts}) > 1:
            return Difference(place, f"{len(parts[0])} before, {len(parts[-1])} after")
        for number, contents in enumerate(zip(*parts, strict=True)):
            name = f"{place[:-1]} {number}"
            old, new = contents[: len(before)], contents[len(before) :]
            exact = None if real is None else getattr(real, place)[number]
            for version in new:
                difference = _compare_one(name, old, version, tolerance, loose, exact)
                if difference is not None:
                    return difference
    return None


def _compare_one(
    name: str, old: Sequence[Any], new: Any, tolerance: float, loose: bool, real: Any
) -> Difference | None:
    first = old[0]
    if not isinstance(first, torch.Tensor) or not isinstance(new, torch.Tensor):
        if isinstance(first, torch.Tensor) != isinstance(new, torch.Tensor):
            return Difference(name, f"{_kind(first)} before, {_kind(new)} after")
        return _compare_numbers(name, old, new, tolerance, loose)
    if first.shape != new.shape:
        return Difference(name, f"sizes {list(first.shape)} before, {list(new.shape)} after")
    if first.dtype != new.dtype:
        return Difference(name, f"{first.dtype} before, {new.dtype} after")
    defined = torch.ones(first.shape, dtype=torch.bool)
    for other in old[1:]:
        defined &= _same(first, other)
    if loose:
        if not first.dtype.is_floating_point or real is None:
            return None
        return _compare_accuracy(name, first, new, real, defined)
    wrong = defined & ~_close(first, new, tolerance)
    return _worst(name, "differs", first, new, wrong) if bool(wrong.any()) else None


def rounding_of(function: Operation) -> float:
    """The rounding of the narrowest float type that a function's types mention."""
    widths = [
        element.width
        for op in function.walk()
        for value in (*op.operands, *op.results)
        if isinstance(element := getattr(value.type, "element", value.type), FloatType)
    ]
    width = min(widths, default=64)
    if width < 32:
        return ROUNDING_16_BIT
    return ROUNDING[torch.float32 if width == 32 else torch.float64]


def _kind(content: Any) -> str:
    return "a tensor" if isinstance(content, torch.Tensor) else type(content).__name__


def _compare_numbers(
    name: str, old: Sequence[Any], new: Any, tolerance: float, loose: bool
) -> Difference | None:
    first = old[0]
    if loose or any(other != first for other in old[1:]):
        return None
    pair = [torch.as_tensor(x) for x in (first, new)]
    same = type(first) is type(new) and bool(_close(pair[0], pair[1], tolerance))
    return None if same else Difference(name, f"{first!r} before, {new!r} after")


def _same(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Where two tensors are equal, NaN with NaN."""
    equal = a == b
    if a.dtype.is_floating_point or a.dtype.is_complex:
        equal = equal | (torch.isnan(a) & torch.isnan(b))
    return equal


def _close(a: torch.Tensor, b: torch.Tensor, tolerance: float) -> torch.Tensor:
    equal = _same(a, b)
    if not tolerance or not (a.dtype.is_floating_point or a.dtype.is_complex) or not a.numel():
        return equal
    finite = a.abs()[torch.isfinite(a)]
    largest = float(finite.max()) if finite.numel() else 0.0
    gap = (a - b).abs()
    return equal | (gap <= tolerance * max(1.0, largest))


def _compare_accuracy(
    name: str, old: torch.Tensor, new: torch.Tensor, real: torch.Tensor, defined: torch.Tensor
) -> Difference | None:
    """Whether `new` is as near to the real outcome as `old` is, or within the dtype's rounding."""
    exact = real.double()
    usable = defined & torch.isfinite(exact) & torch.isfinite(old)
    lost = usable & ~torch.isfinite(new)
    if bool(lost.any()):
        return _worst(name, "is not finite any more", old, new, lost)
    if not bool(usable.any()):
        return None
    reference = exact[usable]
    scale = float(reference.square().mean().sqrt())
    was = float((old.double()[usable] - reference).square().mean().sqrt())
    now = float((new.double()[usable] - reference).square().mean().sqrt())
    if now <= max(2 * was, ROUNDING.get(old.dtype, ROUNDING_16_BIT) * scale, 1e-30):
        return None
    message = f"is farther from the real value (RMS error {now:.3g}, {was:.3g} before)"
    return _worst(name, message, exact.where(usable, new.double()), new, usable)


def _worst(
    name: str, message: str, old: torch.Tensor, new: torch.Tensor, wrong: torch.Tensor
) -> Difference:
    if old.dtype.is_complex:
        gap = (old - new).abs().double()
    else:
        gap = (old.double() - new.double()).abs()
    gap = torch.where(torch.isfinite(gap), gap, float("inf"))
    gap = torch.where(wrong, gap, -1.0)
    flat = int(gap.argmax())
    index = tuple(int(i) for i in torch.unravel_index(torch.tensor(flat), gap.shape))
    return Difference(
        name, message, float(gap.flatten()[flat]), index,
        old[index].item(), new[index].item(), int(wrong.sum()), old.numel(),
    )  # fmt: skip
