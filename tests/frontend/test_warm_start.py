"""What a process reads of irc to run a program that the cache has: no pass, no level below aten."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from irc.target.cpu import TargetFeatures

ROOT = Path(__file__).parents[2]
PROGRAM = """
import json, sys, torch
import irc
x = torch.ones(3, 5)
with torch.no_grad():
    torch.compile(lambda x: (x * 2 + 1).softmax(-1), backend="irc", dynamic=False)(x)
own = [name for name in sys.modules if name.partition(".")[0] == "irc"]
print(json.dumps({"hits": irc.metrics.cache_hits, "modules": own}))
"""
#: The rooms that a program from the cache has no use for, and what is read of two others.
UNREAD = {"analysis", "interp", "passes", "tools", "validation"}
READ = {
    "dialects": {"aten", "func", "sym"},
    "codegen": {"host", "llvm"},
}
#: Of a room that is read in part, the files (packages not counted) that a warm start may read.
#: Each costs some 0.3 ms of every warm start: what a new one is for is worth saying.
MOST = {
    # torch's binary interface, its storages, calls of operators, what varies in one, and what is
    # made once
    "boundary": 5,
    "codegen": 8,  # with the texts that divide points among threads and keep large results
    "cache": 6, "dialects": 14, "frontend": 36,
    "ir": 38,  # with the table of which file registers which pass
    "options": 2, "pipeline": 1, "program": 4, "runtime": 12,
    # Three are figures of its record: of a processor, a CPU and libraries; where a processor has
    # registers of whole tiles, Linux is asked for leave.
    "target": 9 + ("amx-tile" in TargetFeatures.host().sets),
}  # fmt: skip


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What the second of two processes tells that compile one program."""
    folder = tmp_path_factory.mktemp("cache")
    folder.chmod(0o700)
    environment = {**os.environ, "IRC_CACHE_DIR": str(folder), "PYTHONPATH": str(ROOT)}
    environment.pop("IRC_DISABLE_CACHE", None)
    told = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, check=True, capture_output=True,
            text=True,
        ).stdout
        for _ in range(2)
    ]  # fmt: skip
    return json.loads(told[1].splitlines()[-1])


def rooms(modules: list[str]) -> dict[str, set[str]]:
    """The files by room, without the packages."""
    found: dict[str, set[str]] = {}
    packages = {name.rpartition(".")[0] for name in modules}
    for name in modules:
        parts = name.split(".")
        if len(parts) > 1 and name not in packages:
            found.setdefault(parts[1], set()).add(".".join(parts[2:]))
    return found


def test_the_program_is_the_cachs(warm):
    assert warm["hits"] == 1


def test_no_pass_and_no_level_below_aten_is_read(warm):
    found = rooms(warm["modules"])
    assert not UNREAD & found.keys()
    for room, parts in READ.items():
        assert {name.partition(".")[0] for name in found[room]} <= parts, room


def test_every_room_is_read_in_part_only(warm):
    counts = {room: len(files) for room, files in rooms(warm["modules"]).items()}
    counts.pop("version", None)
    more = {room: count for room, count in counts.items() if count > MOST.get(room, 0)}
    assert not more, f"read by a warm start: {more}, at most {MOST}"


def test_faces_have_what_their_packages_have():
    import irc.dialects
    from irc.ir.registry import DIALECT_MODULES

    for name, module in DIALECT_MODULES.items():
        if module.startswith("irc.dialects."):
            face = irc.dialects.Face(module)
            package = __import__(module, fromlist=["x"])
            assert face.__all__ is package.__all__ and "__all__" in vars(face), name
    with pytest.raises(AttributeError, match="nothing"):
        _ = irc.dialects.nothing
    with pytest.raises(AttributeError, match="nothing"):
        _ = irc.dialects.graph.nothing
    assert torch is not None
