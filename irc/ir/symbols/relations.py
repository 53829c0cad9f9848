"""The relations between integers that `sym.assert` states: the one table of their names."""

from __future__ import annotations

import operator
from collections.abc import Callable

#: Each relation's sign, in Python, in C and in LLVM's signed comparisons.
SIGNS: dict[str, str] = {"eq": "==", "ne": "!=", "lt": "<", "le": "<="}

#: Whether each relation holds of two integers.
HOLDS: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
}

#: What holds where a relation does not, and whether its sides are swapped: not (a <= b) is b < a.
NEGATED: dict[str, tuple[str, bool]] = {
    "eq": ("ne", False),
    "ne": ("eq", False),
    "lt": ("le", True),
    "le": ("lt", True),
}
