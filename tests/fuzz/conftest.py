"""After `make fuzz`: how much of each property test is done, and how fast one worker is."""

from __future__ import annotations

from typing import Any

from tests.fuzz.harness import LONG, OUT, SEED, rates


def pytest_sessionstart(session: Any) -> None:
    """Load what tests/conftest.py changes, before the first batch and not behind it."""
    if LONG:
        import torch._dynamo.guards  # noqa: F401


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """A line per property test, from the journals of this seed."""
    if not LONG:
        return
    terminalreporter.section(f"property tests of seed {SEED}")
    for name, cases, seconds in rates(OUT, SEED):
        rate = cases / seconds if seconds else 0.0
        terminalreporter.line(f"{name:10} {cases:7} cases, {rate:6.1f} a second of a worker")
