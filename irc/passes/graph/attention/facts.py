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

#: The largest number of f32.
LARGEST = 3.4028234663852886e38
#: Where a number takes a score's place it is this or less: `exp` of it is 0 beside a score that is
#: 104 larger.
HIGHEST_NUMBER = -1e4
#: Masks of constants are computed up to so many elements.
MOST_ELEMENTS = 1 << 22
#: The most operators between a mask and the constants that make it.
DEPTH = 24
#: What the numbers of a dtype lie between, f32's and f64's being those that masks are of.
_REACH = {
    "bool": (0.0, 1.0), "uint8": (0.0, 255.0), "int8": (-128.0, 127.0),
    "int16": (-32768.0, 32767.0), "int32": (-(2.0**31), 2.0**31 - 1),
    "int64": (-(2.0**63), 2.0**63),
    "float16": (-65504.0, 65504.0), "bfloat16": (-3.3895e38, 3.3895e38),
}  # fmt: skip

_Interval = tuple[float, float]


def interval(program: Program, value: Value, depth: int = 12) -> _Interval | None:
    """Between which finite numbers the elements of a value lie, NaN being none of them; those of a
    condition are 0 and 1."""
    number = number_of(program, value)
    if number is not None:
        return (number, number) if math.isfinite(number) else None
    if not program.is_tensor(value):
        return None
    dtype = program.dtype(value)
    call = program.call(value) if depth else None
    inner = None if call is None else _inner_interval(program, call, dtype, depth - 1)
    low, high = _REACH.get(dtype, (-LARGEST, LARGEST))
    if inner is not None and low <= inner[0] <= inner[1] <= high:
        return inner
    return (0.0, 1.0) if dtype == "bool" else None


#: Among what numbers the results lie, by those that the operands lie between.
_ENDS: dict[Role, Callable[[_Interval, _Interval], Sequence[float]]] = {
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
) -> _Interval | None:
    role = call.role
    if role in MOVING or role is Role.PART:
        return interval(program, call["self"], depth)
    if role is Role.CAST:
        inner = interval(program, call["self"], depth)
        if dtype != "bool" or inner is None:
            return inner
        return (1.0, 1.0) if inner[0] > 0 or inner[1] < 0 else (0.0, float(any(inner)))
    if role is Role.COUNT:
        return _counted(program, call)
    if role is Role.NOT:
        inner = interval(program, call["self"], depth) if _are_conditions(program, call) else None
        return None if inner is None else (1 - inner[1], 1 - inner[0])
    if role in (Role.AND, Role.OR) and not _are_conditions(program, call):
        return None
    if role is Role.CHOOSE:
        condition, *chosen = call.choice
        always = interval(program, condition, depth)
        if always is not None and always[0] == always[1]:
            return interval(program, chosen[0] if always[0] else chosen[1], depth)
    elif role in _ENDS:
        chosen = [call["self"], call["other"]]
    else:
        return None
    first, second = (interval(program, value, depth) for value in chosen)
    if first is None or second is None or call.arguments.get("alpha", 1) != 1:
        return None
    ends = [*first, *second] if role is Role.CHOOSE else _ENDS[role](first, second)
    return (float(min(ends)), float(max(ends)))


def _are_conditions(program: Program, call: OperatorCall) -> bool:
    operands = [call[name] for name in ("self", "other") if name in call.arguments]
    return all(program.is_tensor(o) and program.dtype(o) == "bool" for o in operands)


def _counted(program: Program, call: OperatorCall) -> _Interval | None:
    """Of numbers that are counted up; how far need not be known."""
    start, step = call.arguments.get("start", 0), call.arguments.get("step", 1)
    if not isinstance(start, int) or not isinstance(step, int) or step <= 0:
        return None
    end = call["end"]
    last = float(max(end - 1, start)) if isinstance(end, int) else 2.0**63
    return float(start), last


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
