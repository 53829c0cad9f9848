"""Which code is mutated, and which tests must notice.

A mutant of `irc/passes/loop/inline_computes.py` is judged by the fast tests of `tests/passes/loop`:
tests mirror the code. `ELSEWHERE` lists the few files whose tests stand in another folder, too.
"""

from __future__ import annotations

import ast
import functools
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import attrs

from bench.mutations.operators import Function, Mutant, mutants

ROOT = Path(__file__).resolve().parents[2]
#: Of one function, at most this many mutants are selected.
MOST_OF_A_FUNCTION = 3


def always(function: Function) -> bool:
    """Every function of the file counts."""
    return True


DECISIONS = ("is_", "has_", "can_", "may_", "why", "reason", "allows", "fits", "needs", "matches")


def decides(function: Function) -> bool:
    """Whether a function decides or declines: a predicate, a reason, a match that may fail."""
    name = function.name.lstrip("_")
    returns = ast.unparse(function.returns) if function.returns is not None else ""
    if returns == "bool" or "| None" in returns or name.startswith(DECISIONS):
        return True
    text = ast.unparse(function)
    return "Declined(" in text or ".no_match(" in text or "_decline(" in text


@attrs.frozen
class Room:
    """A part of the compiler: its files, the functions that count, how many mutants are made."""

    name: str
    files: tuple[str, ...]
    count: int
    counts: Callable[[Function], bool] = always

    def paths(self) -> list[str]:
        """Its files, from the root of the repository."""
        found = {p for pattern in self.files for p in ROOT.glob(pattern)}
        return sorted(str(p.relative_to(ROOT)) for p in found)


ROOMS = (
    Room("graph", ("irc/passes/graph/**/*.py", "irc/passes/frozen/*.py"), 60, decides),
    Room("layout", ("irc/passes/layout/*.py",), 25, decides),
    Room("loop", ("irc/passes/loop/**/*.py",), 55, decides),
    Room("kernel", ("irc/passes/kernel/**/*.py",), 50, decides),
    Room("host", ("irc/passes/host/*.py",), 25, decides),
    Room("verifiers", ("irc/dialects/*/*verify*.py", "irc/ir/verifier.py",
                       "irc/ir/dominance.py"), 60),
    Room("folds", ("irc/dialects/*/folds.py", "irc/dialects/*/canonical*.py"), 40),
    Room("common", ("irc/passes/common/*.py", "irc/ir/rewrite/driver.py"), 25),
    Room("cache", ("irc/cache/*.py", "irc/runtime/program_cache.py"), 25),
)  # fmt: skip

#: Tests that stand elsewhere than where the code's folder is mirrored.
ELSEWHERE = {
    "irc/passes/common": ("tests/ir/test_passes.py", "tests/ir/test_rewriting.py"),
    "irc/ir/rewrite/driver.py": ("tests/passes/common",),
    "irc/ir/verifier.py": ("tests/dialects/test_sym.py",),
    "irc/cache": ("tests/runtime/test_program_cache.py",),
}


@functools.cache
def population(room: Room) -> list[Mutant]:
    """All mutants of a room."""
    made: list[Mutant] = []
    for path in room.paths():
        made += mutants(path, (ROOT / path).read_text(encoding="utf-8"), room.counts)
    return made


def selected(room: Room, seed: int) -> list[Mutant]:
    """The mutants of a room that a run with this seed tries, spread over its functions: those
    whose keys have the lowest hashes, so that a change of the code moves few of them."""
    taken: list[Mutant] = []
    of_function: Counter[tuple[str, str]] = Counter()
    for mutant in sorted(population(room), key=lambda m: _rank(seed, m.key)):
        place = mutant.path, mutant.function
        if len(taken) < room.count and of_function[place] < MOST_OF_A_FUNCTION:
            of_function[place] += 1
            taken.append(mutant)
    return taken


def _rank(seed: int, key: str) -> str:
    return hashlib.sha256(f"{seed}/{key}".encode()).hexdigest()


@functools.cache
def test_files(path: str) -> tuple[str, ...]:
    """The files of tests that judge a file of the code."""
    places: set[str] = set()
    mirrored = Path("tests", *Path(path).parent.parts[1:])
    while not (ROOT / mirrored).is_dir():
        mirrored = mirrored.parent
    if mirrored != Path("tests"):
        places.add(str(mirrored))
    for prefix, others in ELSEWHERE.items():
        if path.startswith(prefix):
            places.update(others)
    return tuple(sorted({file for place in places for file in _files_of(ROOT / place)}))


def _files_of(place: Path) -> Iterable[str]:
    found = [place] if place.is_file() else [*place.rglob("test_*.py"), *place.rglob("*.mlir")]
    return [str(p.relative_to(ROOT)) for p in found]


@functools.cache
def helpers_of(test: str) -> list[Path]:
    """Files beside a test that are no tests: what it may import."""
    folder = (ROOT / test).parent
    return sorted(p for p in folder.glob("*.py") if not p.name.startswith("test_"))
