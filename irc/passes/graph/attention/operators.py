"""What operators of ATen are for attention: one table, which all that recognizes it asks."""

from __future__ import annotations

from enum import Enum, auto


class Role(Enum):
    """What an operator is. One that no row of the table names is `OTHER`."""

    OTHER = auto()
    PRODUCT = auto()
    SOFTMAX = auto()
    CAST = auto()
    """A copy, as which torch writes a change of the dtype."""
    REGROUP = auto()
    """A view of the elements in row-major order under other sizes."""
    MOVE = auto()
    """Another operator through which dimensions are followed."""
    COPY = auto()
    """One of those, which gives elements a memory of their own."""
    LIFT = auto()
    """A constant of the program as a value that may be written."""
    PART = auto()
    """Some of the elements."""
    ADD = auto()
    SUBTRACT = auto()
    SUBTRACT_FROM = auto()
    MULTIPLY = auto()
    DIVIDE = auto()
    CHOOSE = auto()
    """The elements of one operand where a condition holds, those of another elsewhere."""
    EQUAL = auto()
    LESS = auto()
    LESS_EQUAL = auto()
    GREATER = auto()
    GREATER_EQUAL = auto()
    AND = auto()
    OR = auto()
    NOT = auto()
    ALL = auto()
    FILL = auto()
    """A number in each element."""
    COUNT = auto()
    """Numbers counted up."""


_TABLE = {
    Role.PRODUCT: "bmm.default",
    Role.SOFTMAX: "_softmax.default",
    Role.CAST: "_to_copy.default",
    Role.REGROUP: "view.default _unsafe_view.default reshape.default",
    Role.MOVE: "permute.default transpose.int unsqueeze.default squeeze.dim squeeze.dims "
    "squeeze.default expand.default alias.default detach.default contiguous.default",
    Role.COPY: "clone.default",
    Role.LIFT: "lift_fresh_copy.default",
    Role.PART: "slice.Tensor select.int",
    Role.ADD: "add.Tensor",
    Role.SUBTRACT: "sub.Tensor",
    Role.SUBTRACT_FROM: "rsub.Scalar",
    Role.MULTIPLY: "mul.Tensor mul.Scalar",
    Role.DIVIDE: "div.Tensor div.Scalar",
    Role.CHOOSE: "where.self where.ScalarOther where.ScalarSelf masked_fill.Scalar "
    "masked_fill.Tensor",
    Role.EQUAL: "eq.Scalar",
    Role.LESS: "lt.Scalar lt.Tensor",
    Role.LESS_EQUAL: "le.Scalar le.Tensor",
    Role.GREATER: "gt.Scalar gt.Tensor",
    Role.GREATER_EQUAL: "ge.Scalar ge.Tensor",
    Role.AND: "bitwise_and.Tensor logical_and.default __and__.Tensor",
    Role.OR: "bitwise_or.Tensor logical_or.default __or__.Tensor",
    Role.NOT: "bitwise_not.default logical_not.default",
    Role.ALL: "all.dim all.default",
    Role.FILL: "full.default full_like.default new_full.default fill.Scalar scalar_tensor.default "
    "zeros_like.default zeros.default",
    Role.COUNT: "arange.default arange.start arange.start_step",
}
ROLES = {name: role for role, names in _TABLE.items() for name in names.split()}
#: Views, and what gives an operand's elements under other dimensions.
MOVING = frozenset({Role.REGROUP, Role.MOVE, Role.COPY})
SCALING = frozenset({Role.MULTIPLY, Role.DIVIDE})
#: How operators call the condition and both choices, and the number that they fill with.
CHOICES = ("condition", "self", "other"), ("mask", "value", "self")
FILLINGS = ("fill_value", "value", "s")

__all__ = ["CHOICES", "FILLINGS", "MOVING", "ROLES", "SCALING", "Role"]
