"""The site of the docs: its navigation has each page, each link leads somewhere, and it builds."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import yaml

from tests.docs.snippets import ROOT

spec = importlib.util.spec_from_file_location("docs_hooks", ROOT / "docs" / "hooks.py")
assert spec is not None and spec.loader is not None
hooks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(hooks)

CONFIG = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
PAGES: dict[str, str] = hooks.pages()


def listed(nav) -> list[str]:
    """The paths of a navigation, in order."""
    if isinstance(nav, str):
        return [nav]
    parts = nav.values() if isinstance(nav, dict) else nav
    return [path for part in parts for path in listed(part)]


def broken(page: str, text: str) -> list[str]:
    """The links of a page that lead nowhere."""
    found = []
    for link, place in hooks.links(text):
        target = hooks.resolved(page, link)
        there = (ROOT / target).exists() and not target.startswith("..")
        if not there or (place and place not in hooks.anchors(PAGES.get(target, ""))):
            found.append(f"{link}#{place}" if place else link)
    return found


def test_each_page_is_in_the_navigation_once():
    paths = listed(CONFIG["nav"])
    own = {hooks.site_path(page) for page in PAGES}
    own = {path for path in own if not path.startswith(hooks.OUTSIDE)}
    assert Counter(paths).most_common(1)[0][1] == 1
    assert set(paths) == own


def test_the_readme_leads_to_each_page_of_the_first_row():
    first = {page for page in PAGES if re.fullmatch(r"docs/[^/]+\.md", page)}
    assert first - {link for link, _ in hooks.links(PAGES["README.md"])} == set()


@pytest.mark.parametrize("page", sorted(page for page in PAGES if page.endswith(".md")))
def test_no_link_is_broken(page):
    assert broken(page, PAGES[page]) == []


def test_a_broken_link_is_found():
    text = "[a](words.md) [b](none.md) [c](words.md#loops) [d](words.md#none) [e](#no) [f](../../x)"
    assert broken("docs/x.md", text) == ["none.md", "words.md#none", "#no", "../../x"]
    code = "```\n[a](none.md)\n```\n`[b](none.md)`"
    assert broken("docs/x.md", f"{code} [c](https://x.org/none)") == []


def test_links_are_as_the_site_has_them():
    text = "[r](../README.md#more) [s](../examples/squares.py) `[n](../README.md)`"
    assert hooks.for_site("docs/tutorial.md", text) == (
        "[r](index.md#more) [s](repository/examples/squares.py.md) `[n](../README.md)`"
    )
    assert hooks.for_site("README.md", "[w](docs/words.md)") == "[w](words.md)"
    assert hooks.for_site("docs/design/status.md", "[w](../words.md)") == "[w](../words.md)"


def test_anchors_are_those_of_the_repositorys_viewers():
    text = "# A `b.c`: d\n## On - off\n```\n# no heading\n```\n### [l](x.md)'s e_f"
    assert hooks.anchors(text) == ["a-bc-d", "on---off", "ls-e_f"]


def test_each_word_has_an_example_and_a_link():
    rows = [line for line in PAGES["docs/words.md"].splitlines() if line.startswith("| ")]
    words = [row.strip("| ").split(" | ") for row in rows if not row.startswith("| word |")]
    assert len(words) > 40
    assert Counter(word[0] for word in words).most_common(1)[0][1] == 1
    for word in words:
        assert len(word) == 4 and all(word), word
        assert re.fullmatch(r"\[[^\]]+\]\([^)]+\)", word[3]), word


def test_the_site_builds_strictly(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="the extra `docs` is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "index.html").exists() and (tmp_path / "search").is_dir()
