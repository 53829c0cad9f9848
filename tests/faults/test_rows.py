"""Every row of the table of faults has a test, and every marker names a row."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.faults.rows import OPEN, ROWS

TESTS = Path(__file__).resolve().parent.parent


def marked_rows(path: Path) -> Iterator[str]:
    """The arguments of each `pytest.mark.fault(...)` in a file."""
    text = path.read_text(encoding="utf-8")
    if "mark.fault" not in text:
        return
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call) or ast.unparse(node.func) != "pytest.mark.fault":
            continue
        for argument in node.args:
            assert isinstance(argument, ast.Constant), f"{path}: rows are written out"
            yield str(argument.value)


def test_each_row_has_a_test() -> None:
    marked = {row for path in sorted(TESTS.rglob("test_*.py")) for row in marked_rows(path)}
    assert marked <= ROWS.keys()
    assert sorted(ROWS.keys() - marked) == sorted(OPEN)
