"""How large the cache may become, and what goes when it is larger.

The limit is the environment variable `IRC_CACHE_LIMIT`, else what `irc cache limit SIZE` wrote into
the folder, else `DEFAULT_LIMIT`. Entries that were used longest ago go first, until a tenth of the
limit is free.
"""

from __future__ import annotations

import os
import re

from irc.cache.folder import LIMIT, OpenFolder, tell_once
from irc.ir.diagnostics import UserError

#: An entry has 30 to 300 KB: some 5,000 programs.
DEFAULT_LIMIT = 1 << 30
#: The part of the limit that is left once entries had to go.
_LEFT = 0.9
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = r"(\d{1,15})\s*([KMGT]?)(?:i?B)?"


def parse_size(text: str) -> int | None:
    """Bytes from "512M", "2 GiB" or "1000000"; None for "none", no limit. Raises UserError."""
    if text.strip().lower() == "none":
        return None
    match = re.fullmatch(_SIZE, text.strip(), re.IGNORECASE)
    if match is None:
        raise UserError(f"a size of the cache is a number with K, M, G or T, or none, not {text!r}")
    return int(match[1]) * _UNITS[match[2].upper()]


def size_text(size: int | None) -> str:
    """`size` for people, and `parse_size`: "1.5M" is no such text, so it is rounded down."""
    if size is None:
        return "none"
    for unit, amount in reversed(_UNITS.items()):
        if size // amount >= 10 or (size >= amount and size % amount == 0):
            return f"{size // amount}{unit}"
    return str(size)


def limit_of(here: OpenFolder) -> int | None:
    """The bytes that the entries of a folder may have together; None for no limit."""
    chosen = os.environ.get("IRC_CACHE_LIMIT", "")
    if not chosen:
        content = here.read(LIMIT, most=100)
        chosen = content.decode(errors="replace") if content else ""
    if not chosen.strip():
        return DEFAULT_LIMIT
    try:
        return parse_size(chosen)
    except UserError as error:
        tell_once(f"{error.message}; the limit is {size_text(DEFAULT_LIMIT)}")
        return DEFAULT_LIMIT


def evict(here: OpenFolder, limit: int | None) -> int:
    """Remove the entries used longest ago where all together are above the limit; gives the bytes
    that are left. Several processes may do so at once."""
    kept = here.kept()
    total = sum(each.size for each in kept)
    if limit is None or total <= limit:
        return total
    for each in sorted(kept, key=lambda each: (each.used, each.name)):
        if total <= limit * _LEFT:
            break
        here.remove(each.name)
        total -= each.size
    return total


__all__ = ["DEFAULT_LIMIT", "evict", "limit_of", "parse_size", "size_text"]
