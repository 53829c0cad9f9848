"""The cache on disk: bytes under a key, safe under concurrent processes, kills and foreign files.

    cache = shared_cache()
    cache.put(key, payload)             # False where the folder can't be used, or the disk is full
    cache.get(key)                      # the payload, or None

An entry is one file of the folder (`irc.cache.folder` makes and judges it): a line of JSON (magic,
format version, key, length, sha256), then the payload. It is renamed into its place, so that a
reader sees all of it or none; a file that is truncated, damaged, foreign or under another key is a
miss and is removed. Entries are bytes or JSON, never pickles.

The environment variable `IRC_CACHE_DIR` chooses the folder, `IRC_CACHE_LIMIT` its size
(`irc.cache.limits`); `IRC_DISABLE_CACHE=1` turns it off.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import sys
from pathlib import Path
from typing import NamedTuple

from irc.cache.folder import ENTRY, LIMIT, Folder, Unusable, tell_once
from irc.cache.limits import evict, limit_of

_MAGIC, _FORMAT = "irc-cache", 1
_DISABLED = "IRC_DISABLE_CACHE is set"
#: The folder is measured anew after so many entries of a process: others write there too.
_MEASURED_EACH = 64


def default_directory() -> Path:
    """The user's cache folder for irc: `IRC_CACHE_DIR`, else the platform's convention."""
    chosen = os.environ.get("IRC_CACHE_DIR")
    if chosen:
        return Path(chosen)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "irc"
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "irc"


class Contents(NamedTuple):
    """What a cache holds: its entries, their bytes, and the bytes that it may have (None: any)."""

    entries: int
    size: int
    limit: int | None


class DiskCache:
    """A mapping from keys (hexadecimal text of `key_of`) to bytes in one folder.

    No method raises for what the file system or another process did: a lookup becomes a miss, a
    store does nothing and answers False. Why is told once, as a `CacheWarning`.
    """

    def __init__(self, directory: Path | str | None = None) -> None:
        self._folder = Folder(directory if directory is not None else default_directory())
        self._size, self._until_measured = 0, 0

    @property
    def directory(self) -> Path:
        """The folder's path."""
        return self._folder.path

    @property
    def unusable(self) -> str | None:
        """Why the folder isn't used now, None when it is (it is made when it is missing)."""
        if _is_disabled():
            return _DISABLED
        try:
            with self._folder.opened(create=True):
                return None
        except Unusable as error:
            tell_once(str(error))
            return str(error)

    def get(self, key: str) -> bytes | None:
        """The payload stored under `key`, None when there is none that is whole and ours."""
        name = _name_of(key)
        if _is_disabled() or not os.path.lexists(self.directory):
            return None
        try:
            with self._folder.opened() as here:
                content = here.read(name)
                if content is None:
                    return None
                payload = _payload(content, key)
                if payload is None:
                    here.remove(name)
                return payload
        except Unusable as error:
            tell_once(str(error))
            return None

    def put(self, key: str, payload: bytes) -> bool:
        """Store `payload` under `key`; False when the folder isn't usable, the disk refuses, or the
        payload alone is larger than the limit."""
        name = _name_of(key)
        if _is_disabled():
            return False
        record = {
            "magic": _MAGIC,
            "format": _FORMAT,
            "key": key,
            "length": len(payload),
            "sha256": hashlib.sha256(payload).hexdigest(),
        }
        header = json.dumps(record).encode() + b"\n"
        size = len(header) + len(payload)
        try:
            with self._folder.opened(create=True) as here:
                limit = limit_of(here)
                if limit is not None and size > limit:
                    return False
                here.write(name, (header, payload))
                self._size += size
                self._until_measured -= 1
                if self._until_measured < 0 or (limit is not None and self._size > limit):
                    self._size, self._until_measured = evict(here, limit), _MEASURED_EACH
        except Unusable as error:
            tell_once(str(error))
            return False
        except OSError as error:
            tell_once(f"{self.directory}: {error.strerror or error}")
            return False
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
        """Remove every entry; how many there were. Raises Unusable."""
        if not os.path.lexists(self.directory):
            return 0
        with self._folder.opened() as here:
            return here.clear()

    def contents(self) -> Contents:
        """What there is. Raises Unusable."""
        if not os.path.lexists(self.directory):
            return Contents(0, 0, None)
        with self._folder.opened() as here:
            kept = here.kept()
            return Contents(len(kept), sum(each.size for each in kept), limit_of(here))

    def set_limit(self, limit: int | None) -> int:
        """Keep to a limit from now on, here and in other processes; gives the bytes that are left.
        Raises Unusable, and OSError where the folder can't be written."""
        text = "none" if limit is None else str(limit)
        with self._folder.opened(create=True) as here:
            here.write(LIMIT, [text.encode()])
            return evict(here, limit_of(here))


def _is_disabled() -> bool:
    return os.environ.get("IRC_DISABLE_CACHE", "") not in ("", "0")


def _name_of(key: str) -> str:
    if not key or not all(c in "0123456789abcdef" for c in key):
        raise ValueError(f"a cache key is lower-case hexadecimal, not {key!r}")
    return key + ENTRY


def _payload(content: bytes, key: str) -> bytes | None:
    """The payload of an entry's file; None where it isn't whole, or another key's."""
    header, _, payload = content.partition(b"\n")
    try:
        record = json.loads(header)
    except (ValueError, RecursionError):
        return None
    whole = (
        isinstance(record, dict)
        and record.get("magic") == _MAGIC
        and record.get("format") == _FORMAT
        and record.get("key") == key
        and record.get("length") == len(payload)
        and record.get("sha256") == hashlib.sha256(payload).hexdigest()
    )
    return payload if whole else None


@functools.lru_cache(maxsize=8)
def _cache_at(directory: Path) -> DiskCache:
    return DiskCache(directory)


def shared_cache() -> DiskCache:
    """The cache of the folder that the environment names now."""
    return _cache_at(default_directory())


__all__ = ["Contents", "DiskCache", "default_directory", "shared_cache"]
