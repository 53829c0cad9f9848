"""The loop programs of the tests of gpu kernels, by name: where they register."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent))
from programs import Case

from irc.ir import attributes as A

CASES: dict[str, Callable[[], Case]] = {}


TOLERANCE: dict[str, float] = {}


def case(name: str, tolerance: float = 2e-6) -> Callable[[Callable[[], Case]], Callable[[], Case]]:
    """Register a case; it is made once."""

    def register(make: Callable[[], Case]) -> Callable[[], Case]:
        CASES[name] = functools.cache(make)
        TOLERANCE[name] = tolerance
        return CASES[name]

    return register


def integer(value: int) -> A.IntegerAttr:
    return A.IntegerAttr(value)


def random(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).to(dtype)
