"""A folder that belongs to the user alone: opened by descriptor, and judged each time it is used.

    folder = Folder("/home/ada/.cache/irc")
    with folder.opened(create=True) as here:        # raises Unusable
        here.write("a.entry", [b"content"])
        here.read("a.entry")                        # b"content"; None for what isn't plainly ours

Whoever can write in a folder of code can run code in our name, so nothing is taken on trust:

* The folder is opened once for each use and what was opened is judged, not its path: swapping it
  between two uses, or between the judging and the reading, gains nothing. Files are opened relative
  to it, never through a symbolic link, and never so that a pipe makes us wait.
* It must be a folder of this user (the effective one). Its mode is made 0700 where it holds nothing
  but what irc put there; had others been able to write there, its files go first.
* No folder above it may be writable by everybody, unless with the sticky bit, as /tmp has it.
* A file counts when it is a regular one of this user, that others can't write, with one name.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
import time
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

#: What irc puts into its folder: entries, files that are being written, the limit; and a folder of
#: kernels' sources, which versions before 0.2 had.
ENTRY, LIMIT, _FORMER = ".entry", "limit", "triton"
_ENTRY_NAME, _TEMPORARY_NAME = r"[0-9a-f]+\.entry", r"(\d+-[0-9a-f]{16}|tmp\w{8})\.tmp"
#: An empty file that a process holds while it makes an entry (`irc.cache.locks`).
_LOCK_NAME = r"[0-9a-f]+\.lock"
#: A temporary file this old was left by a process that died; a lock this old is nobody's.
STALE_SECONDS = 3600.0
#: What opening a symbolic link or a socket gives.
_NO_FILE = frozenset({errno.ELOOP, errno.EMLINK, errno.ENXIO})
#: How exactly it is known when a file was used last.
USED_SECONDS = 60.0


class Unusable(Exception):
    """Why a folder is not used, for people."""


class CacheWarning(UserWarning):
    """Something keeps irc from using its cache; programs are compiled anew in each process."""


class Kept(NamedTuple):
    """A file of the folder: its size, and when it was used last (seconds of the epoch)."""

    name: str
    size: int
    used: float


_told: set[str] = set()


def tell_once(reason: str) -> None:
    """Warn why the cache isn't used: once in a process for each reason."""
    if reason not in _told:
        _told.add(reason)
        warnings.warn(f"irc keeps no programs on disk: {reason}", CacheWarning, stacklevel=3)


