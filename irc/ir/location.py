"""Source locations: where an operation came from. Interned, compared by identity."""

from __future__ import annotations

from collections.abc import Iterable

from irc.ir.interned import Attribute

FUSED_LIMIT = 8


class Location(Attribute):
    """Base of the locations."""

    __slots__ = ()


class UnknownLocation(Location):
    """`loc(unknown)`."""

    __slots__ = ()


class FileLocation(Location):
    """`loc("model.py":12:4)`; line and column count from 1, column 0 means unknown."""

    __slots__ = ()
    fields = ("filename", "line", "column")
    filename: str
    line: int
    column: int


class NameLocation(Location):
    """`loc("name"(child))`: a name (a module path, a pass) given to another location."""

    __slots__ = ()
    fields = ("name", "child")
    name: str
    child: Location


class FusedLocation(Location):
    """`loc(fused<"pass">[a, b])`: made from several operations, without repeats.

    At most `FUSED_LIMIT` locations are kept, so that long chains of rewrites stay small.
    """

    __slots__ = ()
    fields = ("note", "children")
    note: str
    children: tuple[Location, ...]


UNKNOWN = UnknownLocation()


def fuse(locations: Iterable[Location], note: str = "") -> Location:
    """One location for an operation made from several; flattens, drops repeats and unknowns."""
    seen: dict[Location, None] = {}
    for location in locations:
        parts = location.children if isinstance(location, FusedLocation) else (location,)
        for part in parts:
            if part is not UNKNOWN:
                seen[part] = None
    children = tuple(seen)[:FUSED_LIMIT]
    if not children:
        return UNKNOWN
    if len(children) == 1:
        return children[0]
    return FusedLocation(note, children)


def file_positions(location: Location) -> list[FileLocation]:
    """The file positions inside `location`, outermost first."""
    if isinstance(location, FileLocation):
        return [location]
    if isinstance(location, NameLocation):
        return file_positions(location.child)
    if isinstance(location, FusedLocation):
        return [p for child in location.children for p in file_positions(child)]
    return []
