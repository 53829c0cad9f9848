"""What measuring found, kept by the problem's key: in irc's cache, and on a Redis server.

    stores = stores_of(options)
    stores.get(key, candidates)             # (the winner's number, where from), or None
    stores.put(key, record)

A record is JSON that people can read: the problem's name, the winner, and each candidate's time. It
is never code, and what is read from a store can only point at one of the candidates that this
process proposed by itself: anything else is a miss.

A store that fails is a miss, told once; a server that doesn't answer is left alone for a while.
"""

from __future__ import annotations

import json
import math
import os
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import attrs

from irc.cache.folder import CacheWarning
from irc.cache.keys import irc_key, key_of, versions_key
from irc.cache.locks import locked
from irc.cache.store import DiskCache, shared_cache
from irc.ir.version import __version__
from irc.options.options import Options
from irc.runtime import metrics
from irc.tuning.candidate import Candidate, digest_text
from irc.tuning.problem import Problem

FORMAT = 1
MOST_BYTES = 1 << 16
"""A record has some hundred bytes a candidate; what is larger is none."""
SERVER_SECONDS = 0.5
"""How long a server may take to be reached, and for an answer."""
AWAY_SECONDS = 60.0
"""How long a server that failed is not asked."""
DEFAULT_SERVER = "redis://localhost:6379/0"


class TuningStore(Protocol):
    """Texts by key. Neither method raises for what the store does."""

    name: str

    def get(self, key: str) -> bytes | None:
        """The text under a key; None for none."""

    def put(self, key: str, value: bytes) -> bool:
        """Keep a text; whether it is kept."""


@attrs.define(eq=False)
class LocalStore:
    """irc's cache on disk."""

    cache: DiskCache = attrs.field(factory=shared_cache)
    name: str = "local"

    def get(self, key: str) -> bytes | None:
        """The text under a key; None for none."""
        return self.cache.get(key)

    def put(self, key: str, value: bytes) -> bool:
        """Keep a text; whether it is kept."""
        return self.cache.put(key, value)


class RedisStore:
    """A Redis server by its URL. One object may be used by several threads."""

    name = "remote"

    def __init__(self, url: str) -> None:
        self._url = url
        self._client: Any = None
        self._away_until = 0.0
        self._lock = threading.Lock()

    def get(self, key: str) -> bytes | None:
        """The text under a key; None for none, and where the server fails."""
        # No more is taken from a server than a record has.
        value = self._asked(lambda client: client.getrange(_remote_key(key), 0, MOST_BYTES))
        return value if isinstance(value, bytes) and value else None

    def put(self, key: str, value: bytes) -> bool:
        """Keep a text; False where the server fails."""
        return bool(self._asked(lambda client: client.set(_remote_key(key), value)))

    def _asked(self, ask: Any) -> Any:
        if time.monotonic() < self._away_until:
            return None
        try:
            import redis
        except ImportError:
            _tell_once("autotune_remote_cache needs the package redis: pip install redis")
            return None
        try:
            with self._lock:
                if self._client is None:
                    self._client = redis.Redis.from_url(
                        self._url, socket_connect_timeout=SERVER_SECONDS,
                        socket_timeout=SERVER_SECONDS, retry=None, protocol=2,
                    )  # fmt: skip
            return ask(self._client)
        except Exception as error:  # what the package raises depends on what the server answers
            self._away_until = time.monotonic() + AWAY_SECONDS
            # The URL may have a password in it.
            _tell_once(f"the remote cache doesn't answer ({type(error).__name__}); "
                       "what is measured is kept here alone")  # fmt: skip
            return None


_told: set[str] = set()


def _tell_once(reason: str) -> None:
    """Warn, once in a process for each reason."""
    if reason not in _told:
        _told.add(reason)
        warnings.warn(f"irc: {reason}", CacheWarning, stacklevel=2)


