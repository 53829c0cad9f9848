"""The size of the cache: its limit, and that what was used longest ago goes."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from irc.cache import folder, limits, store
from irc.cache.folder import CacheWarning
from irc.cache.keys import key_of
from irc.cache.limits import DEFAULT_LIMIT, parse_size, size_text
from irc.cache.store import DiskCache
from irc.ir.diagnostics import UserError

KEYS = [key_of(str(number)) for number in range(12)]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DiskCache:
    monkeypatch.delenv("IRC_CACHE_LIMIT", raising=False)
    return DiskCache(tmp_path / "cache")


def used(cache: DiskCache, key: str, when: float) -> None:
    os.utime(cache.directory / f"{key}.entry", (when, when))


def held(cache: DiskCache) -> list[bool]:
    return [(cache.directory / f"{key}.entry").exists() for key in KEYS]


@pytest.mark.parametrize(
    "text, size",
    [("0", 0), ("1000", 1000), ("3K", 3072), ("2 MiB", 2 << 20), ("1g", 1 << 30), ("4TB", 4 << 40),
     ("none", None), (" None ", None)],
)  # fmt: skip
def test_sizes_are_read_and_told(text: str, size: int | None) -> None:
    assert parse_size(text) == size
    assert parse_size(size_text(size)) == size


@pytest.mark.parametrize(
    "size, text",
    [(0, "0"), (1023, "1023"), (1024, "1K"), (1025, "1025"), (5 << 10, "5K"), (10239, "10239"),
     (10240, "10K"), (10241, "10K"), (11 << 10, "11K"), (12_000, "11K"), (1 << 20, "1M"),
     ((1 << 20) + 1, "1024K"), ((10 << 30) - 1, "10239M"), ((10 << 30) + 1, "10G"),
     (9 << 40, "9T")],
)  # fmt: skip
def test_a_size_is_told_in_the_largest_unit_that_says_enough(size: int, text: str) -> None:
    assert size_text(size) == text


@pytest.mark.parametrize("text", ["", "-1", "1.5G", "many", "1Q", "1" * 40])
def test_no_size(text: str) -> None:
    with pytest.raises(UserError, match="K, M, G or T"):
        parse_size(text)


@pytest.mark.fault("K5")
def test_what_was_used_longest_ago_goes(
    cache: DiskCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IRC_CACHE_LIMIT", "100K")
    for number, key in enumerate(KEYS[:9]):
        cache.put(key, bytes(10_000))
        used(cache, key, 1000 + number)
    assert cache.get(KEYS[0]) is not None  # now it was used last
    for key in KEYS[9:]:
        cache.put(key, bytes(10_000))
    assert held(cache) == [True, False, False] + [True] * 9
    assert cache.contents().size <= 100 << 10


@pytest.mark.fault("K5")
def test_the_limit_holds_over_many_programs(
    cache: DiskCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IRC_CACHE_LIMIT", "1M")
    for number in range(300):
        assert cache.put(key_of(f"n{number}"), bytes(20_000))
        assert sum(f.stat().st_size for f in cache.directory.iterdir()) <= 1 << 20
    assert cache.get(key_of("n299")) is not None


@pytest.mark.fault("K5")
def test_other_processes_entries_count(
    cache: DiskCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process measures the folder at its first entry, and then every so often."""
    cache.set_limit(1 << 20)
    monkeypatch.setattr(store, "_MEASURED_EACH", 3)
    cache.put(KEYS[0], bytes(10))
    other = DiskCache(cache.directory)
    other._until_measured, other._size = 10**6, -(10**9)  # one that never looks
    for number in range(60):
        other.put(key_of(f"n{number}"), bytes(30_000))
    assert cache.contents().size > 1 << 20
    for key in KEYS[1:6]:
        cache.put(key, bytes(10))
    assert cache.contents().size <= 1 << 20


