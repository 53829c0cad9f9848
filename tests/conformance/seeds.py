"""The marker `seed("PAD-07")`: which tests show which conformance rows, and how it went.

    @pytest.mark.seed("LAY-05", "LAY-06")
    def test_writes_through_a_view(): ...

Rows and their texts are in rows.json beside this file.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROWS = Path(__file__).with_name("rows.json")
OUTCOMES = "seed_outcomes.json"


@functools.cache
def table() -> list[dict[str, Any]]:
    """The groups of rows in order: `{"group", "title", "rows": [{"id", "gpu", "text"}]}`."""
    return json.loads(ROWS.read_text(encoding="utf-8"))


def rows() -> Iterator[dict[str, Any]]:
    """All rows in the table's order."""
    for group in table():
        yield from group["rows"]


@functools.cache
def row_ids() -> frozenset[str]:
    """The ids of all rows."""
    return frozenset(row["id"] for row in rows())


def rows_of(item: pytest.Item) -> list[str]:
    """The ids in the seed markers of a test, without repetition, in order."""
    named = (row for marker in item.iter_markers("seed") for row in marker.args)
    return list(dict.fromkeys(named))


@functools.cache
def has_gpu() -> bool:
    """Is an NVIDIA GPU at hand?  Asked of the driver: importing torch for it is slow."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") == "":
        return False
    try:
        listing = subprocess.run(["nvidia-smi", "-L"], capture_output=True, check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return listing.returncode == 0 and b"GPU" in listing.stdout


class Recorder:
    """A pytest plugin that writes what each test of a seed row came to.

    The file maps row id to test id to "passed", "failed" or "skipped".  Runs merge into it: a test
    that ran again replaces its earlier outcome, others stay.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / OUTCOMES
        self.seen: dict[tuple[str, str], str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a finished phase; a failure in any phase fails the test."""
        named = dict(report.user_properties).get("seed_rows")
        if not named or (report.outcome == "passed" and report.when != "call"):
            return
        for row in str(named).split(","):
            key = row, report.nodeid
            if self.seen.get(key) != "failed":
                self.seen[key] = report.outcome

    def pytest_sessionfinish(self) -> None:
        """Merge into the file, atomically."""
        if not self.seen:
            return
        outcomes = read_outcomes(self.path)
        for (row, test), outcome in self.seen.items():
            outcomes.setdefault(row, {})[test] = outcome
        self.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps(outcomes, indent=1, sort_keys=True), encoding="utf-8")
        temporary.replace(self.path)


def read_outcomes(path: Path) -> dict[str, dict[str, str]]:
    """The outcomes in a file; empty where it does not exist or is no JSON object."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
