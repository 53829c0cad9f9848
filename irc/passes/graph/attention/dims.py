"""Following the dimensions of a tensor through views.

A `Label` is a dimension of the tensor from which one starts, or one along which a view repeats it.
Each dimension of a view is a group of labels, row-major; one of size 1 is the empty group. So

    start(program, x)                      x: [2, 3, 5, 4]       (a) (b) (c) (d)
    through(program, groups, permute)         [2, 5, 3, 4]       (a) (c) (b) (d)
    through(program, groups, view)            [2, 5, 12]         (a) (c) (b d)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

import attrs

from irc.passes.graph.attention.program import OperatorCall, Program, Size, Value, is_one

VIEWS = frozenset({"view.default", "_unsafe_view.default", "reshape.default"})
#: Other operators through which dimensions are followed.
MOVES = frozenset({
    "permute.default", "transpose.int", "unsqueeze.default", "squeeze.dim", "squeeze.dims",
    "squeeze.default", "expand.default", "clone.default", "alias.default", "detach.default",
    "contiguous.default",
})  # fmt: skip


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
    return call is not None and (call.name in VIEWS or call.name in MOVES)


def through(program: Program, groups: Groups, call: OperatorCall, result: Value) -> Groups | None:
    """The groups of the result of a call that `moves`; None where they can't be told."""
    name, shape = call.name, program.shape(result)
    rank = len(groups)
    if name in VIEWS:
        return regroup(program, [label for group in groups for label in group], shape)
    if name == "permute.default":
        return tuple(groups[d % rank] for d in call["dims"])
    if name == "transpose.int":
        order = list(groups)
        first, second = call["dim0"] % rank, call["dim1"] % rank
        order[first], order[second] = order[second], order[first]
        return tuple(order)
    if name == "unsqueeze.default":
        place = call["dim"] % (rank + 1)
        return (*groups[:place], (), *groups[place:])
    if name.startswith("squeeze."):
        dim = call.arguments.get("dim", list(range(rank)))
        dims = {d % rank for d in (dim if isinstance(dim, list | tuple) else [dim])}
        return tuple(g for d, g in enumerate(groups) if g or d not in dims)
    if name == "expand.default":
        return _expanded(groups, shape)
    return groups


def _expanded(groups: Groups, shape: Sequence[Size]) -> Groups:
    missing = len(shape) - len(groups)
    expanded: list[Group] = [() if is_one(n) else (Label(n),) for n in shape[:missing]]
    for group, size in zip(groups, shape[missing:], strict=True):
        expanded.append(group if group or is_one(size) else (Label(size),))
    return tuple(expanded)


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


__all__ = ["Group", "Groups", "Label", "MOVES", "VIEWS", "moves", "regroup", "start", "through"]
