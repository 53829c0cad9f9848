"""What is known of a value of a program, from what computes it: between which numbers its elements
lie, and what they are where constants alone make them.

    interval(program, value)         # (1.0, 1.0): a condition that always holds
    known_mask(program, mask, sizes) # KnownMask.NOTHING, CAUSAL or UNKNOWN
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Any

from irc.passes.graph.attention.operators import MOVING, Role
from irc.passes.graph.attention.program import OperatorCall, Program, Size, Value
from irc.passes.graph.attention.recognize import number_of
from irc.passes.graph.attention.rounding import FLOATS, INTEGERS, Interval, held_between

#: The largest number of f32.
LARGEST = 3.4028234663852886e38
#: Where a number takes a score's place it is this or less: `exp` of it is 0 beside a score that is
#: 104 larger.
HIGHEST_NUMBER = -1e4
#: Masks of constants are computed up to so many elements.
MOST_ELEMENTS = 1 << 22
#: The most operators between a mask and the constants that make it.
DEPTH = 24
#: More elements than a tensor has: they have no addresses.
MORE_ELEMENTS = 1 << 57


def interval(program: Program, value: Value, depth: int = 12) -> Interval | None:
    """Between which finite numbers the elements of a value lie, NaN being none of them, as they are
    rounded at each step; those of a condition are 0 and 1."""
    if isinstance(value, bool | int):
        return (value, value)
    number = number_of(program, value)
    if not program.is_tensor(value):
        return (number, number) if number is not None and math.isfinite(number) else None
    dtype = program.dtype(value)
    if number is not None:
        if dtype in INTEGERS:  # which a float holds exactly up to 2**53
            return (int(number), int(number)) if abs(number) < 1 << 53 else None
        return (number, number) if math.isfinite(number) else None
    call = program.call(value) if depth else None
    ends = None if call is None else _inner_interval(program, call, dtype, depth - 1)
    return (0.0, 1.0) if ends is None and dtype == "bool" else ends


#: Among what numbers the results lie, by those that the operands lie between.
_ENDS: dict[Role, Callable[[Interval, Interval], Sequence[float]]] = {
    Role.MULTIPLY: lambda first, second: [a * b for a in first for b in second],
    Role.ADD: lambda first, second: [first[0] + second[0], first[1] + second[1]],
    Role.SUBTRACT: lambda first, second: [first[0] - second[1], first[1] - second[0]],
    Role.SUBTRACT_FROM: lambda first, second: [second[0] - first[1], second[1] - first[0]],
    Role.LESS: lambda first, second: [first[1] < second[0], first[0] < second[1]],
    Role.LESS_EQUAL: lambda first, second: [first[1] <= second[0], first[0] <= second[1]],
    Role.GREATER: lambda first, second: [first[0] > second[1], first[1] > second[0]],
    Role.GREATER_EQUAL: lambda first, second: [first[0] >= second[1], first[1] >= second[0]],
    # Of conditions, which are 0 or 1.
    Role.AND: lambda first, second: [min(first[0], second[0]), min(first[1], second[1])],
    Role.OR: lambda first, second: [max(first[0], second[0]), max(first[1], second[1])],
}


def _inner_interval(
    program: Program, call: OperatorCall, dtype: str, depth: int
) -> Interval | None:
    role = call.role
    if role in MOVING or role in (Role.PART, Role.CAST):
        inner = interval(program, call["self"], depth)
        return None if inner is None else held_between(inner, dtype)
    if role is Role.COUNT:
        return _counted(call, dtype)
    if role is Role.NOT:
        inner = interval(program, call["self"], depth) if _are_conditions(program, call) else None
        return None if inner is None else (1 - inner[1], 1 - inner[0])
    if role in (Role.AND, Role.OR) and not _are_conditions(program, call):
        return None
    if role is Role.CHOOSE:
        return _chosen(program, call, dtype, depth)
    if role not in _ENDS or call.arguments.get("alpha", 1) != 1:
        return None
    operands = [call["self"], call["other"]]
    if role in _COMPARISONS:
        dtypes = _compared_in(program, operands)
    else:  # integers are what the exact ones are, wherever those are inside
        dtypes = [] if dtype in INTEGERS else [dtype]
    first, second = (_as_each(interval(program, v, depth), dtypes) for v in operands)
    if first is None or second is None:
        return None
    ends = _ENDS[role](first, second)
    if dtype == "bool":
        return (float(min(ends)), float(max(ends))) if max(ends) <= 1 else None
    return held_between((min(ends), max(ends)), dtype) if all(map(math.isfinite, ends)) else None


def _chosen(program: Program, call: OperatorCall, dtype: str, depth: int) -> Interval | None:
    condition, *choices = call.choice
    always = interval(program, condition, depth)
    if always is not None and always[0] == always[1]:
        choices = choices[:1] if always[0] else choices[1:]
    ends: list[float] = []
    for choice in choices:
        inner = _as_each(interval(program, choice, depth), [dtype])
        if inner is None:
            return None
        ends += inner
    return (min(ends), max(ends))


def _compared_in(program: Program, operands: Sequence[Value]) -> list[str]:
    """The dtypes that operands may be compared in: those of both, wider ones being no worse; floats
    of a program that are no tensors are of a dtype that the caller chooses."""
    dtypes = [program.dtype(v) for v in operands if program.is_tensor(v)]
    if not any(dtype in FLOATS for dtype in dtypes) and any(
        isinstance(v, float) for v in operands
    ):
        return [*FLOATS]
    floats = [dtype for dtype in dtypes if dtype in FLOATS]
    return floats or [dtype for dtype in dtypes if dtype != "bool"]


def _as_each(ends: Interval | None, dtypes: Sequence[str]) -> Interval | None:
    """Between what numbers lie that have become one of these dtypes'."""
    every = [ends]
    if ends is not None:
        every += [held_between(ends, dtype) for dtype in dtypes]
    known = [each for each in every if each is not None]
    if len(known) < len(every):
        return None
    return min(low for low, _ in known), max(high for _, high in known)


