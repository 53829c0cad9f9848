"""Custom operators of the random programs: they write tensors, and lists of them."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch

_SCHEMAS = {
    "bump": "(Tensor(a!) x, int n) -> Tensor",
    "exchange": "(Tensor(a!) x, Tensor(b!) y) -> ()",
    "each": "(Tensor(a!)[] tensors, int n) -> ()",
    "total": "(Tensor x) -> Tensor",
}


def bump(x: torch.Tensor, n: int) -> torch.Tensor:
    """Add n to x in place; the elements as they were then, as a vector."""
    x.add_(n)
    return x.to(torch.float64).flatten().clone()


def exchange(x: torch.Tensor, y: torch.Tensor) -> None:
    """Add y's old sum to x and x's old sum to y."""
    first, second = x.sum().to(y.dtype), y.sum().to(x.dtype)
    x.copy_(x + second)
    y.copy_(y + first)


def each(tensors: Sequence[torch.Tensor], n: int) -> None:
    """Multiply tensors by n in place, one after the other."""
    for tensor in tensors:
        tensor.mul_(n)


def total(x: torch.Tensor) -> torch.Tensor:
    """The sum as a float64."""
    return x.to(torch.float64).sum()


@functools.cache
def register() -> torch.library.Library:
    """Define the operators (once): `torch.ops.irc_fuzz.bump` and so on."""
    library = torch.library.Library("irc_fuzz", "DEF")
    for name, schema in _SCHEMAS.items():
        library.define(name + schema, tags=[torch.Tag.pt2_compliant_tag])
        library.impl(name, globals()[name], "CPU")
    vector = lambda x, n: x.new_empty(x.numel(), dtype=torch.float64)  # noqa: E731
    torch.library.register_fake("irc_fuzz::bump", vector, lib=library)
    torch.library.register_fake("irc_fuzz::exchange", lambda x, y: None, lib=library)
    torch.library.register_fake("irc_fuzz::each", lambda tensors, n: None, lib=library)
    torch.library.register_fake(
        "irc_fuzz::total", lambda x: x.new_empty((), dtype=torch.float64), lib=library
    )
    return library
