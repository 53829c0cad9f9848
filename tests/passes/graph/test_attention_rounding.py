"""Numbers as dtypes hold them, against torch."""

from __future__ import annotations

import math
import random

import pytest
import torch

from irc.passes.graph.attention.rounding import FLOATS, INTEGERS, held, held_between

SPECIAL = [0.0, -0.0, 1.0, 2049.0, 2051.0, 65504.0, 65519.9, 65520.0, 1e-8, 2.9802322387695312e-08,
           1e-45, 3.4028235677973366e38, 3.3961775292304957e38, 1e300, 5e-324, 257.0,
           16777217.0]  # fmt: skip


def numbers() -> list[float]:
    randoms = random.Random(0)
    drawn = [randoms.uniform(-1, 1) * 2.0 ** randoms.randint(-160, 130) for _ in range(2000)]
    halves = [(k + 0.5) * 2.0**e for k in (1024, 1025, 128, 129) for e in (-30, 0, 4)]
    return [*drawn, *halves, *SPECIAL, *(-n for n in SPECIAL)]


@pytest.mark.parametrize("dtype", FLOATS)
def test_floats_are_rounded_as_torchs(dtype: str) -> None:
    for number in numbers():
        expected = torch.tensor(number, dtype=torch.float64).to(getattr(torch, dtype)).item()
        assert held(number, dtype) == expected, number
        ends = held_between((number, number), dtype)
        if ends is None:
            assert abs(number) > FLOATS[dtype].largest
            continue
        twice = torch.tensor(number, dtype=torch.float32).to(getattr(torch, dtype)).item()
        assert ends[0] <= number <= ends[1] and ends[0] <= expected <= ends[1]
        assert dtype == "float64" or ends[0] <= twice <= ends[1]
        assert ends[0] == ends[1] or expected in ends
    assert held(math.inf, dtype) == math.inf and math.isnan(held(math.nan, dtype) or 0.0)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
def test_integers_are_cut_as_torchs(dtype: str) -> None:
    info = torch.iinfo(getattr(torch, dtype))
    assert INTEGERS[dtype] == (info.min, info.max)
    for number in (0, 1.9, -1.9, 100.5, info.max, info.min):
        result = held(number, dtype)
        if dtype != "uint8" or number > -1:
            exact = torch.tensor(number, dtype=None if isinstance(number, int) else torch.float64)
            assert result == exact.to(getattr(torch, dtype)).item()
    assert held(info.max + 1, dtype) is None and held(math.nan, dtype) is None
    assert held_between((info.min, info.max), dtype) == (info.min, info.max)
    assert held_between((info.min, info.max + 1), dtype) is None


def test_what_is_not_0_is_true() -> None:
    assert [held(n, "bool") for n in (0, -0.0, 0.5, math.nan)] == [0.0, 0.0, 1.0, 1.0]
    assert held_between((0.5, 2.0), "bool") == (1.0, 1.0) == held_between((-2.0, -0.5), "bool")
    assert held_between((-1.0, 1.0), "bool") == (0.0, 1.0) and held(1.0, "complex64") is None