#: Of these the operands are converted to one dtype, which the result has not.
_COMPARISONS = frozenset({Role.LESS, Role.LESS_EQUAL, Role.GREATER, Role.GREATER_EQUAL})


def _are_conditions(program: Program, call: OperatorCall) -> bool:
    operands = [call[name] for name in ("self", "other") if name in call.arguments]
    return all(program.is_tensor(o) and program.dtype(o) == "bool" for o in operands)


def _counted(call: OperatorCall, dtype: str) -> Interval | None:
    """Of numbers that are counted up; how far need not be known."""
    start, step = call.arguments.get("start", 0), call.arguments.get("step", 1)
    if not isinstance(start, int) or not isinstance(step, int) or step <= 0:
        return None
    end = call["end"]
    last = max(end - 1, start) if isinstance(end, int) else start + step * MORE_ELEMENTS
    if dtype in FLOATS:  # integers, of which none is rounded
        return (start, last) if max(abs(start), last) <= 1 << FLOATS[dtype].bits else None
    if dtype not in INTEGERS:
        return None
    least, most = INTEGERS[dtype]
    if not isinstance(end, int):
        last = min(last, most)
    return (start, last) if least <= start and last <= most else None


class KnownMask(Enum):
    """What is known of a mask, which is added (a float), or says which scores stay (a bool)."""

    UNKNOWN = auto()
    NOTHING = auto()
    """Every score stays as it is."""
    CAUSAL = auto()
    """Each query sees the keys up to its own position."""


