"""Code blocks of a Markdown page."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str, language: str) -> list[str]:
    """The code blocks of `page` (a path from the root) in `language` ("" for none)."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [code for kind, code in FENCE.findall(text) if kind == language]


def commands(page: str, names: tuple[str, ...] = ("irc-opt", "irc")) -> list[str]:
    """The lines of a page's plain code blocks that begin with one of `names`."""
    lines = [line for code in blocks(page, "") for line in code.splitlines()]
    return [line.partition("  #")[0] for line in lines if line.split(" ")[0] in names]
