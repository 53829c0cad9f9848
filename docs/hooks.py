"""What mkdocs is told beyond mkdocs.yml: which files are pages, and where links lead.

The pages are written to be read in the repository, too: the README is the site's first page, links
lead to files by their paths, and anchors are those of the usual viewers. A file outside of docs/
that a page links to (an example, figures) is a page of the site, under `repository/`.
"""

from __future__ import annotations

import functools
import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DOCS = "docs/"
OUTSIDE = "repository/"
FIRST = {"README.md": "index.md"}
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(#[^)\s]*)?\)")
FENCED = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
LANGUAGES = {".py": "python", ".mlir": "mlir", ".toml": "toml"}


def anchor(text: str, separator: str = "-") -> str:
    """The anchor of a heading, as the viewers of repositories make it."""
    plain = re.sub(r"[^\w\- ]", "", text.strip().lower())
    return plain.replace(" ", separator)


def links(text: str) -> Iterator[tuple[str, str]]:
    """The links of a page that stay in the repository: (path, "" for the page itself; anchor)."""
    prose = _without_code(text, lambda code: "")
    for path, place in LINK.findall(prose):
        yield path, place.removeprefix("#")


def _without_code(text: str, replaced: Callable[[str], str]) -> str:
    """The text with its fenced blocks, and spans that hold links, replaced."""

    def one(found: re.Match[str]) -> str:
        code = found.group()
        return replaced(code) if code.startswith("```") or "](" in code else code

    return FENCED.sub(one, text)


def anchors(text: str) -> list[str]:
    """The anchors of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", _without_code(text, lambda code: ""), re.MULTILINE)
    return [anchor(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", one)) for one in headings]


def resolved(page: str, link: str) -> str:
    """The path from the root of what `link` on `page` leads to, both as paths from the root."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), link)) if link else page


@functools.cache
def pages() -> dict[str, str]:
    """The text of each page of the site by its path from the root: the README, what is under
    docs/, and what these link to, and so on."""
    found: dict[str, str] = {}
    todo = ["README.md", *(str(p.relative_to(ROOT)) for p in sorted((ROOT / DOCS).rglob("*.md")))]
    while todo:
        path = todo.pop()
        place = ROOT / path
        if path in found or not place.exists():
            continue
        found[path] = _text(place)
        if path.endswith(".md") or place.is_dir():
            todo += [resolved(path, link) for link, _ in links(found[path])]
    return found


def _text(place: Path) -> str:
    """A page's own text; of a file of another kind a page that shows it."""
    if place.is_dir():
        inside = sorted(p.name for p in place.iterdir() if p.is_file())
        listed = "\n".join(f"* [{name}]({place.name}/{name})" for name in inside)
        # Links are from the folder that holds this one, as those to a file would be.
        return f"# {place.name}\n\n{listed}\n"
    text = place.read_text(encoding="utf-8")
    if place.suffix == ".md":
        return text
    fence = "````" if "```" in text else "```"
    kind = LANGUAGES.get(place.suffix, "")
    return f"# {place.name}\n\n{fence}{kind}\n{text.rstrip()}\n{fence}\n"


def site_path(path: str) -> str:
    """The path in the site's sources of a page, given from the root."""
    if path in FIRST:
        return FIRST[path]
    if path.startswith(DOCS) and path.endswith(".md"):
        return path.removeprefix(DOCS)
    return OUTSIDE + (path if path.endswith(".md") else f"{path}.md")


def for_site(page: str, text: str) -> str:
    """The text of a page with its links as they are in the site."""
    kept: list[str] = []

    def keep(code: str) -> str:
        kept.append(code)
        return f"\0{len(kept) - 1}\0"

    folder = posixpath.dirname(site_path(page))

    def one(found: re.Match[str]) -> str:
        link, place = found.groups()
        target = resolved(page, link)
        if not link or target not in pages():
            return found.group()
        return f"]({posixpath.relpath(site_path(target), folder or '.')}{place or ''})"

    moved = LINK.sub(one, _without_code(text, keep))
    return re.sub("\0(\\d+)\0", lambda m: kept[int(m[1])], moved)


# -- what mkdocs calls


def on_config(config: Any) -> Any:
    """Anchors as in the repository."""
    config["mdx_configs"].setdefault("toc", {})["slugify"] = anchor
    return config


def on_files(files: Any, config: Any) -> Any:
    """The pages that stand outside of docs/ join, and all get their links as the site has them."""
    from mkdocs.structure.files import File

    for path, text in pages().items():
        known = files.get_file_from_path(site_path(path))
        if known is not None:
            files.remove(known)
        files.append(File.generated(config, site_path(path), content=for_site(path, text)))
    return files
