"""The cache on disk: bytes under a key, safe under concurrent processes, kills and foreign files.

An entry is one file: a line of JSON (magic, format version, key, length, sha256), then the payload.
It is written to a temporary name in the same folder and renamed, so a reader sees all of it or
none; a file that is truncated, damaged, foreign or under another key is a miss and is removed.
The folder belongs to the user with mode 0700, and isn't used when it doesn't: another user who can
write there could feed us machine code. Entries are bytes or JSON, never pickles.

The environment variable `IRC_CACHE_DIR` chooses the folder; `IRC_DISABLE_CACHE=1` turns it off.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import stat
import sys
import tempfile
import time
from pathlib import Path

from irc.runtime import metrics

_MAGIC, _FORMAT = "irc-cache", 1
_MAX_HEADER_BYTES = 4096
_SUFFIX, _TEMPORARY = ".entry", ".tmp"
#: A temporary file this old was left by a process that died.
_STALE_SECONDS = 3600.0


def default_directory() -> Path:
    """The user's cache folder for irc: `IRC_CACHE_DIR`, else the platform's convention."""
    chosen = os.environ.get("IRC_CACHE_DIR")
    if chosen:
        return Path(chosen)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "irc"
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "irc"


def key_of(*parts: str | bytes) -> str:
    """The sha256, in hexadecimal, over `parts`, each preceded by its length."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


class DiskCache:
    """A mapping from keys (hexadecimal text of `key_of`) to bytes in one folder.

    `unusable` says why the folder isn't used, None when it is. No method raises for what the file
    system or another process did: a lookup becomes a miss, a store does nothing and answers False.
    """

    def __init__(self, directory: Path | str | None = None) -> None:
        self.directory = Path(directory) if directory is not None else default_directory()
        self.unusable = self._prepare()

    def _prepare(self) -> str | None:
        if os.environ.get("IRC_DISABLE_CACHE", "") not in ("", "0"):
            return "IRC_DISABLE_CACHE is set"
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = os.lstat(self.directory)
        except OSError as error:
            return f"{self.directory}: {error.strerror or error}"
        if not stat.S_ISDIR(status.st_mode):
            return f"{self.directory} is not a folder"
        if hasattr(os, "getuid"):
            if status.st_uid != os.getuid():
                return f"{self.directory} belongs to another user"
            if stat.S_IMODE(status.st_mode) & 0o077:
                return f"{self.directory} is open to other users: its mode must be 0700"
        self._remove_stale()
        return None

    def _remove_stale(self) -> None:
        before = time.time() - _STALE_SECONDS
        with contextlib.suppress(OSError):
            for path in self.directory.glob(f"*{_TEMPORARY}"):
                with contextlib.suppress(OSError):
                    if path.stat().st_mtime < before:
                        path.unlink()

    def _path(self, key: str) -> Path:
        if not key or not all(c in "0123456789abcdef" for c in key):
            raise ValueError(f"a cache key is lower-case hexadecimal, not {key!r}")
        return self.directory / (key + _SUFFIX)

    def get(self, key: str, *, counted: bool = True) -> bytes | None:
        """The payload stored under `key`, None when there is none that is whole and ours.

        `counted`: the entry is a program, a hit or miss for `irc.metrics`.
        """
        path = self._path(key)
        payload = self._read(path, key) if self.unusable is None else None
        if not counted:
            return payload
        metrics.add("cache_hits" if payload is not None else "cache_misses")
        return payload

    def _read(self, path: Path, key: str) -> bytes | None:
        try:
            flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)
            with os.fdopen(os.open(path, flags), "rb") as file:
                header = file.readline(_MAX_HEADER_BYTES)
                payload = file.read()
        except OSError:
            return None
        if _matches(header, payload, key):
            return payload
        with contextlib.suppress(OSError):
            path.unlink()
        return None

    def put(self, key: str, payload: bytes, *, counted: bool = True) -> bool:
        """Store `payload` under `key`; False when the folder isn't usable or the disk refuses.

        `counted` as for `get`.
        """
        path = self._path(key)
        if self.unusable is not None:
            return False
        record = {
            "magic": _MAGIC,
            "format": _FORMAT,
            "key": key,
            "length": len(payload),
            "sha256": hashlib.sha256(payload).hexdigest(),
        }
        temporary = None
        try:
            descriptor, temporary = tempfile.mkstemp(_TEMPORARY, dir=self.directory)
            with os.fdopen(descriptor, "wb") as file:
                file.write(json.dumps(record).encode() + b"\n")
                file.write(payload)
            os.replace(temporary, path)
        except OSError:
            if temporary is not None:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
            return False
        if counted:
            metrics.add("cache_puts")
        return True

    def get_json(self, key: str) -> object | None:
        """Like `get` for an entry that `put_json` wrote; an entry that is no JSON is a miss."""
        payload = self.get(key)
        if payload is None:
            return None
        try:
            return json.loads(payload)
        except (ValueError, RecursionError):
            return None

    def put_json(self, key: str, value: object) -> bool:
        """Store `value` as JSON; TypeError when it isn't made of JSON's types."""
        return self.put(key, json.dumps(value, sort_keys=True).encode())

    def clear(self) -> int:
        """Remove every entry; how many there were."""
        removed = 0
        if self.unusable is None:
            for path in self.directory.glob(f"*{_SUFFIX}"):
                with contextlib.suppress(OSError):
                    path.unlink()
                    removed += 1
        return removed


@functools.lru_cache(maxsize=8)
def _cache_at(directory: str, disabled: str) -> DiskCache:
    return DiskCache(directory or None)


def shared_cache() -> DiskCache:
    """The cache of the folder that the environment names now."""
    directory = os.environ.get("IRC_CACHE_DIR", "")
    return _cache_at(directory, os.environ.get("IRC_DISABLE_CACHE", ""))


def _matches(header: bytes, payload: bytes, key: str) -> bool:
    try:
        record = json.loads(header)
    except (ValueError, RecursionError):
        return False
    return (
        isinstance(record, dict)
        and record.get("magic") == _MAGIC
        and record.get("format") == _FORMAT
        and record.get("key") == key
        and record.get("length") == len(payload)
        and record.get("sha256") == hashlib.sha256(payload).hexdigest()
    )
