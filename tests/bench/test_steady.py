"""Samples are taken again where the machine was disturbed before or behind them."""

from __future__ import annotations

from collections.abc import Iterator

from bench.steady import WARM_UP, Steady


def steady(rates: list[float], attempts: int) -> Steady:
    left: Iterator[float] = iter([10.0] * WARM_UP + rates)
    return Steady(lambda: next(left), attempts)


def test_a_sample_between_two_good_rates_is_taken() -> None:
    seen = iter([1.0, 2.0, 3.0])
    each = steady([10, 10], 5)
    assert each.sample(lambda: next(seen)) == 1.0
    assert (each.taken, each.disturbed) == (1, 0)


def test_what_was_disturbed_is_taken_again() -> None:
    seen = iter([1.0, 2.0, 3.0])
    # Slow before the first attempt, behind the second one, and behind none of the third.
    each = steady([7, 10, 7.9, 8.1, 9], 9)
    assert each.sample(lambda: next(seen)) == 2.0
    assert each.disturbed == 0


def test_the_last_attempt_counts() -> None:
    each = steady([1, 1], 3)
    assert each.sample(lambda: 5.0) == 5.0
    assert (each.taken, each.disturbed) == (1, 1)


def test_a_better_rate_is_the_new_best() -> None:
    each = steady([20, 10, 20, 20], 3)
    assert each.sample(lambda: 4.0) == 4.0 and each.best == 20
