"""Control flow as functions that call programs.

Each takes the operands of its operation (tensors, numbers) and gives the results as a tuple; a
tensor among these is fresh.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

Program = Callable[..., Sequence[Any]]


def run_cond(then: Program, otherwise: Program) -> Program:
    """A function of a condition and the operands: one of the two programs is called on these."""

    def cond(condition: Any, *operands: Any) -> Sequence[Any]:
        return then(*operands) if condition else otherwise(*operands)

    return cond


def run_while(condition: Program, body: Program, carried: int, stacked: bool) -> Program:
    """A loop as `flow.while` says: `body` gives new values for the first `carried` operands."""

    def loop(*operands: Any) -> Sequence[Any]:
        values, rest = operands[:carried], operands[carried:]
        collected: list[Sequence[Any]] = []
        begun = False
        while condition(*values, *rest)[0]:
            values, begun = tuple(body(*values, *rest)), True
            if stacked:
                collected.append(values)
        if stacked and begun:
            return tuple(torch.stack(each) for each in zip(*collected, strict=True))
        if begun:
            return values
        return tuple(_copy(v.unsqueeze(0) if stacked else v) for v in values)

    return loop


def run_scan(combine: Program, carried: int, scanned: int) -> Program:
    """A loop over slices as `flow.scan` says. Raises IndexError where there is none."""

    def scan(*operands: Any) -> Sequence[Any]:
        values: Sequence[Any] = operands[:carried]
        rest = operands[carried + scanned :]
        arrays = operands[carried : carried + scanned]
        length = arrays[0].shape[0]
        if not length:
            raise IndexError("a scan or map of arrays without a slice: their first size is 0")
        stacks: list[torch.Tensor] = []
        for number in range(length):
            slices = [a.select(0, number) for a in arrays]
            results = combine(*values, *slices, *rest)
            values, elements = results[:carried], results[carried:]
            if not number:
                stacks = [e.new_empty((length, *e.shape)) for e in elements]
            for stack, element in zip(stacks, elements, strict=True):
                stack[number] = element
        return (*values, *stacks)

    return scan


def _copy(value: Any) -> Any:
    is_tensor = isinstance(value, torch.Tensor)
    return value.clone(memory_format=torch.contiguous_format) if is_tensor else value


__all__ = ["Program", "run_cond", "run_scan", "run_while"]
