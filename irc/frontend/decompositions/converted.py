"""Which ATen operators have a converter to the graph dialect, without reading the converters.

The boundary `convert-aten-to-graph` knows them once its files are read: a fifth of a second that a
program taken from the cache has no other use for. So the names of irc's own are kept in the cache,
under irc's files and torch's version; what a user registers is asked of the boundary itself.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from irc.cache.keys import irc_key, key_of
from irc.cache.store import shared_cache
from irc.dialects.aten import qualified_name
from irc.dialects.aten.schema import find_overload, load_own_operators
from irc.ir import registry

if TYPE_CHECKING:
    from irc.ir.rewrite.conversion import Conversion

BOUNDARY = "convert-aten-to-graph"


def converted() -> frozenset[Any]:
    """The packets of all operators with a converter, the user's among them."""
    boundary = registry.boundary(BOUNDARY)
    if boundary is None or not boundary.is_read:
        own = _own()
        if own is not None:
            return own if boundary is None else own | _of(boundary, boundary.revision)
        from irc.ir.rewrite.conversion import conversion

        boundary = conversion(BOUNDARY)
        _keep(boundary.table)  # which reads the files of all
    return _of(boundary, boundary.revision)


@functools.lru_cache(maxsize=1)
def _of(boundary: Conversion, revision: int) -> frozenset[Any]:
    """The packets that a boundary has converters for by now, which `revision` counts."""
    return packets_of(key for key in boundary.registered if isinstance(key, str))


def packets_of(names: Iterable[str]) -> frozenset[Any]:
    """The packets of the operators that operations' names stand for, if torch has them."""
    overloads = (find_overload(qualified_name(name)) for name in names)
    return frozenset(overload.overloadpacket for overload in overloads if overload is not None)


# -- what is kept


def _key() -> str:
    return key_of("converted operators", irc_key(), torch.__version__)


_NAMES = re.compile(r"(?:[A-Za-z_]\w*+\.[A-Za-z_]\w*+\n)*+")


@functools.cache
def _named(names: str) -> frozenset[Any] | None:
    """The packets of names as "aten.add", a line each; None if one of them is no operator's."""
    if not _NAMES.fullmatch(names):
        return None
    spaces: dict[str, Any] = {}
    packets = set()
    for name in names.splitlines():
        namespace, _, operator = name.partition(".")
        space = spaces.get(namespace)
        if space is None:
            load_own_operators(namespace)
            space = spaces[namespace] = getattr(torch.ops, namespace)
        packets.add(getattr(space, operator, None))
    known = set(map(type, packets)) <= {torch._ops.OpOverloadPacket}
    return frozenset(packets) if known else None


def _own() -> frozenset[Any] | None:
    """The packets of irc's own converters as the cache has them; None where it has nothing that
    could be such a list."""
    cache = shared_cache()
    kept = None if cache.unusable is not None else cache.get_json(_key())
    if not isinstance(kept, list):
        return None
    try:
        return _named("\n".join([*kept, ""]))
    except TypeError:  # not all of them are texts
        return None


def _keep(table: Mapping[Any, Sequence[Any]]) -> None:
    from irc.ir.passes.failures import is_ours

    cache = shared_cache()
    if cache.unusable is not None:
        return
    own = [
        key for key, converters in table.items()
        if isinstance(key, str) and any(is_ours(c.function.__module__) for c in converters)
    ]  # fmt: skip
    names = {str(packet) for packet in packets_of(own)}  # "aten.add"
    cache.put_json(_key(), sorted(names))


__all__ = ["converted", "packets_of"]
