"""Rounds of samples: who wins, who drops out, what ends them."""

import math

import pytest

from irc.tuning.rounds import LEAST_ROUNDS, ROUNDS, STEADY_ROUNDS, hold


def rounds(times, deadline=math.inf, step=0.0):
    """Timings of choices with these samples, in turn; the counts of samples."""
    counts = [0] * len(times)
    now = [0.0]

    def sample(number):
        counts[number] += 1
        now[0] += step
        value = times[number]
        value = value[min(counts[number], len(value)) - 1] if isinstance(value, list) else value
        if isinstance(value, Exception):
            raise value
        return value

    return hold(range(len(times)), sample, deadline, clock=lambda: now[0]), counts


def test_the_fastest_wins_by_its_median():
    held, _ = rounds([3.0, [1.0, 9.0, 1.0], 2.0])
    assert held.winner == 1 and held.seconds[1] == 1.0


def test_the_first_is_kept_unless_another_is_clearly_faster():
    assert rounds([1.0, 0.99])[0].winner == 0
    assert rounds([1.0, 0.9])[0].winner == 1


def test_what_is_slow_drops_out():
    held, counts = rounds([1.0, 9.0, 5.0, 1.3, 1.05])
    assert counts == [STEADY_ROUNDS, 1, 2, LEAST_ROUNDS, STEADY_ROUNDS]
    assert held.rounds == STEADY_ROUNDS and held.seconds == (1.0, 9.0, 5.0, 1.3, 1.05)


def test_one_interrupted_sample_counts_for_nothing():
    held, _ = rounds([2.0, [7.0, 1.0], 3.0])
    assert held.winner == 1 and held.seconds[1] == 1.0


def test_the_first_stays_as_what_others_are_told_against():
    held, counts = rounds([[90.0, 9.0], 1.0, 1.01])
    assert counts == [ROUNDS] * 3 and held.seconds[0] == 9.0


def test_what_varies_more_is_repeated_more():
    """Of two that differ by 5 % the slower one drops out as soon as the samples are steady."""
    noisy = [1.2, 1.0, 0.8, 1.1, 0.9] * 3
    assert rounds([noisy, 1.05])[1] == [ROUNDS, ROUNDS]
    assert rounds([1.0, 1.05])[1] == [STEADY_ROUNDS, STEADY_ROUNDS]


def test_one_that_is_left_needs_few_rounds():
    assert rounds([1.0, 5.0])[1] == [LEAST_ROUNDS, 2]
    assert rounds([5.0, 1.0])[1] == [LEAST_ROUNDS, LEAST_ROUNDS]


@pytest.mark.parametrize("bad", [ValueError("no"), math.inf, math.nan])
def test_what_has_no_time_is_infinite_and_says_why(bad):
    held, _ = rounds([bad, 1.0, [1.0, bad]])
    assert held.winner == 1 and set(held.reasons) == {0, 2}
    assert math.isinf(held.seconds[0]) and math.isinf(held.seconds[2])


def test_without_any_time_there_is_no_winner():
    assert rounds([math.inf, ValueError("no")])[0].winner is None
    assert rounds([])[0].winner is None


def test_the_deadline_ends_the_rounds_but_not_before_one_sample():
    held, counts = rounds([1.0, 2.0, 3.0], deadline=0.0, step=1.0)
    assert counts == [1, 0, 0] and held.cut and held.winner == 0
    held, counts = rounds([1.0, 1.0], deadline=5.0, step=1.0)
    assert counts == [3, 2] and held.cut


def test_ctrl_c_goes_through():
    with pytest.raises(KeyboardInterrupt):
        hold([1], lambda choice: (_ for _ in ()).throw(KeyboardInterrupt()))
