"""A few of the random attentions; `python -m tests.fuzz.attention --count 200` runs many."""

from __future__ import annotations

import pytest

from tests.fuzz.attention import wrong


@pytest.mark.parametrize("seed", range(8))
def test_random_attention_is_that_of_eager_mode(seed: int) -> None:
    assert wrong(seed) == ""
