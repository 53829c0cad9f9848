"""Large constants beside a program's text: `FILE.mlir.resources`.

The file is a line `irc-resources 1`, eight bytes with the length of the header (little-endian),
the header, and the constants' bytes one after the other. The header is JSON:
`{"<key>": {"offset": 0, "bytes": 4096, "sha256": "<hex>"}, ...}`, offsets from the header's end.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from irc.ir.diagnostics import UserError

if TYPE_CHECKING:
    from irc.ir.module import ModuleOp

MAGIC = b"irc-resources 1\n"
LENGTH_BYTES = 8
SUFFIX = ".resources"
USED = re.compile(r'#irc\.resource<("(?:[^"\\]|\\.)*")')


class ResourceFile(Mapping[str, bytes]):
    """The constants of a file, each read and checked against its hash when it is asked for.

    A file that does not exist has no constants. `advice` says why one is missing. Raises UserError
    for a file that is no resource file, or is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._start = 0
        self._entries: dict[str, tuple[int, int, str]] = {}
        self.advice = f"the file {path} does not exist; --resources names another one"
        if path.is_file():
            self._read_header()
            self.advice = f"the file {path} does not have it"

    def _read_header(self) -> None:
        size = self.path.stat().st_size
        with self.path.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise UserError(f"{self.path} is no file of constants")
            length = int.from_bytes(file.read(LENGTH_BYTES), "little")
            self._start = len(MAGIC) + LENGTH_BYTES + length
            if self._start > size:
                raise UserError(f"{self.path} is truncated")
            header = file.read(length)
        try:
            entries = json.loads(header)
            for key, entry in entries.items():
                self._entries[key] = self._entry(entry, size - self._start)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise UserError(f"the header of {self.path} is damaged") from None

    @staticmethod
    def _entry(entry: Any, available: int) -> tuple[int, int, str]:
        offset, length, digest = entry["offset"], entry["bytes"], entry["sha256"]
        numbers = type(offset) is int and type(length) is int and isinstance(digest, str)
        if not numbers or offset < 0 or length < 0 or offset + length > available:
            raise ValueError
        return offset, length, digest

    def __getitem__(self, key: str) -> bytes:
        offset, length, digest = self._entries[key]
        with self.path.open("rb") as file:
            file.seek(self._start + offset)
            content = file.read(length)
        if hashlib.sha256(content).hexdigest() != digest:
            raise UserError(f"the constant {key[:16]} in {self.path} is damaged")
        return content

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries


def beside(text_file: str | Path) -> Path:
    """Where the constants of the program in `text_file` are kept."""
    return Path(f"{text_file}{SUFFIX}")


def parse_file(
    path: str | Path,
    *,
    allow_unregistered: bool = False,
    resources: Mapping[str, object] | None = None,
    trusted: bool = False,
) -> ModuleOp:
    """The module in a file, with the large constants that are kept beside it.

    resources: these constants instead. trusted: as `irc.parse` takes it. Raises UserError.
    """
    from irc.ir.text import parser

    contents = ResourceFile(beside(path)) if resources is None else resources
    return parser.parse_file(
        path, allow_unregistered=allow_unregistered, resources=contents, trusted=trusted
    )


def write_file(module: ModuleOp, path: str | Path, **form: Any) -> None:
    """Write a module's text (`form`: as `irc.print_op` takes it) and, beside it, its constants:
    what `irc.parse_file` reads back. Raises UserError for a constant that the module lacks."""
    from irc.ir.text.printer import print_op

    text = print_op(module, **form)
    Path(path).write_text(text, encoding="utf-8")
    write_beside(Path(path), text, module.resources)


def used_keys(text: str) -> set[str]:
    """The keys, quoted as in the text, of the constants that a printed program refers to."""
    return set(USED.findall(text))


def write_beside(text_file: Path, text: str, resources: Mapping[str, Any]) -> None:
    """Write those of `resources` (bytes or tensors) that `text` refers to beside `text_file`.

    Nothing is written when it refers to none. Raises UserError when it refers to one that is
    not there.
    """
    from irc.ir.text.attribute_text import quote

    keys = used_keys(text)
    if not keys:
        return
    chosen = {key: content for key, content in resources.items() if quote(key) in keys}
    missing = keys - {quote(key) for key in chosen}
    if missing:
        raise UserError(f"the constant {min(missing)} of the program is nowhere to be found")
    write_resources(beside(text_file), chosen)


def write_resources(path: Path, resources: Mapping[str, Any]) -> None:
    """Write a file of constants (bytes or tensors, whose elements go in row-major order)."""
    contents = {key: content_bytes(content) for key, content in resources.items()}
    entries = {}
    offset = 0
    for key, content in contents.items():
        digest = hashlib.sha256(content).hexdigest()
        entries[key] = {"offset": offset, "bytes": len(content), "sha256": digest}
        offset += len(content)
    header = json.dumps(entries).encode()
    with path.open("wb") as file:
        file.write(MAGIC + len(header).to_bytes(LENGTH_BYTES, "little") + header)
        for content in contents.values():
            file.write(content)


def content_bytes(content: Any) -> bytes:
    """The bytes of a constant: bytes as they are, a tensor's elements in row-major order."""
    if isinstance(content, bytes | bytearray | memoryview):
        return bytes(content)
    from irc.ir.contents import tensor_bytes  # loads torch

    return bytes(tensor_bytes(content))
