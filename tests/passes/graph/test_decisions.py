"""What the passes of this folder decide about the programs of tests/corpus: see decisions.txt."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.corpus.decisions import NAMES, counted, hold, lowered, main_of, steps


@pytest.mark.parametrize("name", NAMES)
def test_decisions(name: str, request: pytest.FixtureRequest) -> None:
    module, context = lowered(name, "aten-to-graph")
    lines = [counted(context), *steps(main_of(module))]
    path = Path(__file__).with_name("decisions.txt")
    hold(path, name, lines, request.config.getoption("--update-checks"))
