"""Wall time of calls of programs around Triton kernels of the user's: eager, irc, Inductor.

    python -m bench.gpu_user_kernels

`chain` has two kernels between operations of its own, `inplace` one that writes an argument.
Medians of seven interleaved rounds of 300 calls, in microseconds.
"""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable

import torch

from tests.frontend.test_user_kernels import added, fused

ROUNDS, CALLS = 7, 300


def chain(x: torch.Tensor) -> torch.Tensor:
    """Two kernels, each between small operations."""
    return fused(fused(x + 1, x) * 3, None, 0.5) - 1


def inplace(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """A kernel that adds to an argument."""
    added(y, x * 2)
    return y + 1


def wall(call: Callable[[], object]) -> float:
    """Microseconds a call."""
    for _ in range(20):
        call()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(CALLS):
        call()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / CALLS * 1e6


def main() -> None:
    """Print a line for each program."""
    small = [torch.randn(512, 16, device="cuda") for _ in range(2)]
    for program, given in ((chain, [torch.randn(1 << 16, device="cuda")]), (inplace, small)):
        calls: dict[str, Callable[..., object]] = {"eager": program}
        for backend in ("irc", "inductor"):
            for mode in (None, "reduce-overhead"):
                torch._dynamo.reset()
                call = torch.compile(program, backend=backend, mode=mode, fullgraph=True)
                calls[f"{backend} {mode or 'default'}"] = call
                with torch.no_grad():
                    for _ in range(4):
                        call(*given)
        times: dict[str, list[float]] = {name: [] for name in calls}
        with torch.no_grad():
            for _ in range(ROUNDS):
                for name, each in calls.items():
                    times[name].append(wall(functools.partial(each, *given)))
        medians = {name: round(statistics.median(t), 1) for name, t in times.items()}
        print(program.__name__, medians, flush=True)


if __name__ == "__main__":
    main()
