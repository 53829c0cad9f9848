"""The committed reference pages are what the definitions say now."""

import re
from pathlib import Path

import pytest

import irc
from irc.ir import registry
from irc.tools import docs

ROOT = Path(__file__).resolve().parents[2]


def test_committed_pages_are_current():
    irc.lookup_op("aten.add.Tensor")  # made from torch's schema, it has no page
    assert docs.main(["--out", str(ROOT / docs.DEFAULT_FOLDER), "--check"]) == 0


def test_a_stale_page_is_found_and_mended(tmp_path, capsys):
    assert docs.main(["--out", str(tmp_path)]) == 0
    page = tmp_path / "layout.md"
    page.write_text(page.read_text().replace("layout.copy", "layout.move"))
    assert docs.main(["--out", str(tmp_path), "--check"]) == 1
    assert "layout.md is not current" in capsys.readouterr().out
    assert docs.main(["--out", str(tmp_path)]) == 0
    assert docs.main(["--out", str(tmp_path), "--check"]) == 0


def test_every_operation_has_a_sentence_and_an_example():
    for dialect in registry.DIALECT_MODULES:
        page = (ROOT / "docs" / "reference" / f"{dialect}.md").read_text(encoding="utf-8")
        sections = re.split(r"^## `", page.partition("## Attributes")[0], flags=re.MULTILINE)[1:]
        assert sections, dialect
        for section in sections:
            name, _, body = section.partition("`")
            assert body.strip()[:3] not in ("", "```"), f"{name} has no sentence"
            assert "```mlir" in body, f"{name} has no example"


def test_every_rule_shows_a_program_before_and_after():
    from irc.ir.rewrite.rules import all_rules

    page = (ROOT / "docs" / "reference" / "rules.md").read_text(encoding="utf-8")
    sections = re.split(r"^## `", page, flags=re.MULTILINE)[1:]
    named = [section.partition("`")[0] for section in sections]
    assert named == [name for name, rule in all_rules().items() if docs.is_own(rule)]
    for section in sections:
        before, after = re.findall(r"```mlir\n(.*?)\n```", section, re.DOTALL)
        assert before != after and before.count("return") == after.count("return") == 1, section


def test_every_pass_shows_a_program_before_and_after():
    page = (ROOT / "docs" / "reference" / "passes.md").read_text(encoding="utf-8")
    sections = re.split(r"^## `", page, flags=re.MULTILINE)[1:]
    assert len(sections) > 15
    for section in sections:
        name = section.partition("`")[0]
        assert "\nBefore:\n" in section and "\nAfter:" in section, name


@pytest.mark.fault("U8")
@pytest.mark.parametrize("dialect", list(registry.DIALECT_MODULES))
def test_the_class_of_each_operation_is_where_its_page_says(dialect):
    import importlib

    page = (ROOT / docs.DEFAULT_FOLDER / f"{dialect}.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[`([\w.]+)`\]\(#\w+\) \| `([\w.]+)` \|", page, re.MULTILINE)
    assert {name for name, _ in rows} == {op.name for op in docs._operations(dialect)}
    for name, path in rows:
        module, _, cls = path.rpartition(".")
        found = getattr(importlib.import_module(module), cls)
        assert found is irc.lookup_op(name) and found.name == name
