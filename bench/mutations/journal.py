"""What is known of mutants: a line of JSON each, appended as they are judged."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

from bench.mutations.operators import Mutant
from bench.mutations.rooms import ROOT, Room, population
from bench.mutations.traces import digest, test_digest

EQUIVALENT = ROOT / "bench" / "mutations_equivalent.json"


class Journal:
    """Verdicts of mutants. One counts as long as what it was made from is as it was: for a killed
    one the mutated file and the test that killed it, for a survivor all tests that judge it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: dict[str, dict[str, Any]] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                if line.endswith("}"):
                    entry = json.loads(line)
                    self.lines[entry["key"]] = entry

    def verdict(self, mutant: Mutant, tests: tuple[str, ...]) -> dict[str, Any] | None:
        """What is known of a mutant that `tests` judge."""
        entry = self.lines.get(mutant.key)
        if entry is None or entry["source"] != digest(ROOT / mutant.path):
            return None
        if entry["verdict"] == "survived":
            return entry if entry["tests"] == tests_digest(tests) else None
        killer = entry["killer"].split("::")[0]
        return entry if not killer or entry["killer_digest"] == test_digest(killer) else None

    def note(
        self, mutant: Mutant, verdict: str, killer: str, tests: tuple[str, ...], seconds: float
    ) -> dict[str, Any]:
        """Write down a verdict."""
        file = killer.split("::")[0]
        entry = {
            "key": mutant.key,
            "verdict": verdict,
            "where": f"{mutant.path}:{mutant.line}",
            "function": mutant.function,
            "operator": mutant.operator,
            "change": mutant.change,
            "killer": killer,
            "killer_digest": test_digest(file) if file else "",
            "source": digest(ROOT / mutant.path),
            "tests": tests_digest(tests),
            "seconds": round(seconds, 1),
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file_:
            file_.write(json.dumps(entry) + "\n")
        self.lines[mutant.key] = entry
        return entry


@functools.cache
def tests_digest(tests: tuple[str, ...]) -> str:
    """A hash of the content of files of tests."""
    return digest(*[ROOT / test for test in tests])


def equivalents() -> dict[str, dict[str, str]]:
    """Survivors that mean the same program, by key, with the reason."""
    entries = json.loads(EQUIVALENT.read_text(encoding="utf-8")) if EQUIVALENT.exists() else []
    return {entry["key"]: entry for entry in entries}


def stale_equivalents(rooms: tuple[Room, ...]) -> list[dict[str, str]]:
    """Entries of the list whose mutant no longer exists: the code changed."""
    keys = {mutant.key for room in rooms for mutant in population(room)}
    return [entry for key, entry in equivalents().items() if key not in keys]
