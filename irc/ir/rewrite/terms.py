"""What conditions of rules ask about values; dialects' terms by their names.

    from irc.ir.rewrite.terms import floating, graph

`irc.rules` shows them to users. Any dialect's name can be imported from here.
"""

from __future__ import annotations

from irc.ir.attributes import Type
from irc.ir.core import Value
from irc.ir.registry import load_dialect
from irc.ir.rewrite.rules import Dialect
from irc.ir.types import FloatType, IntegerType, i1


def element_type(value: Value) -> Type:
    """The type of a value's elements; of a scalar, its own."""
    type_: Type = getattr(value.type, "element", value.type)
    return type_


def floating(x: Value) -> bool:
    """Floating-point numbers."""
    return isinstance(element_type(x), FloatType)


def integral(x: Value) -> bool:
    """Integers, bool excluded."""
    element = element_type(x)
    return isinstance(element, IntegerType) and element is not i1


def signed(x: Value) -> bool:
    """Floating-point numbers and signed integers."""
    element = element_type(x)
    return isinstance(element, FloatType) or (
        isinstance(element, IntegerType) and element is not i1 and not element.unsigned
    )


def boolean(x: Value) -> bool:
    """Truth values (i1)."""
    return element_type(x) is i1


def exact(x: Value) -> bool:
    """Integers or truth values: nothing is NaN, and equal is the same."""
    return isinstance(element_type(x), IntegerType)


def __getattr__(name: str) -> Dialect:
    if not name.startswith("_") and load_dialect(name):
        return Dialect(name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}', nor is it a dialect")


__all__ = ["boolean", "element_type", "exact", "floating", "integral", "signed"]
