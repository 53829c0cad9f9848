"""Experiment (c): what the symbol rules make of programs with dynamic sizes.

    python -m bench.experiments.symbols

Runs the tests of the rows DYN-01 to DYN-26 and counts, in the programs as they were imported from
torch, the symbols bound (sizes and strides of arguments; numbers), the facts that later operations
may rely on (`sym.refine`) and the assertions; and what is left of them in the host programs.
"""

from __future__ import annotations

import collections
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from irc.dialects import host, sym
from irc.frontend.backend import recording
from irc.ir.passes import PassManager
from irc.pipeline import pipeline_text

ROWS = Path(__file__).resolve().parents[2] / "tests" / "conformance" / "test_seed_dynamic.py"
COUNTED = {
    "sizes": sym.BindSizeOp,
    "numbers": sym.BindOp,
    "refines": sym.RefineOp,
    "asserts": sym.AssertOp,
    "asserts of values": sym.AssertValueOp,
}
COLUMNS = ("programs", *COUNTED, "host asserts", "launches")


class Counting:
    """A pytest plugin that counts in the programs that each test compiles, by its row's id."""

    def __init__(self) -> None:
        self.rows: dict[str, collections.Counter[str]] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Count what the test compiles."""
        marker = item.get_closest_marker("seed")
        with recording() as made:
            result = yield
        counts = self.rows.setdefault(marker.args[0] if marker else "?", collections.Counter())
        for compiled in made:
            counts.update(counts_of(compiled))
        return result


def counts_of(compiled: Any) -> collections.Counter[str]:
    """Counts in one compiled program."""
    counts: collections.Counter[str] = collections.Counter(programs=1)
    for op in compiled.imported.module.walk():
        for name, kind in COUNTED.items():
            counts[name] += isinstance(op, kind)
    module = compiled.imported.module.clone()
    PassManager.parse(pipeline_text("llvm")).run(module)
    for op in module.walk():
        counts["host asserts"] += isinstance(op, sym.AssertOp | sym.AssertValueOp)
        counts["launches"] += isinstance(op, host.LaunchOp)
    return counts


def main() -> int:
    """Run the rows and print the table."""
    counting = Counting()
    status = pytest.main(["-q", "-p", "no:cacheprovider", str(ROWS)], plugins=[counting])
    total: collections.Counter[str] = collections.Counter()
    print("row     " + "  ".join(COLUMNS))
    for row, counts in sorted(counting.rows.items()):
        total.update(counts)
        print(f"{row:8}" + "  ".join(f"{counts[c]:{len(c)}}" for c in COLUMNS))
    print("all     " + "  ".join(f"{total[c]:{len(c)}}" for c in COLUMNS))
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