class Folder:
    """The path of a folder that `opened` judges. Holds no descriptor: threads, forks and a change
    of the working directory don't matter, and the folder may be removed at any time."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(os.path.abspath(path))

    @contextlib.contextmanager
    def opened(self, *, create: bool = False) -> Iterator[OpenFolder]:
        """The folder, open for as long as the context lasts. create: make it where it is missing.

        Raises Unusable, with the reason.
        """
        try:
            descriptor = self._open(create)
        except OSError as error:
            raise Unusable(f"{self.path}: {error.strerror or error}") from error
        try:
            here = OpenFolder(descriptor)
            self._judge(here)
            yield here
        finally:
            os.close(descriptor)

    def _open(self, create: bool) -> int:
        if os.open not in os.supports_dir_fd or not hasattr(os, "O_NOFOLLOW"):
            raise Unusable("this system can't open files relative to a folder")
        parent = os.path.realpath(self.path.parent)
        _judge_above(parent)
        path = os.path.join(parent, self.path.name)
        if create:
            _make_folders(path)
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            raise Unusable(f"{self.path} is not a folder")
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(path, flags)

    def _judge(self, here: OpenFolder) -> None:
        """Raise Unusable unless the open folder is ours; close it to others where that is safe."""
        status = os.fstat(here.descriptor)
        mode = stat.S_IMODE(status.st_mode)
        if status.st_uid != os.geteuid():
            raise Unusable(f"{self.path} belongs to another user")
        if not mode & 0o077:
            return
        try:
            foreign = here.foreign_names()
            if foreign:
                raise Unusable(
                    f"{self.path} is open to other users (mode {mode:04o}, it must be 0700) and "
                    f"holds what is not irc's, as {foreign[0]!r}"
                )
            os.fchmod(here.descriptor, 0o700)
            if stat.S_IMODE(os.fstat(here.descriptor).st_mode) & 0o077:
                raise PermissionError("the file system keeps its mode")
            if mode & 0o022:
                here.clear()
        except OSError as error:
            raise Unusable(
                f"{self.path} is open to other users (mode {mode:04o}, it must be 0700): {error}"
            ) from error


def _judge_above(path: str) -> None:
    """Raise Unusable where everybody may rename what lies in a folder on the way to `path`."""
    above = path
    while True:
        with contextlib.suppress(FileNotFoundError):
            mode = os.stat(above).st_mode
            if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
                raise Unusable(f"{above} can be written by all users")
        above, last = os.path.dirname(above), above
        if above == last:
            return


def _make_folders(path: str) -> None:
    """Make a folder and those above that are missing, for the user alone."""
    if os.path.lexists(path):
        return
    _make_folders(os.path.dirname(path))
    with contextlib.suppress(FileExistsError):  # another process was faster
        os.mkdir(path, 0o700)


class OpenFolder:
    """The files of an open folder, by name. Methods raise OSError where they say so."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def read(self, name: str, most: int = 1 << 32) -> bytes | None:
        """The content of a file, which counts as used now. None when there is none; a file that
        isn't plainly ours, or has more than `most` bytes, is removed."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            descriptor = os.open(name, flags, dir_fd=self.descriptor)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno in _NO_FILE:
                self.remove(name)
            return None
        try:
            status = os.fstat(descriptor)
            if not _is_ours(status) or status.st_size > most:
                self.remove(name)
                return None
            with open(descriptor, "rb", closefd=False) as file:
                content = file.read()
            if time.time() - status.st_mtime > USED_SECONDS:
                with contextlib.suppress(OSError):  # a file system that can't be written
                    os.utime(descriptor)
            return content
        except OSError:  # a disk that fails
            return None
        finally:
            os.close(descriptor)

    def write(self, name: str, parts: Iterable[bytes]) -> None:
        """Make or replace a file: whoever reads it sees all of it or what was there before.

        Raises OSError where the file system refuses; nothing is left behind then.
        """
        temporary = f"{os.getpid()}-{secrets.token_hex(8)}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(temporary, flags, 0o600, dir_fd=self.descriptor)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.writelines(parts)
            os.replace(temporary, name, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)
        except BaseException:
            self.remove(temporary)
            raise

    def remove(self, name: str) -> bool:
        """Remove a file (not a folder); whether it is gone by our doing."""
        try:
            os.unlink(name, dir_fd=self.descriptor)
        except OSError:
            return False
        return True

    def kept(self) -> list[Kept]:
        """The entries, in no order. Old locks, and files that a process left when it died, go."""
        entries = []
        old = time.time() - STALE_SECONDS
        with contextlib.suppress(OSError), os.scandir(self.descriptor) as listed:
            for each in listed:
                if not _is_named_ours(each.name):
                    continue
                with contextlib.suppress(OSError):  # gone meanwhile
                    status = each.stat(follow_symlinks=False)
                    if re.fullmatch(_ENTRY_NAME, each.name):
                        entries.append(Kept(each.name, status.st_size, status.st_mtime))
                    elif status.st_mtime < old:
                        self.remove(each.name)
        return entries

    def foreign_names(self) -> list[str]:
        """Names that irc doesn't give, sorted. Raises OSError."""
        return sorted(
            name
            for name in os.listdir(self.descriptor)
            if not _is_named_ours(name) and name not in (LIMIT, _FORMER)
        )

    def clear(self) -> int:
        """Remove all files of irc's but the limit; how many entries there were."""
        removed = 0
        with contextlib.suppress(OSError):
            for name in os.listdir(self.descriptor):
                if _is_named_ours(name) and self.remove(name):
                    removed += name.endswith(ENTRY)
        return removed


def _is_named_ours(name: str) -> bool:
    """Whether a name is that of an entry, of a lock, or of a file being written."""
    return any(re.fullmatch(p, name) for p in (_ENTRY_NAME, _TEMPORARY_NAME, _LOCK_NAME))


def _is_ours(status: os.stat_result) -> bool:
    """Whether an open file is a regular one of this user's that others can't write, and that isn't
    the content of another name: a link to a file of ours elsewhere is not what we stored. (No name
    at all: replaced since it was opened.)"""
    return (
        stat.S_ISREG(status.st_mode)
        and status.st_uid == os.geteuid()
        and not stat.S_IMODE(status.st_mode) & 0o022
        and status.st_nlink <= 1
    )


__all__ = ["CacheWarning", "Folder", "Kept", "OpenFolder", "Unusable", "tell_once"]
