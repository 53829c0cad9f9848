"""Which symbols an attribute or type mentions, at any depth; computed once for each."""

from __future__ import annotations

import re
from typing import Any

from irc.ir.attributes import Attribute
from irc.ir.symbols import Expr

# The symbols `_0`, `_1`, ... of an index expression stand for operands.
PLACEHOLDER = re.compile(r"_(\d+)\Z")
_NONE: frozenset[str] = frozenset()
# Attributes are interned and live as long as the process, and so does what is known of them.
known_mentions: dict[Attribute, frozenset[str]] = {}


def mentioned_symbols(attr: Attribute) -> frozenset[str]:
    """The names of the symbols in `attr`."""
    found = known_mentions.get(attr)
    if found is None:
        found = known_mentions[attr] = _collect(attr.parameters)
    return found


def _collect(parameter: Any) -> frozenset[str]:
    if isinstance(parameter, Expr):
        return parameter.symbols
    if isinstance(parameter, Attribute):
        return mentioned_symbols(parameter)
    if isinstance(parameter, tuple | list):
        found: frozenset[str] = _NONE
        for part in parameter:
            inner = _collect(part)
            if inner:
                found = found | inner
        return found
    return _NONE
