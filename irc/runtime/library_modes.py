"""torch's settings of how its libraries compute, which a call of an operator reads when it is made.

    now = reader(program)
    now()                       # ('tf32', False): another tuple where the operators would differ

What is kept of such calls, as a CUDA graph of them, is right for as long as these stay as they
were. Only settings are read that the elements of the program's operands make matter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from irc.dialects.aten.facts import OWN
from irc.program import host_program as P
from irc.program.liveness import registers_in

_ask: Any = torch._C
#: Settings by the dtype of what an operator reads; "" of all.
_SETTINGS: dict[str, tuple[Callable[[], Any], ...]] = {
    "": (
        _ask._get_deterministic_algorithms,
        _ask._get_cudnn_deterministic,
        _ask._get_cudnn_benchmark,
        _ask._get_cudnn_enabled,
    ),
    "float32": (
        lambda: _ask._get_fp32_precision_getter("cuda", "matmul"),
        lambda: _ask._get_fp32_precision_getter("cuda", "conv"),
        lambda: _ask._get_fp32_precision_getter("cuda", "rnn"),
    ),
    "float16": (
        _ask._get_cublas_allow_fp16_reduced_precision_reduction,
        _ask._get_cublas_allow_fp16_accumulation,
    ),
    "bfloat16": (_ask._get_cublas_allow_bf16_reduced_precision_reduction,),
}


#: Gives the settings as they are now: the same object for equal ones.
Settings = Callable[[], tuple[Any, ...]]


def reader(program: P.HostProgram) -> Settings | None:
    """A function that gives the settings that a program's operators read, as they are now; None
    for a program that calls no operator of torch's."""
    calls = [
        step for step in program.steps
        if isinstance(step, P.CallOperator) and step.callee.partition(".")[0] not in OWN
    ]  # fmt: skip
    registers = {register for step in calls for register in registers_in(step)}
    layouts = [program.layouts[r] for r in registers if r in program.layouts]
    if not calls:
        return None
    asked = _asked(frozenset(layout.dtype for layout in layouts))
    known: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    def now() -> tuple[Any, ...]:
        mode = tuple([ask() for ask in asked])
        return known.setdefault(mode, mode)

    return now


def _asked(dtypes: frozenset[str]) -> tuple[Callable[[], Any], ...]:
    names = ["", *(name for name in _SETTINGS if name in dtypes)]
    return tuple(ask for name in names for ask in _SETTINGS[name])


__all__ = ["Settings", "reader"]
