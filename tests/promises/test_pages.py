"""Each promise names tests, and each test is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("docs/promises.md", "docs/security.md", "SECURITY.md")
LINK = re.compile(r"\]\(([^)#]+)")
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
HEADINGS = ("Threads", "Forks", "Interrupts", "Errors half way in a call", "The cache on disk",
            "Texts", "Constants and packages", "Custom operators")  # fmt: skip


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def named_tests() -> list[tuple[str, str]]:
    return sorted({found for page in PAGES for found in TEST.findall(text_of(page))})


@pytest.mark.parametrize("path", sorted({path for path, _ in named_tests()}))
def test_each_named_test_is_there(path: str) -> None:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    there = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert {name for other, name in named_tests() if other == path} <= there


def test_each_promise_names_a_test() -> None:
    rows = [line for line in text_of("docs/promises.md").splitlines() if line.startswith("| ")]
    promises = [row for row in rows if row != "| promise | held by |"]
    assert len(promises) > 30
    assert [row for row in promises if not TEST.search(row)] == []


def test_each_topic_says_what_is_not_promised() -> None:
    sections = re.split(r"^## (.*)$", text_of("docs/promises.md"), flags=re.MULTILINE)
    found = dict(zip(sections[1::2], sections[2::2], strict=True))
    assert set(HEADINGS) <= found.keys()
    assert [name for name, body in found.items() if "Not promised: " not in body] == []


def test_the_pages_lead_to_each_other_and_from_the_readme() -> None:
    assert "](security.md)" in text_of("docs/promises.md")
    assert {"promises.md", "../SECURITY.md"} <= set(LINK.findall(text_of("docs/security.md")))
    assert {"docs/promises.md", "docs/security.md"} <= set(LINK.findall(text_of("SECURITY.md")))
    assert {"docs/promises.md", "docs/security.md"} <= set(LINK.findall(text_of("README.md")))
