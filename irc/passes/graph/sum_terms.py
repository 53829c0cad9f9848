"""Where the terms of sums are whose places are known: lines of places, windows and tables."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import torch

from irc.analysis.constant_values import cone
from irc.ir.core import Value


@attrs.frozen
class Terms:
    """The terms of the elements along one dimension, of `size` elements.

    axes: the values' axes among the places' that their number runs through. slots: as many are read
    for each element. window: the step of the first term from element to element, and the first
    element's; None where `table`, i64[size, slots], says which they are. mask: bool[size, slots],
    which are terms; None: all. weights: f64[size, slots], what they are multiplied by; None: 1.
    """

    size: int
    axes: tuple[int, ...]
    slots: int
    window: tuple[int, int] | None
    table: torch.Tensor
    mask: torch.Tensor | None
    weights: torch.Tensor | None = None

    @property
    def is_whole_window(self) -> bool:
        """Whether they lie in a window without gaps, or with gaps that count for 0."""
        return self.window is not None and (self.mask is None or self.weights is not None)


def contents(values: Sequence[Value]) -> list[torch.Tensor]:
    """The elements of values that only constants make, looked at by the interpreter."""
    from torch.utils._python_dispatch import _disable_current_modes

    from irc.program.folded import evaluate

    with _disable_current_modes():  # AOTAutograd compiles under fake tensors
        return evaluate(cone(values), values, None)


def axes_of(places: Sequence[Sequence[torch.Tensor]]) -> list[tuple[int, ...]] | None:
    """For each dimension that is indexed the axes along which places differ there in some of
    several sums, and to the first dimension those along which none does; None where two dimensions
    have one in common."""
    rank = places[0][0].dim()
    owners: dict[int, int] = {}
    for number, alike in enumerate(zip(*places, strict=True)):
        for axis in range(rank):
            if any(bool((place != place.narrow(axis, 0, 1)).any()) for place in alike):
                if axis in owners:
                    return None
                owners[axis] = number
    return [
        tuple(a for a in range(rank) if owners.get(a, 0) == number)
        for number in range(len(places[0]))
    ]


def line_of(place: torch.Tensor, axes: tuple[int, ...]) -> torch.Tensor:
    """The places along some axes, in order, as i64[n]."""
    for axis in range(place.dim()):
        if axis not in axes:
            place = place.narrow(axis, 0, 1)
    return place.reshape(-1)


def terms_of(line: torch.Tensor, size: int, axes: tuple[int, ...]) -> Terms:
    """The terms of each of `size` elements, where number r is one of element line[r]."""
    belongs = torch.zeros(size, line.numel(), dtype=torch.bool)
    belongs[line, torch.arange(line.numel())] = True
    return _laid_out(belongs, axes)


def weighted_terms(factors: torch.Tensor, axes: tuple[int, ...]) -> Terms:
    """The terms of each element, where number r is one of element h times factors[h, r]."""
    terms = _laid_out(factors != 0, axes)
    rows = torch.arange(terms.size)[:, None]
    weights = factors[rows, terms.table.clamp(0, factors.shape[1] - 1)]
    if terms.mask is not None:
        weights = weights.where(terms.mask, 0)
    return attrs.evolve(terms, weights=weights)


def _laid_out(belongs: torch.Tensor, axes: tuple[int, ...]) -> Terms:
    """A window where it is hardly wider than the most terms of an element, else a table."""
    size, count = belongs.shape
    most = max(int(belongs.sum(1).max()), 1)
    step = max(1, round(count / size))
    rows, numbers = belongs.nonzero(as_tuple=True)
    ahead = numbers - step * rows
    first = int(ahead.min())
    width = int(ahead.max()) - first + 1
    every = torch.arange(size)[:, None]
    if width <= most + 2:
        table = every * step + torch.arange(width) + first
        inside = (table >= 0) & (table < count)
        mask = belongs[every, table.clamp(0, count - 1)] & inside
        # Beyond the values are zeros.
        whole = bool((mask | ~inside).all())
        return Terms(size, axes, width, (step, first), table, None if whole else mask)
    order = belongs.to(torch.int8).sort(dim=1, descending=True, stable=True)
    mask, table = order.values[:, :most].bool(), order.indices[:, :most]
    return Terms(size, axes, most, None, table.where(mask, 0), None if bool(mask.all()) else mask)


__all__ = ["Terms", "axes_of", "contents", "line_of", "terms_of", "weighted_terms"]
