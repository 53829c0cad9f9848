"""Entries in torch's bundles: what one holds, and what loading it stores."""

from __future__ import annotations

from pathlib import Path

import pytest
from torch.compiler._cache import CacheArtifactFactory

from irc.cache import torch_artifacts
from irc.cache.keys import key_of
from irc.cache.store import DiskCache, shared_cache
from irc.cache.torch_artifacts import ProgramArtifact

KEY, OTHER = key_of("a program"), key_of("another")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DiskCache:
    monkeypatch.setenv("IRC_CACHE_DIR", str(tmp_path / "cache"))
    return shared_cache()


def test_an_artifact_holds_what_it_was_given_else_what_the_cache_has(cache: DiskCache) -> None:
    cache.put(KEY, b"kept")
    assert ProgramArtifact(KEY, b"given").content == b"given"
    assert ProgramArtifact(KEY, b"").content == b"kept"
    assert ProgramArtifact(OTHER, b"").content == b""


def test_artifacts_of_one_key_are_one() -> None:
    first = ProgramArtifact(KEY, b"x")
    assert first == ProgramArtifact(KEY, b"y") and len({first, ProgramArtifact(KEY, b"y")}) == 1
    assert first != ProgramArtifact(OTHER, b"x") and first != "x" and first != KEY


def test_loading_stores_what_there_is(cache: DiskCache) -> None:
    ProgramArtifact(KEY, b"given").populate_cache()
    assert cache.get(KEY) == b"given"
    ProgramArtifact(OTHER, b"").populate_cache()
    assert cache.contents().entries == 1


def test_the_kind_is_registered_once() -> None:
    for _ in range(2):
        torch_artifacts.register()
    assert CacheArtifactFactory._artifact_types["irc"] is ProgramArtifact
