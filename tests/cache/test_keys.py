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
    path = second / "irc" / "passes" / "kernel" / "form_kernels_nest.py"
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
