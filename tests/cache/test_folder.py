"""The cache's folder: whose it must be, and what is done about what others did."""

from __future__ import annotations

import os
import socket
import stat
import warnings
from pathlib import Path

import pytest

from irc.cache import folder
from irc.cache.folder import CacheWarning, Folder, Unusable
from irc.cache.keys import key_of
from irc.cache.store import DiskCache

KEY = key_of("some program")
ENTRY = f"{KEY}.entry"
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="giving files away needs root")


@pytest.fixture(autouse=True)
def nothing_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "_told", set())


@pytest.fixture
def cache(tmp_path: Path) -> DiskCache:
    made = DiskCache(tmp_path / "cache")
    assert made.put(KEY, b"mine")
    return made


def mode_of(path: Path) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def why_not(cache: DiskCache) -> str:
    """Why a cache isn't used; that it neither gives nor takes, and warns once."""
    with pytest.warns(CacheWarning) as told:
        reason = cache.unusable
        assert reason is not None
        assert cache.get(KEY) is None and not cache.put(KEY, b"new")
    assert len(told) == 1 and reason in str(told[0].message)
    return reason


@pytest.mark.fault("K1")
@pytest.mark.parametrize("umask", [0o022, 0o000, 0o077])
def test_new_folders_are_the_users_alone(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        made = DiskCache(tmp_path / "new" / "cache")
        assert made.put(KEY, b"x")
    finally:
        os.umask(before)
    assert mode_of(made.directory) == mode_of(made.directory.parent) == 0o700
    assert mode_of(made.directory / ENTRY) == 0o600


@pytest.mark.fault("K1")
@pytest.mark.parametrize("mode", [0o755, 0o750, 0o711])
def test_a_folder_that_others_can_read_is_closed(cache: DiskCache, mode: int) -> None:
    (cache.directory / "triton").mkdir()  # as versions before 0.2 made one
    cache.directory.chmod(mode)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cache.unusable is None and cache.get(KEY) == b"mine"
    assert mode_of(cache.directory) == 0o700


@pytest.mark.fault("K1", "K4")
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o1777])
def test_what_others_could_have_written_is_removed(cache: DiskCache, mode: int) -> None:
    cache.directory.chmod(mode)
    assert cache.get(KEY) is None and not os.listdir(cache.directory)
    assert mode_of(cache.directory) == 0o700 and cache.put(KEY, b"new")


@pytest.mark.parametrize("mode", [0o755, 0o777])
def test_a_folder_of_other_things_keeps_its_mode(cache: DiskCache, mode: int) -> None:
    """`IRC_CACHE_DIR=$HOME` must not close a home, nor remove what is there."""
    (cache.directory / "thesis.tmp").write_text("")
    cache.directory.chmod(mode)
    assert "must be 0700" in why_not(cache)
    assert mode_of(cache.directory) == mode
    assert sorted(os.listdir(cache.directory)) == [ENTRY, "thesis.tmp"]


