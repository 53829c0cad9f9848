"""Keys of the cache: what decides a program, hashed.

    key_of(canonical_text(module), irc_key(), ...)

A key holds the program with the target that its module carries (`irc.target`), irc (its version and
the content of all its files), and the versions of what irc generates code with.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.resources
import json
import operator
import os
import platform
import secrets
import struct
import time
from collections.abc import Iterator, Sequence
from importlib.resources.abc import Traversable

from irc.cache.folder import tell_once
from irc.ir import attributes as A
from irc.ir.core import Operation, Value
from irc.ir.version import __version__

#: Attributes that say nothing about meaning.
_HINTS = frozenset({"hint"})
#: When this process began to load irc: a file written since may not be the one that it runs.
_LOADED = time.time()


def key_of(*parts: str | bytes) -> str:
    """The sha256, in hexadecimal, over `parts` and their lengths."""
    return hash_of([part.encode() if isinstance(part, str) else part for part in parts])


def hash_of(parts: Sequence[bytes]) -> str:
    """The sha256 over how many parts there are, their lengths and themselves, so that no two lists
    of parts are one text."""
    lengths = struct.pack(f"<Q{len(parts)}Q", len(parts), *map(len, parts))
    return hashlib.sha256(b"".join((lengths, *parts))).hexdigest()


def canonical_text(module: Operation) -> str:
    """A text that is equal for two modules exactly when they are the same program.

    Values are numbered in order; names of values, locations and hints don't count.
    """
    lines: list[str] = []
    _write(module, {}, lines)
    return "\n".join(lines)


def _write(op: Operation, numbers: dict[Value, int], lines: list[str]) -> None:
    operands = ",".join(str(numbers[v]) for v in op.operands)
    for value in op.results:
        numbers[value] = len(numbers)
    types = ",".join(str(v.type) for v in op.results)
    entries = op.attributes
    written = ";".join(
        f"{name}={_attribute_text(entries[name])}" for name in sorted(entries) if name not in _HINTS
    )
    lines.append(f"{op.name}({operands})->({types}){{{written}}}{len(op.regions)}")
    for region in op.regions:
        for block in region.blocks:
            for argument in block.arguments:
                numbers[argument] = len(numbers)
            lines.append(f"^({','.join(str(a.type) for a in block.arguments)})")
            for inner in block.ops:
                _write(inner, numbers, lines)
        lines.append("end")


def _attribute_text(attr: A.Attribute) -> str:
    if isinstance(attr, A.DenseAttr):
        return f"dense {attr.type} {attr.data.hex()}"
    if isinstance(attr, A.StringAttr):
        return json.dumps(attr.value)
    return str(attr)


@functools.cache
def irc_key() -> str:
    """Identity of irc: its version and the content of its files. Once per process, some 20 ms.

    Times and sizes of files tell nothing: images and wheels are made with equal times. Where a
    file was written after this process began, the code that runs here may be an older one: then
    this process shares entries with no other.
    """
    root = os.path.dirname(os.path.dirname(__file__))  # the folder irc
    if not os.path.isdir(root):  # in a zip file
        return key_of(__version__, hash_of([*packed_content(importlib.resources.files("irc"))]))
    newest, parts = folder_content(root)
    if newest <= _LOADED:
        return key_of(__version__, hash_of(parts))
    tell_once("irc's own files were changed after this process had started")
    return key_of(__version__, hash_of(parts), secrets.token_hex(16))


def folder_content(root: str) -> tuple[float, list[bytes]]:
    """When a file below a folder was changed last, and the names and contents of all, in order,
    but for Python's compiled ones."""
    parts: list[bytes] = []
    return _read_below(root, "", parts), parts


def _read_below(folder: str, inside: str, parts: list[bytes]) -> float:
    """Append names, from `inside` on, and contents of the files below a folder; gives when one was
    changed last."""
    newest, below = 0.0, []
    with os.scandir(folder) as entries:
        ordered = sorted(entries, key=_name_of)
    for entry in ordered:
        if not entry.is_dir():
            with open(entry.path, "rb", buffering=0) as file:
                newest = max(newest, os.fstat(file.fileno()).st_mtime)
                parts += ((inside + entry.name).encode(), file.read())
        elif entry.name != "__pycache__" and not entry.is_symlink():
            below.append(entry)
    for entry in below:
        newest = max(newest, _read_below(entry.path, f"{inside}{entry.name}/", parts))
    return newest


_name_of = operator.attrgetter("name")


def packed_content(folder: Traversable) -> Iterator[bytes]:
    """The names and contents of the files of a package that lies in a zip file."""
    for each in sorted(folder.iterdir(), key=lambda each: each.name):
        yield each.name.encode()
        if each.is_file():
            yield each.read_bytes()
        elif each.name != "__pycache__":
            yield from packed_content(each)


@functools.cache
def versions_key() -> str:
    """Identity of the libraries and the interpreter that code is generated with and against."""
    import llvmlite
    import torch
    from llvmlite import binding

    llvm = ".".join(str(n) for n in binding.llvm_version_info)
    return key_of(
        torch.__version__,
        str(torch.version.git_version),
        llvmlite.__version__,
        llvm,
        platform.python_version(),
    )


__all__ = ["canonical_text", "folder_content", "hash_of", "irc_key", "key_of", "packed_content",
           "versions_key"]  # fmt: skip
