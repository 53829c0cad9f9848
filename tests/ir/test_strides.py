"""Strides of known and symbolic sizes: when they leave no gaps."""

from __future__ import annotations

import itertools

import pytest

from irc.ir.strides import is_dense
from irc.ir.symbols import symbol


@pytest.mark.parametrize("strides", list(itertools.product((0, 1, 2, 3, 4, 8), repeat=3)))
def test_dense_is_one_element_at_each_place(strides: tuple[int, ...]) -> None:
    for shape in ((2, 3, 4), (2, 1, 4), (2, 4, 2), (1, 1, 1)):
        points = itertools.product(*map(range, shape))
        places = [sum(i * s for i, s in zip(point, strides, strict=True)) for point in points]
        assert is_dense(shape, strides) == (sorted(places) == list(range(len(places))))


def test_symbolic_sizes() -> None:
    n, m = symbol("s0"), symbol("s1")
    assert is_dense((n, m), (m, 1)) and is_dense((n, m), (1, n))
    assert not is_dense((n, m), (m + 1, 1)) and not is_dense((n, m), (n, 1))