@pytest.mark.fault("K4")
def test_another_users_folder_is_not_used(
    cache: DiskCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    assert "belongs to another user" in why_not(cache)


@pytest.mark.fault("K4")
@AS_ROOT
def test_a_folder_swapped_between_calls_is_not_read(cache: DiskCache) -> None:
    content = (cache.directory / ENTRY).read_bytes()
    os.rename(cache.directory, f"{cache.directory}.away")
    cache.directory.mkdir(mode=0o700)
    (cache.directory / ENTRY).write_bytes(content)
    os.chown(cache.directory, 65534, 65534)
    assert "belongs to another user" in why_not(cache)


@pytest.mark.fault("K4")
def test_a_link_swapped_in_between_calls_is_not_followed(cache: DiskCache) -> None:
    os.rename(cache.directory, f"{cache.directory}.away")
    cache.directory.symlink_to(f"{cache.directory}.away")
    assert "is not a folder" in why_not(cache)


@pytest.mark.fault("K4")
def test_a_swap_after_the_folder_was_opened_changes_nothing(cache: DiskCache) -> None:
    """What is judged is what is read: a descriptor, not a path."""
    with Folder(cache.directory).opened() as here:
        os.rename(cache.directory, f"{cache.directory}.away")
        cache.directory.mkdir()
        (cache.directory / ENTRY).write_bytes(b"foreign")
        assert b"mine" in (here.read(ENTRY) or b"")
        here.write("aa.entry", [b"more"])
    assert os.listdir(cache.directory) == [ENTRY]


@pytest.mark.fault("K4")
def test_no_folder_above_may_be_writable_by_all(tmp_path: Path) -> None:
    above = tmp_path / "above"
    (above / "between").mkdir(parents=True)
    cache = DiskCache(above / "between" / "cache")
    above.chmod(0o777)
    assert f"{above} can be written by all users" in why_not(cache)
    above.chmod(0o1777)  # the sticky bit: names are their owners', as in /tmp
    assert cache.unusable is None and cache.put(KEY, b"x")


def test_a_link_above_the_folder_is_followed(tmp_path: Path) -> None:
    """A home, or ~/.cache, may lie on another disk."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "home").symlink_to(tmp_path / "disk")
    assert DiskCache(tmp_path / "home" / "cache").put(KEY, b"x")
    assert (tmp_path / "disk" / "cache" / ENTRY).is_file()


def foreign_fifo(path: Path) -> None:
    os.mkfifo(path)


def foreign_socket(path: Path) -> None:
    before = os.getcwd()
    os.chdir(path.parent)  # the path of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(before)


def foreign_link(path: Path) -> None:
    outside = path.parent.parent / "outside"
    outside.write_bytes(b"outside")
    path.symlink_to(outside)


def foreign_name(path: Path) -> None:
    """A second name of a file of ours elsewhere."""
    outside = path.parent.parent / "outside"
    outside.write_bytes(b"outside")
    os.link(outside, path)


def foreign_mode(path: Path) -> None:
    path.write_bytes(b"outside")
    path.chmod(0o622)


def foreign_owner(path: Path) -> None:
    path.write_bytes(b"outside")
    os.chown(path, 65534, 65534)


@pytest.mark.fault("K4")
@pytest.mark.parametrize(
    "make",
    [foreign_fifo, foreign_socket, foreign_link, foreign_name, foreign_mode,
     pytest.param(foreign_owner, marks=AS_ROOT)],
)  # fmt: skip
def test_what_is_no_plain_file_of_ours_is_removed_and_not_read(cache: DiskCache, make) -> None:
    path = cache.directory / ENTRY
    path.unlink()
    make(path)
    with Folder(cache.directory).opened() as here:
        assert here.read(ENTRY) is None  # at once: opening a pipe doesn't wait
    assert not os.path.lexists(path)
    outside = cache.directory.parent / "outside"
    assert not outside.exists() or outside.read_bytes() == b"outside"
    assert cache.put(KEY, b"again") and cache.get(KEY) == b"again"


def test_a_folder_in_the_place_of_an_entry_is_a_miss(cache: DiskCache) -> None:
    (cache.directory / ENTRY).unlink()
    (cache.directory / ENTRY).mkdir()
    assert cache.get(KEY) is None
    with pytest.warns(CacheWarning):
        assert not cache.put(KEY, b"x")
    assert [path.name for path in cache.directory.iterdir()] == [ENTRY]


def test_a_file_in_the_place_of_the_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    assert "is not a folder" in why_not(DiskCache(tmp_path / "cache"))
    assert "Not a directory" in why_not(DiskCache(tmp_path / "cache" / "below"))


def test_a_home_that_cannot_be_written_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "mkdir", refuse)
    assert "Read-only file system" in why_not(DiskCache(tmp_path / "home" / "cache"))


def test_entries_of_a_folder_that_cannot_be_written_are_read(
    cache: DiskCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.utime(cache.directory / ENTRY, (1, 1))

    def refuse(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "utime", refuse)
    assert cache.get(KEY) == b"mine"


@pytest.mark.parametrize("name", ["1-0123456789abcdef.tmp", "tmpab_cd12e.tmp"])
def test_temporary_files_of_the_dead_are_removed(cache: DiskCache, name: str) -> None:
    path = cache.directory / name
    for old, left in ((False, True), (True, False)):
        path.write_bytes(b"")
        if old:
            os.utime(path, (1, 1))
        assert cache.contents().entries == 1 and path.exists() == left


def test_files_of_others_stay_however_old(cache: DiskCache) -> None:
    path = cache.directory / "notes.tmp"
    path.write_bytes(b"")
    os.utime(path, (1, 1))
    assert cache.contents().entries == 1 and path.exists()


def test_how_old_is_old(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is being written counts for an hour, a use for a minute."""
    now = 2e9
    monkeypatch.setattr(folder.time, "time", lambda: now)
    path = cache.directory / "1-0123456789abcdef.tmp"
    path.write_bytes(b"")
    os.utime(path, (now - folder.STALE_SECONDS,) * 2)
    os.utime(cache.directory / ENTRY, (now - folder.USED_SECONDS,) * 2)
    assert cache.contents().entries == 1 and cache.get(KEY) == b"mine"
    assert path.exists()
    assert (cache.directory / ENTRY).stat().st_mtime == now - folder.USED_SECONDS


def test_a_file_is_read_up_to_a_size(cache: DiskCache) -> None:
    size = (cache.directory / ENTRY).stat().st_size
    with Folder(cache.directory).opened() as here:
        assert len(here.read(ENTRY, most=size) or b"") == size
        assert here.read(ENTRY, most=size - 1) is None
        assert not here.remove(ENTRY), "what is too large is gone"


@pytest.mark.parametrize("mode, counts", [(0o711, True), (0o755, True), (0o620, False)])
def test_a_file_that_others_can_read_counts(cache: DiskCache, mode: int, counts: bool) -> None:
    (cache.directory / ENTRY).chmod(mode)
    assert (cache.get(KEY) is not None) is counts


def test_a_system_without_descriptors_of_folders_has_no_cache(
    cache: DiskCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("supports_dir_fd", frozenset()), ("O_NOFOLLOW", None)):
        with monkeypatch.context() as patch:
            patch.setattr(folder, "_told", set())
            if value is None:
                patch.delattr(os, name)
            else:
                patch.setattr(os, name, value)
            assert "can't open files relative" in why_not(cache)


def test_a_file_system_that_keeps_its_mode_is_told(
    cache: DiskCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.directory.chmod(0o755)
    monkeypatch.setattr(os, "fchmod", lambda *_: None)
    assert "the file system keeps its mode" in why_not(cache)


def test_a_change_of_the_working_directory_does_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cache = DiskCache("cache")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert cache.put(KEY, b"x") and (tmp_path / "cache" / ENTRY).is_file()


def test_nothing_stays_open(cache: DiskCache) -> None:
    before = os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []
    for _ in range(5):
        cache.get(KEY), cache.put(KEY, b"x"), cache.contents()
    with pytest.raises(Unusable), Folder(cache.directory / ENTRY).opened():
        pass
    after = os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []
    assert len(before) == len(after)
