"""Following the dimensions of a tensor through views.

A `Label` is a dimension of the tensor from which one starts, or one along which a view repeats it.
Each dimension of a view is a group of labels, row-major; one of size 1 is the empty group. So

    start(program, x)                      x: [2, 3, 5, 4]       (a) (b) (c) (d)
    through(program, groups, permute)         [2, 5, 3, 4]       (a) (c) (b) (d)
    through(program, groups, view)            [2, 5, 12]         (a) (c) (b d)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeGuard

import attrs

from irc.passes.graph.attention.operators import MOVING, Role
from irc.passes.graph.attention.program import OperatorCall, Program, Size, Value, is_one


@attrs.frozen(eq=False)
class Label:
    """A dimension: its size, and where it stands in the tensor from which one starts (None: there
    the elements are repeated)."""

    size: Size
    dim: int | None = None


Group = tuple[Label, ...]
Groups = tuple[Group, ...]


def start(program: Program, value: Value) -> Groups:
    """The dimensions of a tensor as they are."""
    shape = program.shape(value)
    return tuple(() if is_one(n) else (Label(n, d),) for d, n in enumerate(shape))


def moves(call: OperatorCall | None) -> TypeGuard[OperatorCall]:
    """Whether a call gives its operand's elements under other dimensions."""
    return call is not None and call.role in MOVING


def through(program: Program, groups: Groups, call: OperatorCall, result: Value) -> Groups | None:
    """The groups of the result of a call that `moves`; None where they can't be told."""
    shape = program.shape(result)
    if call.role is Role.REGROUP:
        return regroup(program, [label for group in groups for label in group], shape)
    move = _MOVES.get(call.name.partition(".")[0])
    return groups if move is None else move(call, groups, shape)


def _permuted(call: OperatorCall, groups: Groups, shape: Sequence[Size]) -> Groups:
    return tuple(groups[d % len(groups)] for d in call["dims"])


def _transposed(call: OperatorCall, groups: Groups, shape: Sequence[Size]) -> Groups:
    order = list(groups)
    first, second = call["dim0"] % len(groups), call["dim1"] % len(groups)
    order[first], order[second] = order[second], order[first]
    return tuple(order)


def _unsqueezed(call: OperatorCall, groups: Groups, shape: Sequence[Size]) -> Groups:
    place = call["dim"] % (len(groups) + 1)
    return (*groups[:place], (), *groups[place:])


def _squeezed(call: OperatorCall, groups: Groups, shape: Sequence[Size]) -> Groups:
    rank = len(groups)
    dim = call.arguments.get("dim", list(range(rank)))
    dims = {d % rank for d in (dim if isinstance(dim, list | tuple) else [dim])}
    return tuple(g for d, g in enumerate(groups) if g or d not in dims)


def _expanded(call: OperatorCall, groups: Groups, shape: Sequence[Size]) -> Groups:
    missing = len(shape) - len(groups)
    expanded: list[Group] = [() if is_one(n) else (Label(n),) for n in shape[:missing]]
    for group, size in zip(groups, shape[missing:], strict=True):
        expanded.append(group if group or is_one(size) else (Label(size),))
    return tuple(expanded)


#: What becomes of the groups; operators that are not here keep them.
_MOVES: dict[str, Callable[[OperatorCall, Groups, Sequence[Size]], Groups]] = {
    "permute": _permuted, "transpose": _transposed, "unsqueeze": _unsqueezed,
    "squeeze": _squeezed, "expand": _expanded,
}  # fmt: skip


def regroup(program: Program, labels: Sequence[Label], shape: Sequence[Size]) -> Groups | None:
    """Row-major labels as dimensions of these sizes; None where a size would cut a label."""
    regrouped: list[Group] = []
    rest = list(labels)
    for size in shape:
        taken: list[Label] = []
        if not is_one(size):
            product: Size = 1
            while not program.same(product, size):
                if not rest:
                    return None
                label = rest.pop(0)
                product = label.size if is_one(product) else product * label.size
                taken.append(label)
        regrouped.append(tuple(taken))
    return None if rest else tuple(regrouped)


__all__ = ["Group", "Groups", "Label", "moves", "regroup", "start", "through"]
