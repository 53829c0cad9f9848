"""What recognizing attention asks of a program, and how it adds operators to one.

There are two programs of ATen's operators: functions of irc's aten level (`function`), and torch's
graphs, in which a forward may stand with its backward (`irc.frontend.fx.fused_attention`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import attrs

from irc.passes.graph.attention.operators import CHOICES, ROLES, Role

#: A value of a program: an `irc.ir.core.Value` or an `fx.Node`.
Value = Any
#: A size: an integer, or what stands for one that only a call knows.
Size = Any


@attrs.frozen
class OperatorCall:
    """The operator that makes a value: "bmm.default" of aten, and its arguments by name, defaults
    filled in. Tensors are values, dtypes and the like words ("float32")."""

    name: str
    arguments: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    @property
    def role(self) -> Role:
        """What it is for attention."""
        return ROLES.get(self.name, Role.OTHER)

    @property
    def choice(self) -> tuple[Any, Any, Any]:
        """The condition of one that chooses, what it gives where that holds, and elsewhere."""
        condition, yes, no = next(names for names in CHOICES if names[0] in self.arguments)
        return self[condition], self[yes], self[no]


class Program(Protocol):
    """A program of aten operators whose values are never written."""

    def call(self, value: Value) -> OperatorCall | None:
        """The call that makes a value as its first result; None for an argument, or what is no
        operator of aten's."""

    def is_tensor(self, value: Any) -> bool:
        """Whether an argument of a call is a tensor of the program."""

    def shape(self, value: Value) -> Sequence[Size]:
        """The sizes of a tensor."""

    def dtype(self, value: Value) -> str:
        """The dtype of a tensor, as "float32"."""

    def last_stride(self, value: Value) -> Size:
        """The step between elements along the last dimension."""

    def uses(self, value: Value) -> int:
        """How many readers a value has."""

    def estimate(self, size: Size) -> int:
        """A size as a number, for costs."""

    def same(self, first: Size, second: Size) -> bool:
        """Whether two sizes are known to be equal."""

    def is_positive(self, size: Size) -> bool:
        """Whether a size is known not to be 0."""

    def constant(self, value: Value) -> Any:
        """The torch tensor that a value is, if that stands in the program."""

    def number(self, value: Value) -> float | None:
        """The number that a value of one element is, if that stands in the program."""

    def emit(self, name: str, *arguments: Any, **keywords: Any) -> Value:
        """A new call of an operator of aten's; its (first) result."""


class NotAttention(Exception):
    """Why what looks like attention can't be, or isn't, computed by a fused operator.

    told: a user would ask.
    """

    def __init__(self, reason: str, told: bool = True) -> None:
        super().__init__(reason)
        self.reason = reason
        self.told = told


def is_one(size: Size) -> bool:
    """Whether a size is the number 1."""
    return isinstance(size, int) and size == 1


__all__ = ["OperatorCall", "NotAttention", "Program", "Size", "Value", "is_one"]
