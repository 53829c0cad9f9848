"""Host time of a call on a GPU, irc's against Inductor's.

    python -m bench.gpu_calls [--rounds 9]

A line a function and side: microseconds of a call until it returns, without waiting for the GPU
within a round of CALLS; the median over rounds that take turns, after five calls of each.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

import irc  # noqa: F401  # so that an uninstalled checkout is found too

CALLS = 100


def one_kernel(x: torch.Tensor) -> torch.Tensor:
    """One launch."""
    return torch.relu(x) + 1


def products_and_kernels(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Ten products, each followed by a launch."""
    for _ in range(10):
        x = torch.relu(x @ w) * 1.5 + 1
        x = x.sum(1, keepdim=True) + x
    return x


def microseconds(call: Callable[[], object]) -> float:
    """The host's time of one of CALLS calls."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(CALLS):
        call()
    taken = time.perf_counter() - start
    torch.cuda.synchronize()
    return taken * 1e6 / CALLS


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    print(f"# {torch.cuda.get_device_name()}, torch {torch.__version__}")
    x, w = torch.randn(64, 64, device="cuda"), torch.randn(64, 64, device="cuda")
    cases: list[tuple[str, Any, tuple[torch.Tensor, ...]]] = [
        ("one kernel", one_kernel, (x,)),
        ("10 products and kernels", products_and_kernels, (x, w)),
    ]
    for name, function, args in cases:
        # Two functions, so that Dynamo keeps what it compiled of each apart.
        sides = {
            "irc": torch.compile(lambda *given, f=function: f(*given), backend="irc"),
            "inductor": torch.compile(lambda *given, f=function: f(*given)),
        }
        times: dict[str, list[float]] = {side: [] for side in sides}
        with torch.no_grad():
            for _ in range(5):
                for compiled in sides.values():
                    compiled(*args)
            for _ in range(options.rounds):
                for side, compiled in sides.items():
                    times[side].append(microseconds(lambda c=compiled, a=args: c(*a)))
        for side, found in times.items():
            print(f"host us a call: {name} {side} {statistics.median(found):.1f}", flush=True)


if __name__ == "__main__":
    main()
