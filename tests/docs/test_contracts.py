"""Pages name what is there: operations, passes, options, modules, files; the contracts, whole."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re

import attrs
import pytest

import irc
from irc.ir import parse_attribute
from irc.ir.passes import known_names
from irc.ir.registry import DIALECT_MODULES, load_dialect, lookup_op, registered_ops
from irc.options.options import MODES
from tests.docs.snippets import ROOT

pytestmark = pytest.mark.fault("U12")

CONTRACTS = "docs/design/contracts.md"
TEXT = (ROOT / CONTRACTS).read_text(encoding="utf-8")
PAGES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))
DIALECTS = "|".join(DIALECT_MODULES)
# Files of a reader, or in several folders.
ELSEWHERE = {"model.py", "test_decisions.py"}


def part(begin: str, end: str) -> str:
    start = TEXT.index(begin)
    return TEXT[start : TEXT.index(end, start + 1)]


def operations(dialect: str) -> set[str]:
    """The names of a dialect's operations, without the dialect."""
    load_dialect(dialect)
    return {op.name.partition(".")[2] for op in registered_ops(dialect)}


@pytest.mark.parametrize("page", [page for page in PAGES if "/reference/" not in page])
def test_operations_and_passes_are_there(page):
    """Those of torch with their overload; a rule's term `graph.or_` is the operation `graph.or`."""
    text = (ROOT / page).read_text(encoding="utf-8")
    named = set(re.findall(rf"`((?:{DIALECTS})\.\w+(?:\.\w+)?)[ `]", text))
    for name in {op.rstrip("_") if op.startswith("graph") else op for op in named}:
        if not name.endswith((".py", ".ERRORS")) and not re.fullmatch(r"aten\.\w+", name):
            assert lookup_op(name) is not None, name
    passes = set(re.findall(r"`([a-z]+(?:-[a-z]+)+)[`{]", text))
    assert passes - set(known_names()) - set(MODES) - {"irc-opt", "iree-opt"} == set()
    options = set(re.findall(r"options=\{\"(\w+)\"", text))
    assert options <= {field.name for field in attrs.fields(irc.Options)}
    if page == CONTRACTS:
        assert len(named) > 20 and len(passes) > 20


@pytest.mark.parametrize("dialect, begin, end", [
    ("graph", "## graph level", "## layout level"),
    ("arith", "\narith: ", "\nmath: "),
    ("math", "\nmath: ", "\nInteger division"),
])  # fmt: skip
def test_the_list_of_a_dialect_is_whole(dialect, begin, end):
    said = set(re.findall(r"\w+", part(begin, end)))
    assert operations(dialect) - said == set()


def test_attributes_are_named_as_their_operations_have_them():
    for name, fields in re.findall(r"`(\w+) \{([\w, ]+)\}`", part("## graph level", "## layout")):
        cls = irc.lookup_op(f"graph.{name}")
        declared = {*cls.attribute_fields, *(f.name for f in cls.operand_fields)}
        assert set(re.findall(r"\w+", fields)) <= declared, name
    for dialect, fields in re.findall(r"\b(slice|permute|broadcast) \{([\w, ]+)\}", TEXT):
        declared = irc.lookup_op(f"graph.{dialect}").attribute_fields
        assert set(re.findall(r"\w+", fields)) <= {*declared}, dialect


@pytest.mark.parametrize("text", sorted(set(re.findall(r"`(#aten\.\w+(?:<\"[^`]*>)?)`", TEXT))))
def test_attributes_are_read(text):
    assert str(parse_attribute(text)) == text


@pytest.mark.parametrize("page", ["README.md", *PAGES])
def test_modules_and_files_are_there(page):
    """A file by its path from the root; in the part on `irc/ir`, from there."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for path in re.findall(r"`((?:irc|tests|bench|examples)/[\w/]+(?:\.\w+)?)`", text):
        assert (ROOT / path).exists(), path
    core = text.partition("## IR core (`irc/ir`)")[2].partition("## ")[0]
    for path in re.findall(r"`([\w/]+\.py)`", text):
        folder = ROOT / "irc" / "ir" if f"`{path}`" in core else ROOT
        assert (folder / path).exists() or path in ELSEWHERE, path
    for path in re.findall(r"`(irc(?:\.\w+)+)`", text):
        assert _is_there(path), path


def rooms_told():
    text = (ROOT / "docs/design/rooms.md").read_text(encoding="utf-8")
    return re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)


def test_each_room_is_told_once():
    rooms = {path.parent.name for path in (ROOT / "irc").glob("*/__init__.py")}
    assert sorted(rooms_told()) == sorted(rooms | {"pipeline"})


def test_a_room_imports_those_told_before_it():
    told = rooms_told()
    upward = set()
    for path in (ROOT / "irc").rglob("*.py"):
        room = path.relative_to(ROOT / "irc").parts[0].removesuffix(".py")
        for name in imported(ast.parse(path.read_text(encoding="utf-8"))):
            other = name.split(".")[1] if name.startswith("irc.") else room
            if room in told and other in told and told.index(other) > told.index(room):
                upward.add((str(path.relative_to(ROOT)), name))
    assert upward == set()


def imported(tree):
    """The modules, and what is taken of them, that a file imports, also inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _is_there(path: str) -> bool:
    """Whether a dotted name is a module, or what one holds."""
    names = path.split(".")
    found = importlib.import_module(names[0])
    for number, name in enumerate(names[1:], start=2):
        module = ".".join(names[:number])
        if hasattr(found, name):
            found = getattr(found, name)
        elif not hasattr(found, "__path__") or importlib.util.find_spec(module) is None:
            return False
        else:
            found = importlib.import_module(module)
    return True
