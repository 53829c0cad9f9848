"""Programs in the bundles of `torch.compiler.save_cache_artifacts` and `load_cache_artifacts`.

A bundle has the entry of each program that was compiled or loaded in this process, under its key;
loading it puts them into the cache. An entry holds machine code: load bundles that you trust, as
torch asks for its own. Keys hold the versions and sources of what made the code, so that an entry
which another irc or another machine would not make is never found.
"""

from __future__ import annotations

from typing import Any

from torch.compiler._cache import CacheArtifact, CacheArtifactFactory, CacheArtifactManager

from irc.cache.store import shared_cache

KIND = "irc"


class ProgramArtifact(CacheArtifact):
    """An entry of the cache. What is not given is read from there when a bundle is made."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ProgramArtifact) and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def content(self) -> bytes:  # type: ignore[override]
        """The entry; empty if the cache has lost it."""
        return self.__dict__.get("entry") or shared_cache().get(self.key) or b""

    @content.setter
    def content(self, entry: bytes) -> None:
        self.__dict__["entry"] = entry

    @staticmethod
    def encode(content: Any) -> bytes:
        return bytes(content)

    def populate_cache(self) -> None:
        """Put the entry into the cache of this user."""
        if self.content:
            shared_cache().put(self.key, self.content)

    @staticmethod
    def type() -> str:
        return KIND


def register() -> None:
    """Let torch know of these entries (once)."""
    if KIND not in CacheArtifactFactory._artifact_types:
        CacheArtifactFactory.register(ProgramArtifact)


def record(key: str) -> None:
    """Note that this process uses the entry `key`."""
    register()
    CacheArtifactManager.record_artifact(KIND, key, b"")


__all__ = ["ProgramArtifact", "record", "register"]