def known_mask(program: Program, mask: Value, sizes: Sequence[Size]) -> KnownMask:
    """What is known of a mask whose last dimensions are broadcast to `sizes`: queries and keys."""
    from torch.utils._python_dispatch import _disable_current_modes

    mask = _before_expansion(program, mask)
    stays = program.dtype(mask) == "bool"
    if interval(program, mask) == ((1.0, 1.0) if stays else (0.0, 0.0)):
        return KnownMask.NOTHING
    held = evaluated(program, mask)
    if held is None or held.numel() == 0:
        return KnownMask.UNKNOWN
    with _disable_current_modes():
        added = held.new_zeros(held.shape).float().masked_fill(~held, -math.inf) if stays else held
        if bool((added == 0).all()):
            return KnownMask.NOTHING
        whole = added.dim() > 1 and all(map(program.same, added.shape[-2:], sizes))
        return KnownMask.CAUSAL if whole and is_causal(added) else KnownMask.UNKNOWN


def _before_expansion(program: Program, mask: Value) -> Value:
    """A mask as it is before it is repeated along its leading dimensions."""
    while True:
        call = program.call(mask)
        if call is None or call.name != "expand.default":
            return mask
        source, shape = call["self"], program.shape(mask)[-2:]
        if len(program.shape(source)) < 2 or list(program.shape(source)[-2:]) != list(shape):
            return mask
        mask = source


def evaluated(program: Program, value: Value) -> Any:
    """A value as a torch tensor of the CPU, if constants alone make it, by operators that are no
    random numbers and write nothing; None otherwise."""
    from torch.utils._python_dispatch import _disable_current_modes

    with _disable_current_modes():
        try:
            return _evaluate(program, value, DEPTH, {})
        except (RuntimeError, TypeError, ValueError, IndexError):  # an operator refuses it
            return None


def is_causal(total: Any) -> bool:
    """Whether a mask is 0 up to each query's own position, and far below behind it."""
    queries, keys = total.shape[-2:]
    seen = total.new_ones(queries, keys).tril().bool()
    return bool(((total == 0) == seen).all() and ((total < HIGHEST_NUMBER) == ~seen).all())


def _evaluate(program: Program, value: Value, depth: int, known: dict[Any, Any]) -> Any:
    """A value as a torch tensor of the CPU, if constants alone make it, by operators that are no
    random numbers and write nothing; None otherwise."""
    if value in known:
        return known[value]
    held = program.constant(value)
    if held is not None:
        return held.cpu()
    call = program.call(value)
    if call is None or depth == 0:
        return None
    sizes = program.shape(value)
    if not all(isinstance(n, int) for n in sizes) or math.prod(sizes) > MOST_ELEMENTS:
        return None
    known[value] = result = _called(program, call, depth, known)
    return result


def _called(program: Program, call: OperatorCall, depth: int, known: dict[Any, Any]) -> Any:
    import torch

    from irc.dialects.aten.schema import find_overload

    overload = find_overload(f"aten.{call.name}")
    if overload is None or overload._schema.is_mutable or "empty" in call.name:
        return None
    if torch.Tag.nondeterministic_seeded in overload.tags:
        return None
    arguments: dict[str, Any] = {}
    for name, argument in call.arguments.items():
        listed = argument if isinstance(argument, list | tuple) else [argument]
        if any(map(program.is_tensor, listed)):
            values = [
                _evaluate(program, value, depth - 1, known) if program.is_tensor(value) else value
                for value in listed
            ]
            if any(value is None and part is not None for value, part in zip(values, listed)):
                return None
            argument = values if listed is argument else values[0]
        elif name == "device":
            argument = torch.device("cpu")
        elif name in ("pin_memory", "layout"):
            continue
        elif isinstance(argument, str) and isinstance(getattr(torch, argument, None), torch.dtype):
            argument = getattr(torch, argument)
        elif isinstance(argument, str) and name == "memory_format":
            argument = getattr(torch, argument)
        elif not _is_plain(argument):
            return None
        arguments[name] = argument
    return overload(**arguments)


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | str)


__all__ = ["HIGHEST_NUMBER", "KnownMask", "LARGEST", "MOST_ELEMENTS", "evaluated", "interval",
           "is_causal", "known_mask"]  # fmt: skip
