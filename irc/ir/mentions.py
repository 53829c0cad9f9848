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
    symbols = known_mentions.get(attr)
    if symbols is None:
        symbols = known_mentions[attr] = _collect(attr.parameters)
    return symbols


def _collect(parameter: Any) -> frozenset[str]:
    if isinstance(parameter, Expr):
        return parameter.symbols
    if isinstance(parameter, Attribute):
        return mentioned_symbols(parameter)
    if isinstance(parameter, tuple | list):
        symbols: frozenset[str] = _NONE
        for part in parameter:
            inner = _collect(part)
            if inner:
                symbols = symbols | inner
        return symbols
    return _NONE
