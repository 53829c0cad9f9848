"""A few of the random schedules; `python -m tests.fuzz.reductions --count 5000` runs many."""

from __future__ import annotations

import pytest

from irc.passes.kernel.cpu import jam
from tests.fuzz import reductions


@pytest.mark.parametrize("begin", range(0, 40, 10))
def test_random_schedules_of_reductions_are_right(begin):
    for seed in range(begin, begin + 10):
        program = reductions.random_reduction(seed)
        assert not reductions.difference(program), f"{seed}: {program.schedule}"


def test_a_wrong_tile_is_found(monkeypatch, capsys):
    right = jam.Jam._with
    monkeypatch.setattr(jam.Jam, "_with", lambda _, states, values: right(states, values[::-1]))
    assert reductions.main(["--count", "60"]) == 1
    assert "jam_axis" in capsys.readouterr().out
