"""The cost model: what computes do, as a `Cost`, and what that takes on a `Target`.

    before, after = kept, inlined            # each a `Cost`
    if pays(target, before, after): ...
    context.remark(f"is inlined: {told(target, before, after)}", op)

Passes that decide ask one question: the time before, less the time after. The figures are the
target's (`irc.target.speeds.Speeds`); docs/cost-model.md says what is counted.
"""

from __future__ import annotations

from collections.abc import Mapping

from irc.analysis.loop import array_bytes, points
from irc.dialects import loop
from irc.ir.core import Operation, Value
from irc.ir.traits import Elementary, Free, Slow
from irc.target import Target
from irc.target.costs import Cost
from irc.target.speeds import Speeds

_BITS = 21
#: Scalar operations by class, as one number that adds up: how many are cheap, divisions, functions.
NOTHING, CHEAP, DIVISION, FUNCTION = 0, 1, 1 << _BITS, 1 << 2 * _BITS
#: The figures where no target is at hand: what a schedule compares by.
USUAL = Speeds()
_CLASSES: dict[type[Operation], int] = {}


def class_of(op: Operation) -> int:
    """The class of a scalar operation: NOTHING, CHEAP, DIVISION or FUNCTION, by its traits."""
    known = _CLASSES.get(op.__class__)
    return _class_of(op.__class__) if known is None else known


def _class_of(cls: type[Operation]) -> int:
    traits = cls.traits
    known = _CLASSES[cls] = (
        NOTHING if Free in traits
        else DIVISION if Slow in traits
        else FUNCTION if Elementary in traits
        else CHEAP
    )  # fmt: skip
    return known


def op_cost(op: Operation, speeds: Speeds = USUAL) -> int:
    """What one evaluation of a scalar operation takes, in operations."""
    class_ = class_of(op)
    if class_ <= CHEAP:
        return class_
    return speeds.division if class_ == DIVISION else speeds.function


def work(classes: int, points: int) -> Cost:
    """Scalar operations, a sum of classes, at so many points."""
    one = DIVISION - 1
    return Cost(
        (classes & one) * points, (classes >> _BITS & one) * points,
        (classes >> 2 * _BITS) * points,
    )  # fmt: skip


def moved(elements: int, bytes_: int, size: int, speeds: Speeds) -> Cost:
    """Elements of `bytes_` bytes each, read from an array of `size` bytes or written to it: from
    the first-level cache where that holds it."""
    if size <= speeds.near_bytes:
        return Cost(near=elements)
    return Cost(far=elements * bytes_)


def cost_of(op: loop.ComputeOp, large: Mapping[Value, int], parallel: int) -> Cost:
    """A compute as a kernel of its own. large: the arrays that it reads and that no first-level
    cache keeps, with their bytes; parallel: points that threads can share."""
    count = points(axis.extent for axis in op.axis_list)
    # The yield counts as one: values are combined, or made what they are stored as.
    classes = sum([class_of(inner) for inner in op.block.ops])
    far = sum(large.values())
    for result in op.results:
        far += 2 * array_bytes(result.type)
    return Cost(
        (classes & DIVISION - 1) * count, (classes >> _BITS & DIVISION - 1) * count,
        (classes >> 2 * _BITS) * count, 0, 0, far, 1, parallel,
    )  # fmt: skip


def told(target: Target, before: Cost, after: Cost) -> str:
    """Both times, for people: 12.1 us -> 8.4 us."""
    return f"{_time(target.time(before))} -> {_time(target.time(after))}"


def _time(femtoseconds: int) -> str:
    for name, size in (("s", 10**15), ("ms", 10**12), ("us", 10**9)):
        if femtoseconds >= size:
            return f"{femtoseconds / size:.3g} {name}"
    return f"{femtoseconds / 10**6:.3g} ns"


__all__ = ["CHEAP", "DIVISION", "FUNCTION", "NOTHING", "USUAL", "Cost", "class_of", "cost_of",
           "moved", "op_cost", "told", "work"]  # fmt: skip