def test_an_entry_above_the_limit_is_not_kept(
    cache: DiskCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.put(KEYS[0], bytes(10))
    monkeypatch.setenv("IRC_CACHE_LIMIT", "1K")
    assert not cache.put(KEYS[1], bytes(5000)) and cache.get(KEYS[0]) == bytes(10)


def test_the_folder_keeps_its_limit_and_the_environment_is_stronger(
    cache: DiskCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cache.contents().limit is None or not cache.directory.exists()
    cache.put(KEYS[0], b"")
    assert cache.contents().limit == DEFAULT_LIMIT
    cache.set_limit(5 << 20)
    assert DiskCache(cache.directory).contents().limit == 5 << 20
    monkeypatch.setenv("IRC_CACHE_LIMIT", "7M")
    assert cache.contents().limit == 7 << 20
    monkeypatch.delenv("IRC_CACHE_LIMIT")
    cache.set_limit(None)
    assert cache.contents().limit is None
    (cache.directory / "limit").chmod(0o666)  # others could have written it
    assert cache.contents().limit == DEFAULT_LIMIT


def test_a_limit_that_is_none_is_told(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "_told", set())
    monkeypatch.setenv("IRC_CACHE_LIMIT", "lots")
    with pytest.warns(CacheWarning, match="lots.*the limit is 1G"):
        assert cache.put(KEYS[0], b"x")


def test_a_hit_counts_as_a_use_once_a_minute(cache: DiskCache) -> None:
    cache.put(KEYS[0], b"x")
    path = cache.directory / f"{KEYS[0]}.entry"
    used(cache, KEYS[0], 1000.0)
    cache.get(KEYS[0])
    assert path.stat().st_mtime > 1e9
    recent = path.stat().st_mtime - folder.USED_SECONDS / 2
    used(cache, KEYS[0], recent)
    cache.get(KEYS[0])
    assert path.stat().st_mtime == pytest.approx(recent)


def test_processes_evict_at_once(cache: DiskCache) -> None:
    code = (
        "import sys\n"
        "from irc.cache.keys import key_of\n"
        "from irc.cache.store import DiskCache\n"
        "cache = DiskCache(sys.argv[1])\n"
        "for n in range(150):\n"
        "    assert cache.put(key_of(sys.argv[2] + str(n)), bytes(10_000))\n"
    )
    cache.set_limit(1 << 19)
    run = [subprocess.Popen([sys.executable, "-W", "error", "-c", code, str(cache.directory), name])
           for name in "ab"]  # fmt: skip
    assert [process.wait(60) for process in run] == [0, 0]
    left = cache.contents()
    assert left.entries and left.size <= 2 * (1 << 19)


def test_evicting_stops_at_nine_tenths(cache: DiskCache) -> None:
    for number, key in enumerate(KEYS):
        cache.put(key, bytes(10_000))
        used(cache, key, 1000 + number)
    with folder.Folder(cache.directory).opened() as here:
        size = limits.evict(here, None)
        assert limits.evict(here, size) == size and all(held(cache))
        limits.evict(here, size - 1)
    assert held(cache) == [False] * 2 + [True] * 10


@pytest.mark.parametrize("each", [0, 64])
def test_without_a_limit_nothing_goes(
    cache: DiskCache, each: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IRC_CACHE_LIMIT", "none")
    monkeypatch.setattr(store, "_MEASURED_EACH", each)
    for key in KEYS:
        assert cache.put(key, bytes(10_000))
    assert all(held(cache)) and cache.contents().limit is None


def test_evicting_ends_when_a_tenth_is_free(cache: DiskCache) -> None:
    cache.put(KEYS[0], b"")
    cache.clear()
    with folder.Folder(cache.directory).opened() as here:
        for number, (name, size) in enumerate((("0a", 20), ("0b", 40), ("0c", 50))):
            here.write(f"{name}.entry", [bytes(size)])
            os.utime(cache.directory / f"{name}.entry", (1000 + number,) * 2)
        assert limits.evict(here, 100) == 90  # just nine tenths
    assert cache.contents().entries == 2


@pytest.mark.parametrize("written", [" ", "\n"])
def test_a_limit_of_no_word_is_the_usual_one(
    cache: DiskCache, written: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.put(KEYS[0], b"")
    (cache.directory / "limit").write_text(written)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cache.contents().limit == DEFAULT_LIMIT
        monkeypatch.setenv("IRC_CACHE_LIMIT", written)
        assert cache.contents().limit == DEFAULT_LIMIT


def test_an_entry_of_just_the_limit_is_kept(
    cache: DiskCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.put(KEYS[0], bytes(5000))
    size = cache.contents().size
    cache.clear()
    monkeypatch.setenv("IRC_CACHE_LIMIT", str(size - 1))
    assert not cache.put(KEYS[0], bytes(5000))
    monkeypatch.setenv("IRC_CACHE_LIMIT", str(size))
    assert cache.put(KEYS[0], bytes(5000)) and cache.get(KEYS[0]) == bytes(5000)


def test_the_folder_is_measured_where_it_may_be_full_and_every_so_often(
    cache: DiskCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[int] = []
    sizes = iter([100, 0, 0, 0, 0])
    monkeypatch.setattr(store, "evict", lambda here, limit: measured.append(1) or next(sizes))
    monkeypatch.setattr(store, "_MEASURED_EACH", 3)
    monkeypatch.setenv("IRC_CACHE_LIMIT", "10M")
    counts = []
    for key in KEYS[:9]:
        cache.put(key, b"")
        counts.append(len(measured))
    assert counts == [1, 1, 1, 1, 2, 2, 2, 2, 3]
    header = (cache.directory / f"{KEYS[0]}.entry").stat().st_size
    cache._size, cache._until_measured = 0, 9
    monkeypatch.setenv("IRC_CACHE_LIMIT", str(3 * header))
    for key, count in zip(KEYS[:4], (3, 3, 3, 4), strict=True):
        cache.put(key, b"")
        assert len(measured) == count
