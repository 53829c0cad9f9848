"""Which test executes which lines of the code, and how long it takes.

Each file of tests is run once on the code as it is, with Python's tracing on for the files that
are mutated. What is known is kept by the content of the file of tests and of the traced code, so
that only what changed is run again. A test that fails as it is judges nothing, and is told.
"""

from __future__ import annotations

import functools
import hashlib
import json
import sys
import threading
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import attrs

from bench.mutations.rooms import ROOT, helpers_of


@attrs.frozen
class Traced:
    """A test: its seconds, and the lines that it executes by file."""

    name: str
    seconds: float
    lines: dict[str, frozenset[int]]


@functools.cache
def digest(*files: Path) -> str:
    """A hash of the content of files, as they were when first asked for."""
    made = hashlib.sha256()
    for file in files:
        made.update(file.read_bytes() if file.exists() else b"")
    return made.hexdigest()[:16]


@functools.cache
def test_digest(test: str) -> str:
    """A hash of a file of tests and the helpers beside it."""
    return digest(ROOT / test, *helpers_of(test))


class Traces:
    """What is known of tests, by file of tests."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.known: dict[str, dict[str, Any]] = {}
        self.read: dict[tuple[str, str], list[Traced]] = {}

    def _path(self, test: str) -> Path:
        return self.folder / f"{test.replace('/', '.')}.json"

    def entry(self, test: str) -> dict[str, Any] | None:
        """The record of a file of tests, if that did not change since."""
        if test not in self.known:
            path = self._path(test)
            self.known[test] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        entry = self.known[test]
        return entry if entry.get("digest") == test_digest(test) else None

    def is_current(self, test: str, paths: Collection[str]) -> bool:
        """Whether a file of tests was traced with these files of code as they are."""
        entry = self.entry(test)
        return entry is not None and all(
            entry["sources"].get(path) == digest(ROOT / path) for path in paths
        )

    def note(self, test: str, paths: Collection[str], report: dict[str, Any]) -> None:
        """Keep what a child found."""
        entry = {
            "digest": test_digest(test),
            "sources": {path: digest(ROOT / path) for path in paths},
            **report,
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        self._path(test).write_text(json.dumps(entry), encoding="utf-8")
        self.known[test] = entry

    def tests_of(self, test: str) -> Iterator[tuple[str, float, dict[str, list[int]]]]:
        """Name, seconds and lines by file of the tests of a file that pass."""
        entry = self.known.get(test) or {}
        yield from entry.get("tests", ())

    def failing(self, test: str) -> list[str]:
        """The tests of a file that fail on the code as it is."""
        return list((self.known.get(test) or {}).get("failing", ()))


class Tracer:
    """A pytest plugin that traces each test and writes a report."""

    def __init__(self, report: Path, tree: Path, paths: Collection[str]) -> None:
        self.report = report
        self.names = {str(tree / path): path for path in paths}
        self.lines: dict[str, set[int]] = {}
        self.tests: list[tuple[str, float, dict[str, list[int]]]] = []
        self.failing: list[str] = []
        self.failed = False
        self.passed = False

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        name = frame.f_code.co_filename
        if name not in self.names:
            return None
        lines = self.lines.setdefault(name, set())
        lines.add(frame.f_lineno)

        def local(frame: FrameType, event: str, argument: Any) -> Any:
            lines.add(frame.f_lineno)
            return local

        return local

    def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> None:
        """Before a test: trace."""
        self.lines = {}
        self.failed = self.passed = False
        self.item, self.started = item, time.perf_counter()
        threading.settrace(self._trace)
        sys.settrace(self._trace)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """After each phase of a test."""
        self.failed |= report.failed
        self.passed |= report.when == "call" and report.passed

    def pytest_runtest_logfinish(self, nodeid: str, location: Any) -> None:
        """After a test: note what it executed."""
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]
        if self.failed:
            self.failing.append(nodeid)
        elif self.passed:
            lines = {self.names[name]: sorted(found) for name, found in self.lines.items()}
            self.tests.append((nodeid, round(time.perf_counter() - self.started, 3), lines))

    def pytest_sessionfinish(self, session: Any) -> None:
        """Write the report."""
        text = json.dumps({"tests": self.tests, "failing": self.failing})
        self.report.write_text(text, encoding="utf-8")
