"""Substituting symbols in types and attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from irc.ir.attributes import Attribute
from irc.ir.core import Operation
from irc.ir.symbols import Dim, Expr, substitute


def substitute_in(content: Any, mapping: Mapping[str, Dim]) -> Any:
    """`content` (an attribute, type, dim, or a tuple of them) with symbols replaced."""
    if isinstance(content, Expr):
        return substitute(content, mapping)
    if isinstance(content, tuple):
        return tuple(substitute_in(c, mapping) for c in content)
    if isinstance(content, Attribute):
        if not content.parameters:
            return content
        new = tuple(substitute_in(p, mapping) for p in content.parameters)
        return content if new == content.parameters else type(content)(*new)
    return content


def rename_symbols(op: Operation, mapping: Mapping[str, Dim]) -> None:
    """Replace symbols in the types and attributes of `op` and of everything inside it."""
    for inner in op.walk():
        for name, attr in inner.attributes.items():
            inner.attributes[name] = substitute_in(attr, mapping)
        for result in inner.results:
            result.type = substitute_in(result.type, mapping)
        for region in inner.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    argument.type = substitute_in(argument.type, mapping)


