"""`irc cache`: look into the cache on disk, empty it, set how large it may become."""

from __future__ import annotations

import argparse
from typing import Any

from irc.cache.folder import Unusable
from irc.cache.limits import DEFAULT_LIMIT, parse_size, size_text
from irc.cache.store import DiskCache, shared_cache
from irc.ir.diagnostics import UserError


def add_parser(commands: Any) -> None:
    """Add the subcommand to those of the `irc` command."""
    parser = commands.add_parser(
        "cache", help="show, empty or limit the cache on disk", allow_abbrev=False,
        description=__doc__,
    )  # fmt: skip
    actions = parser.add_subparsers(dest="action", required=True)
    show = actions.add_parser("show", help="where it is, what it holds, what its keys say of here")
    clear = actions.add_parser("clear", help="remove all entries")
    limit = actions.add_parser(
        "limit", help=f"how large it may become (at first {size_text(DEFAULT_LIMIT)}B)"
    )
    limit.add_argument("size", help="512M, 2G, ... or none: keep what was used last")
    for action in (show, clear, limit):
        action.add_argument("--debug", action="store_true", help="show Python tracebacks")


def run_cache(arguments: argparse.Namespace) -> int:
    """Do what the words of `irc cache` say; gives the exit code. Raises UserError."""
    cache = shared_cache()
    try:
        if arguments.action == "show":
            print(described(cache))
        elif arguments.action == "clear":
            print(f"removed {cache.clear()} entries of {cache.directory}")
        else:
            left = cache.set_limit(parse_size(arguments.size))
            print(f"{cache.directory}: at most {arguments.size}, now {size_text(left)}B")
    except Unusable as error:
        raise UserError(f"the cache can't be used: {error}") from error
    return 0


def described(cache: DiskCache) -> str:
    """What a cache is and holds, and the machine and settings that its keys name here."""
    from irc.target import Target

    contents = cache.contents()
    state = cache.unusable or "in use"
    limit = "no limit" if contents.limit is None else f"at most {size_text(contents.limit)}B"
    return "\n".join((
        f"folder: {cache.directory} ({state})",
        f"entries: {contents.entries}, {size_text(contents.size)}B, {limit}",
        f"machine: {Target.host()}",
    ))  # fmt: skip


__all__ = ["add_parser", "described", "run_cache"]
