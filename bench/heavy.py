"""The time of a compiled model's matrix products, convolutions and attention, measured inside it.

Both sides are clocked alike: the monotonic clock is read before and after each such call of ATen,
at the place where the compiled program makes it, and the differences are summed.  irc's native
program does it itself (its option `clock_aten`); in the Python programs that Inductor makes the
names `extern_kernels`, `torch` and `aten` are replaced by objects that do.  Two reads of the clock
take some 50 ns in native code and 300 ns in Python, against tens of microseconds for a call.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

# Names of operators without their namespace and overload.
HEAVY = re.compile(
    r"(?:bias_)?(?:mm|addmm|bmm|baddbmm|mv|addmv|dot|_mkl_linear|_linear_pointwise)$"
    r"|_?convolution|_?mkldnn_convolution|_scaled_dot_product"
)
NAMESPACES = ("extern_kernels", "torch", "aten")


def is_heavy(operator: str) -> bool:
    """Whether `aten.addmm.out`, `extern_kernels.mm` and the like is a product, a convolution or
    attention."""
    return any(HEAVY.match(part) for part in operator.split(".")[1:])


class _Watched:
    """Stands for a module or namespace: the heavy functions found below it are clocked."""

    def __init__(self, target: Any, path: str, total: list[int]) -> None:
        self._target, self._path, self._total = target, path, total

    def __getattr__(self, name: str) -> Any:
        found, path = getattr(self._target, name), f"{self._path}.{name}"
        if is_heavy(path) and callable(found):
            found = _Clocked(found, path, self._total)
        elif path == "torch.ops" or self._path == "torch.ops":
            found = _Watched(found, path, self._total)
        setattr(self, name, found)
        return found


class _Clocked(_Watched):
    """A heavy function, its overloads among its attributes."""

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        start = time.perf_counter_ns()
        result = self._target(*arguments, **named)
        self._total[0] += time.perf_counter_ns() - start
        return result


@contextmanager
def _inductor() -> Iterator[Callable[[], int]]:
    """Clocks the programs that Inductor has made so far in this process."""
    from torch._inductor.codecache import PyCodeCache

    total, kept = [0], []
    for module in PyCodeCache.modules:
        for name in NAMESPACES:
            if name in vars(module):
                target = vars(module)[name]
                kept.append((module, name, target))
                setattr(module, name, _Watched(target, name, total))
    try:
        yield lambda: total[0]
    finally:
        for module, name, target in kept:
            setattr(module, name, target)


@contextmanager
def _irc() -> Iterator[Callable[[], int]]:
    try:
        from irc.runtime import clocks  # an older revision, measured as a peer
    except ImportError:
        from irc.program import clocks

    yield lambda: sum(ns for name, ns in clocks.nanoseconds().items() if is_heavy(name))


def clocked_call(call: Callable[[], object], backend: str, calls: int = 3) -> dict[str, float]:
    """Seconds of a call and of the heavy operators in it, of the call with the least time outside.

    `call` must be compiled with `clock_aten` if the backend is irc.  Raises ValueError for a
    backend whose calls can't be clocked.
    """
    watches = {"inductor": _inductor, "irc": _irc}
    if backend not in watches:
        raise ValueError(f"the calls of backend {backend} can't be clocked")
    best = {"wall": float("inf"), "heavy": 0.0}
    with watches[backend]() as heavy:
        call()
        for _ in range(calls):
            before, start = heavy(), time.perf_counter_ns()
            call()
            wall, spent = time.perf_counter_ns() - start, heavy() - before
            if not spent:
                raise ValueError("no product, convolution or attention was seen")
            if wall - spent < (best["wall"] - best["heavy"]) * 1e9:
                best = {"wall": wall * 1e-9, "heavy": spent * 1e-9}
    return best
