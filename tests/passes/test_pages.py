"""Every pass has a small program that shows it, and a page with it before and after."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from irc.ir.passes import all_passes, lookup_pass

FOLDER = Path(__file__).resolve().parent
SHIPPED = [name for name, cls in all_passes().items() if cls.__module__.startswith("irc.")]
# It takes arguments away, so that its values are compared in test_freeze.py.
OTHER_ARGUMENTS = {"freeze"}
CHANGING = [name for name in SHIPPED if not lookup_pass(name).analysis]


def file_of(name: str) -> Path:
    """Where the program of a pass is: named as the pass's own file."""
    module = lookup_pass(name).__module__.rpartition(".")[2]
    (path,) = FOLDER.rglob(f"{module}.mlir")
    return path


@pytest.mark.parametrize("name", SHIPPED)
def test_a_pass_has_a_program_that_runs_it_and_checks_its_values(name):
    path = file_of(name)
    assert path.stem == name.replace("-", "_"), "the file of a pass has its name"
    text = path.read_text(encoding="utf-8")
    assert text.startswith(f"// The pass {name}: ")
    assert re.search(rf"^// RUN: --{name}\b", text, re.MULTILINE)
    assert name in OTHER_ARGUMENTS or re.search(rf"^// VALUES: {name}\b", text, re.MULTILINE)
    assert "// CHECK: " in text


@pytest.mark.parametrize("name", CHANGING)
def test_a_pass_changes_its_program(name):
    lines = file_of(name).read_text(encoding="utf-8").splitlines()
    given = [" ".join(line.split()) for line in lines if line and not line.startswith("//")]
    printed = [
        " ".join(line.partition(":")[2].split()) for line in lines if line.startswith("// CHECK")
    ]
    assert printed[1:-1] != given


@pytest.mark.parametrize("name", SHIPPED)
def test_the_documentation_of_a_pass_shows_before_and_after(name):
    cls = lookup_pass(name)
    doc = inspect.cleandoc(cls.__doc__ or "")
    assert cls.summary
    before, _, after = doc.partition("Before:\n")[2].partition("After:")
    assert re.search(r"\b[a-z]+\.\w+|\breturn\b", before), "a program before the pass"
    assert after.strip(), "what it becomes"


def test_every_program_belongs_to_a_pass():
    for path in FOLDER.rglob("*.mlir"):
        shown = re.match(r"// The pass ([\w-]+): ", path.read_text(encoding="utf-8"))
        assert shown and shown[1] in SHIPPED, path
