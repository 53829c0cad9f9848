"""A dialect is a folder with fixed roles: what is said of its operations stands where it is looked
for, and definitions import none of it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import irc
from irc.ir import hooks
from irc.ir.definition import Op
from irc.ir.registry import DIALECT_MODULES, load_dialect, registered_ops

FOLDER = Path(irc.__file__).parent / "dialects"
DIALECTS = sorted(name for name, module in DIALECT_MODULES.items() if ".dialects." in module)
#: The file of a dialect that says it, by the method that it is.
ROLES = {
    "verify_op": "verify", "verify_references": "verify", "verify_facts": "verify",
    "print_custom": "text", "parse_custom": "text", "fold": "folds",
}  # fmt: skip
#: What functions of several dialects share.
SHARED = "irc.ir.text.functions"
SAYS = ("verify", "text", "folds", "canonical", "rules")


def misplaced(cls: type[Op]) -> list[str]:
    """What is said of an operation in another file than its role's or its definition's."""
    dialect = cls.name.partition(".")[0]
    wrong = []
    for base in cls.__mro__:
        for method, role in ROLES.items():
            said = base.__dict__.get(method)
            if said is None or not base.__module__.startswith("irc.dialects."):
                continue
            own = f"irc.dialects.{dialect}.{role}"  # or a part of it: verify_dots
            here = (own, base.__module__, SHARED)
            if said.__module__ not in here and not said.__module__.startswith(f"{own}_"):
                wrong.append(f"{cls.name}: {method} stands in {said.__module__}")
    return wrong


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_is_said_of_operations_stands_in_its_role(dialect):
    load_dialect(dialect)
    assert [w for cls in registered_ops(dialect) for w in misplaced(cls)] == []


def test_a_verifier_in_another_file_is_found():
    load_dialect("kernel")
    from irc.dialects.kernel import KernelReturnOp

    try:
        hooks.verifies(KernelReturnOp)(lambda op: None)
        assert misplaced(KernelReturnOp) == [f"kernel.return: verify_op stands in {__name__}"]
    finally:
        del KernelReturnOp.verify_op
        hooks.verified.clear()


def modules_imported(file: Path) -> set[str]:
    """The modules that a file imports, but for those of type checkers."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    typing = [n for n in ast.walk(tree) if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.dump(n)]
    skipped = {id(inner) for n in typing for inner in ast.walk(n)}
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and id(node) not in skipped:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


@pytest.mark.parametrize("dialect", DIALECTS)
def test_definitions_import_nothing_that_is_said_of_them(dialect):
    for file in (FOLDER / dialect).glob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        defines = any(
            isinstance(n, ast.ClassDef) and any("Op" in ast.unparse(b) for b in n.bases)
            for n in tree.body
        )
        if defines and not file.stem.startswith(SAYS):
            said = {f"irc.dialects.{dialect}.{role}" for role in SAYS}
            assert not said & modules_imported(file), file.name


def test_dialects_know_no_room_above_them():
    allowed = ("irc.ir", "irc.dialects")
    for file in FOLDER.rglob("*.py"):
        above = {m for m in modules_imported(file) if m.startswith("irc.")}
        assert [m for m in sorted(above) if not m.startswith(allowed)] == [], file