def _remote_key(key: str) -> str:
    return f"irc:tuning:{FORMAT}:{key}"


def problem_key(problem: Problem, candidates: Sequence[Candidate], device: str, tag: str) -> str:
    """What decides which candidate is the fastest: the problem without names and locations, its
    target, the device's name, the candidates, irc and what it generates code with, and the user's
    tag."""
    return key_of(
        "tuning", str(FORMAT), problem.canonical(), digest_text(candidates), device, tag,
        irc_key(), versions_key(),
    )  # fmt: skip


@attrs.frozen(eq=False)
class Stores:
    """Where to look, in order, and where to keep. read_only: nothing is kept anywhere."""

    stores: tuple[TuningStore, ...] = ()
    read_only: bool = False

    def get(self, key: str, candidates: Sequence[Candidate]) -> tuple[int, str] | None:
        """The number of the winner, and which store has it. What one has and those before it
        haven't is kept there, too."""
        for position, store in enumerate(self.stores):
            text = store.get(key)
            winner = None if text is None else winner_of(text, key, candidates)
            if text is None or winner is None:
                continue
            metrics.add(f"autotune_{store.name}_hits")
            self._keep(self.stores[:position], key, text)
            return winner, store.name
        return None

    def put(self, key: str, record: dict[str, Any]) -> None:
        """Keep a record in each store."""
        self._keep(self.stores, key, json.dumps(record, indent=1, sort_keys=True).encode())

    def _keep(self, stores: Sequence[TuningStore], key: str, text: bytes) -> None:
        for store in () if self.read_only else stores:
            if store.put(key, text):
                metrics.add(f"autotune_{store.name}_puts")

    @contextmanager
    def alone(self, key: str, seconds: float) -> Iterator[None]:
        """Inside, no other process of this machine that keeps something measures the same, unless
        it took longer than `seconds`."""
        cache = shared_cache()
        if self.read_only or not self.stores or cache.unusable is not None:
            yield
            return
        with locked(cache.directory, key, seconds):
            yield


_servers: dict[str, RedisStore] = {}


def stores_of(options: Options) -> Stores:
    """The stores that a compile's options name."""
    stores: list[TuningStore] = []
    if options.autotune_local_cache:
        stores.append(LocalStore())
    if options.autotune_remote_cache and options.autotune_store != "offline":
        url = options.autotune_remote_url or os.environ.get("IRC_REDIS_URL") or DEFAULT_SERVER
        stores.append(_servers.setdefault(url, RedisStore(url)))
    return Stores(tuple(stores), options.autotune_store == "readonly")


def record_of(
    key: str, problem: Problem, device: str, times: Sequence[tuple[Candidate, float]], winner: int
) -> dict[str, Any]:
    """What is kept of a measurement: times in microseconds, None for one that has none."""
    return {
        "format": FORMAT,
        "key": key,
        "irc": __version__,
        "problem": problem.what,
        "sizes": dict(problem.sizes),
        "device": device,
        "winner": times[winner][0].to_json(),
        "microseconds": [
            [candidate.label, None if math.isinf(seconds) else round(seconds * 1e6, 3)]
            for candidate, seconds in times
        ],
    }


def winner_of(text: bytes, key: str, candidates: Sequence[Candidate]) -> int | None:
    """The number of the candidate that a record names; None for what is no record of this key, or
    names another candidate. The text may be anybody's."""
    if len(text) > MOST_BYTES:
        return None
    try:
        record = json.loads(text)
        if not isinstance(record, dict) or record.get("format") != FORMAT:
            return None
        if record.get("key") != key:
            return None
        winner = Candidate.from_json(record.get("winner"))
    except (ValueError, RecursionError):
        return None
    return next((n for n, each in enumerate(candidates) if each == winner), None)


__all__ = ["LocalStore", "RedisStore", "Stores", "TuningStore", "problem_key", "record_of",
           "stores_of", "winner_of"]  # fmt: skip
