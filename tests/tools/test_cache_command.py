"""`irc cache`: what it shows, empties and limits."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from irc.cache import folder
from irc.cache.keys import key_of
from irc.cache.store import DiskCache, shared_cache
from irc.target import Target
from irc.tools.cli import main

pytestmark = pytest.mark.fault("K5")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DiskCache:
    for name in ("IRC_CACHE_LIMIT", "IRC_DISABLE_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("IRC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(folder, "_told", set())
    return shared_cache()


def told(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert main(["cache", *words]) == code
    captured = capsys.readouterr()
    return captured.err if code else captured.out


def test_it_shows_what_there_is(cache: DiskCache, capsys: pytest.CaptureFixture[str]) -> None:
    assert "entries: 0, 0B" in told(capsys, "show")
    cache.put(key_of("a"), bytes(20_000))
    text = told(capsys, "show")
    assert f"folder: {cache.directory} (in use)" in text
    assert "entries: 1, 19KB, at most 1GB" in text
    assert f"machine: {Target.host()}" in text


def test_it_empties(cache: DiskCache, capsys: pytest.CaptureFixture[str]) -> None:
    assert "removed 0 entries" in told(capsys, "clear")
    for name in "ab":
        cache.put(key_of(name), b"x")
    assert "removed 2 entries" in told(capsys, "clear")
    assert not os.listdir(cache.directory)


def test_it_limits_now_and_later(cache: DiskCache, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(10):
        cache.put(key_of(f"{number}"), bytes(10_000))
    told(capsys, "limit", "50K")
    assert cache.contents().size <= 50 << 10 and cache.contents().limit == 50 << 10
    assert "at most 50KB" in told(capsys, "show")
    assert "no limit" in (told(capsys, "limit", "none"), told(capsys, "show"))[1]
    assert "K, M, G or T" in told(capsys, "limit", "lots", code=1)


@pytest.mark.filterwarnings("ignore::irc.cache.folder.CacheWarning")
def test_it_tells_why_the_cache_is_off(
    cache: DiskCache, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.put(key_of("a"), b"x")
    (cache.directory / "mine").touch()
    cache.directory.chmod(0o755)
    for words in (("show",), ("clear",), ("limit", "1M")):
        error = told(capsys, *words, code=1)
        assert "the cache can't be used" in error and "must be 0700" in error
    (cache.directory / "mine").unlink()
    monkeypatch.setenv("IRC_DISABLE_CACHE", "1")
    assert "(IRC_DISABLE_CACHE is set)" in told(capsys, "show")
