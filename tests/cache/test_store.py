"""The cache on disk: whole entries or misses, whatever other processes do."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import warnings

import pytest

from irc.cache import folder
from irc.cache.keys import key_of
from irc.cache.store import DiskCache, default_directory

KEY = key_of("some program")


@pytest.fixture
def cache(tmp_path):
    return DiskCache(tmp_path / "cache")


def test_stores_and_finds_bytes_and_json(cache):
    assert cache.get(KEY) is None
    assert cache.put(KEY, b"\x00\xffcode") and cache.get(KEY) == b"\x00\xffcode"
    assert cache.put_json(key_of("j"), {"b": [1, None]})
    assert cache.get_json(key_of("j")) == {"b": [1, None]}


def test_key_separates_its_parts():
    assert key_of("ab", "c") != key_of("a", "bc") != key_of("abc")


@pytest.mark.parametrize(
    "damage",
    [
        lambda b: b[:-1],
        lambda b: b[:20],
        lambda b: b"",
        lambda b: b + b"x",
        lambda b: b[:-1] + bytes([b[-1] ^ 1]),
        lambda b: b"not ours\n" + b,
        lambda b: b"[" * 5000,
        lambda b: b.replace(b'"format": 1', b'"format": 2'),
    ],
)
def test_damaged_entry_is_a_miss_and_goes_away(cache, damage):
    cache.put(KEY, b"payload")
    path = next(cache.directory.glob("*.entry"))
    path.write_bytes(damage(path.read_bytes()))
    assert cache.get(KEY) is None and not path.exists()


@pytest.mark.parametrize("field", ["magic", "format", "key", "length", "sha256"])
@pytest.mark.parametrize("value", [8, None])
def test_each_field_of_the_header_counts(cache, field, value):
    cache.put(KEY, b"payload")
    path = next(cache.directory.glob("*.entry"))
    header, _, payload = path.read_bytes().partition(b"\n")
    record = {**json.loads(header), field: value}
    path.write_bytes(json.dumps(record).encode() + b"\n" + payload)
    assert cache.get(KEY) is None and not path.exists()


@pytest.mark.parametrize("header", [b"[]", b"7", b'"irc-cache"', b"null"])
def test_a_header_of_another_kind_is_a_miss(cache, header):
    cache.put(KEY, b"payload")
    next(cache.directory.glob("*.entry")).write_bytes(header + b"\npayload")
    assert cache.get(KEY) is None


def test_entry_under_another_key_is_a_miss(cache):
    cache.put(KEY, b"payload")
    other = key_of("other")
    next(cache.directory.glob("*.entry")).rename(cache.directory / f"{other}.entry")
    assert cache.get(other) is None


def test_json_that_is_not_there_is_a_miss(cache):
    assert cache.get_json(KEY) is None


def test_json_that_is_not_json_is_a_miss(cache):
    cache.put(KEY, b"\x80\x04payload")
    assert cache.get_json(KEY) is None


@pytest.mark.parametrize("key", ["../x", "", "a/b", "ABC", "abc.", "g"])
def test_key_that_could_leave_the_folder_is_refused(cache, key):
    for use in (cache.get, lambda key: cache.put(key, b"")):
        with pytest.raises(ValueError, match="hexadecimal"):
            use(key)


def test_environment_chooses_and_disables(tmp_path, monkeypatch):
    monkeypatch.setenv("IRC_CACHE_DIR", str(tmp_path / "there"))
    assert default_directory() == tmp_path / "there"
    monkeypatch.setenv("IRC_DISABLE_CACHE", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # who switched it off needs no warning
        assert DiskCache().unusable == "IRC_DISABLE_CACHE is set"
        assert not DiskCache().put(KEY, b"x") and DiskCache().get(KEY) is None
    assert not (tmp_path / "there").exists()
    monkeypatch.setenv("IRC_DISABLE_CACHE", "0")
    assert DiskCache().put(KEY, b"x") and DiskCache().get(KEY) == b"x"
    monkeypatch.setenv("IRC_DISABLE_CACHE", "1")
    assert DiskCache().get(KEY) is None, "what is there isn't used"


WRITER = textwrap.dedent("""
    import sys
    from irc.cache.keys import key_of
    from irc.cache.store import DiskCache
    cache = DiskCache(sys.argv[1])
    print("ready", flush=True)
    for round in range(int(sys.argv[2])):
        for name in range(4):
            body = bytes([round % 256]) * 200_000
            cache.put(key_of(str(name)), body)
            seen = cache.get(key_of(str(name)))
            assert seen is None or (len(seen) == 200_000 and len(set(seen)) == 1), len(seen)
""")


def _writer(folder, rounds):
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder), str(rounds)], stdout=subprocess.PIPE, text=True
    )


def test_concurrent_processes_never_see_a_mix(cache):
    writers = [_writer(cache.directory, 30) for _ in range(3)]
    assert [w.wait(60) for w in writers] == [0, 0, 0]
    for w in writers:
        w.stdout.close()
    assert len(cache.get(key_of("0"))) == 200_000


def test_killed_writers_leave_only_whole_entries(cache):
    for _ in range(3):
        writer = _writer(cache.directory, 100_000)
        assert writer.stdout.readline() == "ready\n"
        time.sleep(0.05)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        for name in range(4):
            seen = cache.get(key_of(str(name)))
            assert seen is None or len(seen) == 200_000


def test_header_says_what_the_file_is(cache):
    cache.put(KEY, b"abc")
    header = next(cache.directory.glob("*.entry")).read_bytes().split(b"\n")[0]
    assert json.loads(header)["length"] == 3


def test_a_full_disk_is_told_once_and_leaves_nothing(cache, monkeypatch):
    cache.put(KEY, b"before")

    def refuse(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(folder, "_told", set())
        patch.setattr(os, "replace", refuse)
        with pytest.warns(folder.CacheWarning, match="No space left"):
            assert not cache.put(KEY, b"after")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert not cache.put(KEY, b"after")
    assert cache.get(KEY) == b"before" and len(os.listdir(cache.directory)) == 1


def test_an_interrupted_write_leaves_nothing(cache, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(os, "replace", interrupt)
        cache.put(KEY, b"x")
    assert not os.listdir(cache.directory) and cache.put(KEY, b"x")


def test_a_child_of_a_fork_uses_the_cache_of_its_parent(cache):
    cache.put(KEY, b"parent")
    child = os.fork()
    if not child:
        good = cache.get(KEY) == b"parent" and cache.put(key_of("child"), b"child")
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0 and cache.get(key_of("child")) == b"child"


def test_a_folder_that_is_removed_is_made_again(cache):
    cache.put(KEY, b"x")
    shutil.rmtree(cache.directory)
    assert cache.get(KEY) is None
    assert cache.put(KEY, b"y") and cache.get(KEY) == b"y"


def test_clearing_removes_entries_and_makes_nothing(cache):
    assert cache.clear() == 0 and not cache.directory.exists()
    cache.put(KEY, b"x")
    (cache.directory / "mine").write_bytes(b"")
    assert cache.clear() == 1 and os.listdir(cache.directory) == ["mine"]


@pytest.mark.parametrize(
    "platform, base, folder",
    [("darwin", "/base", "Library/Caches/irc"), ("linux", "/base", "/base/irc"),
     ("linux", "relative", ".cache/irc"), ("linux", "", ".cache/irc")],
)  # fmt: skip
def test_each_platform_has_its_folder(platform, base, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.delenv("IRC_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", base)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_directory() == tmp_path / folder
