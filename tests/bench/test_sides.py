"""What a side of a benchmark may be."""

from __future__ import annotations

import argparse

import pytest

from bench.common import ROOT, folder_of, side_name


@pytest.mark.parametrize("name", ["inductor", "irc", "irc@HEAD~1", "irc@/tmp"])
def test_backends_and_other_checkouts_of_irc_are_sides(name: str) -> None:
    assert side_name(name) == name


@pytest.mark.parametrize("name", ["", "irk", "irc@", "inductor@HEAD"])
def test_anything_else_is_refused(name: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="irc@REVISION"):
        side_name(name)


def test_a_commit_is_written_once_and_a_folder_is_itself(tmp_path) -> None:
    assert folder_of(str(tmp_path)) == tmp_path
    if (ROOT / ".git").exists():
        folder = folder_of("HEAD")
        assert (folder / "irc" / "__init__.py").exists()
        assert not (folder / "bench").exists()
        assert folder_of("HEAD") == folder
