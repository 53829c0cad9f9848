"""Keys: what decides a program is in them, and what doesn't is not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import irc
from irc.cache import keys

SOURCES = Path(irc.__file__).parent
TELL = "from irc.cache.keys import irc_key; print(irc_key())"


def key_in(path: Path, code: str = TELL) -> str:
    """What a process that imports irc from `path` prints."""
    environment = {**os.environ, "PYTHONPATH": str(path), "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=environment, cwd=path.parent,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return run.stdout.strip()


@pytest.fixture
def copies(tmp_path: Path) -> list[Path]:
    """Two copies of irc, all files with one time, as images and reproducible wheels have."""
    places = [tmp_path / name for name in "ab"]
    for place in places:
        shutil.copytree(SOURCES, place / "irc", ignore=shutil.ignore_patterns("__pycache__"))
        set_times(place)
    return places


def set_times(place: Path) -> None:
    for path in (place / "irc").rglob("*"):
        os.utime(path, (1, 1))


@pytest.mark.fault("K2")
def test_the_key_follows_the_content_of_irc(copies: list[Path]) -> None:
    first, second = copies
    assert key_in(first) == key_in(second)
    path = second / "irc" / "passes" / "kernel" / "cpu" / "partial_sums.py"
    text = path.read_text()
    path.write_text(text.replace("SUM_CHUNK = 128", "SUM_CHUNK = 256"))
    assert len(path.read_text()) == len(text) and path.read_text() != text
    set_times(second)
    assert key_in(first) != key_in(second)


@pytest.mark.fault("K2")
def test_an_irc_in_a_zip_file_has_a_key_too(copies: list[Path], tmp_path: Path) -> None:
    found = []
    for number in range(2):
        path = tmp_path / f"irc{number}.zip"
        with zipfile.ZipFile(path, "w", strict_timestamps=False) as archive:
            for file in sorted((copies[0] / "irc").rglob("*")):
                archive.write(file, file.relative_to(copies[0]))
            if number:
                archive.writestr("irc/more.py", "")
        found.append(key_in(path))
    assert len(set(found)) == 2 and all(len(key) == 64 for key in found)


@pytest.mark.fault("K2")
def test_sources_changed_under_a_process_share_nothing(copies: list[Path]) -> None:
    """A process that runs the old code must not store it under the new code's key."""
    code = (
        "import os, time, warnings\n"
        "import irc.cache.keys as keys\n"
        "path = os.path.join(os.path.dirname(keys.__file__), 'limits.py')\n"
        "os.utime(path, (time.time() + 5,) * 2)\n"
        "with warnings.catch_warnings(record=True) as told:\n"
        "    warnings.simplefilter('always')\n"
        "    first = keys.irc_key()\n"
        "keys.irc_key.cache_clear()\n"
        "assert keys.irc_key() != first and 'were changed' in str(told[0].message)\n"
        "print('other')\n"
    )
    assert key_in(copies[0], code) == "other"


def test_compiled_python_is_no_part_of_the_key(copies: list[Path]) -> None:
    before = keys.folder_content(str(copies[0]))
    assert len(before[1]) > 2 * 300  # names and contents, of folders in folders too
    made = copies[0] / "irc" / "__pycache__"
    made.mkdir()
    (made / "pipeline.cpython-311.pyc").write_bytes(b"x")
    assert keys.folder_content(str(copies[0])) == before


def test_parts_are_told_apart() -> None:
    assert keys.key_of("ab", "c") != keys.key_of("a", "bc") != keys.key_of("abc")
    assert keys.key_of("ab", b"c") == keys.key_of(b"ab", "c")


TEXT = """
func.func @{name}(%x: tensor<[s0] x f32>) -> tensor<[s0] x f32> {{
  %s0 = sym.bind_size %x {{dim = 0 : i64, symbol = "s0", minimum = 2 : i64, hint = {hint} : i64}}
    : (tensor<[s0] x f32>) -> index
  %c = graph.constant {{value = dense<{value}> : tensor<1xf32>}} : tensor<1xf32>
  func.return %x : tensor<[s0] x f32>
}}
"""


def test_hints_are_no_part_of_a_program_but_strings_and_elements_are() -> None:
    def text(name: str = "main", hint: int = 5, value: str = "0.0") -> str:
        return keys.canonical_text(irc.parse(TEXT.format(name=name, hint=hint, value=value)))

    assert text(hint=6) == text()
    assert len({text(), text(name="other"), text(value="1.0"), text(value="-0.0")}) == 4


def test_names_and_contents_count_of_folders_and_of_zip_files(tmp_path: Path) -> None:
    def of_both(name: str, content: str, compiled: str) -> tuple[list[bytes], list[bytes]]:
        root = tmp_path / f"{name}{len(content)}{compiled}"
        for path, text in ((f"a/{name}", content), ("a/__pycache__/x.pyc", compiled), ("b", "")):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        return keys.folder_content(str(root))[1], list(keys.packed_content(root))

    first = of_both("name", "x", "old")
    assert first[0] == [b"b", b"", b"a/name", b"x"]
    assert first[1] == [b"a", b"__pycache__", b"name", b"x", b"b", b""]
    assert of_both("name", "x", "new") == first
    for other in (of_both("other", "x", "old"), of_both("name", "xy", "old")):
        assert other[0] != first[0] and other[1] != first[1]


def test_files_as_new_as_the_process_are_what_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def key(written: float) -> str:
        monkeypatch.setattr(keys, "folder_content", lambda root: (written, [b"content"]))
        return keys.irc_key.__wrapped__()

    expected = keys.key_of(irc.__version__, keys.hash_of([b"content"]))
    assert key(keys._LOADED - 1) == key(keys._LOADED) == expected
    monkeypatch.setattr(keys, "tell_once", lambda reason: None)
    assert len({key(keys._LOADED + 1), key(keys._LOADED + 1), expected}) == 3


def test_files_that_lie_in_no_folder_are_those_of_a_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(keys, "packed_content", lambda files: [b"packed"])
    monkeypatch.setattr(keys, "folder_content", lambda root: (0.0, [b"folder"]))
    found = []
    for is_folder in (True, False):
        monkeypatch.setattr(keys.os.path, "isdir", lambda path, answer=is_folder: answer)
        found.append(keys.irc_key.__wrapped__())
    contents = (keys.hash_of([part]) for part in (b"folder", b"packed"))
    assert found == [keys.key_of(irc.__version__, content) for content in contents]
