"""What a rewrite rule is written with: `rule`, the dialects' terms, and conditions on values.

    from irc.rules import floating, graph, rule

    @rule(where=floating)
    def double_negation(x):
        return graph.neg(graph.neg(x)), x

Any dialect's name can be imported from here; `irc.ir.rules` says what a rule means.
"""

from __future__ import annotations

from irc.ir.attributes import Type
from irc.ir.core import Value
from irc.ir.registry import load_dialect
from irc.ir.rules import Dialect, Rule, all_rules, rule
from irc.ir.types import FloatType, IntegerType, i1


def element_type(value: Value) -> Type:
    """The type of a value's elements; of a scalar, its own."""
    kind: Type = getattr(value.type, "element", value.type)
    return kind


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
    raise AttributeError(f"module 'irc.rules' has no attribute '{name}', nor is it a dialect")


__all__ = [
    "Rule", "all_rules", "boolean", "element_type", "exact", "floating", "integral", "rule",
    "signed",
]  # fmt: skip
