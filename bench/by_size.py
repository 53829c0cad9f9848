"""One program for any number of rows beside one for each: the layers of BERT-base on a CPU.

    OMP_NUM_THREADS=1 python -m bench.by_size [--rounds 9] [--frozen]

For each layer one program with `dynamic=True`, compiled on 100 rows, and one for each number of
rows, with its own weights. Both, and eager mode, run in turn in each round; given are microseconds
of this thread (the least), and the median over rounds of the dynamic program's time by the static
one's. Each call goes through torch.compile's guards, which take longer where sizes are symbols:
what a layer without work takes (`guards`) is given, and taken off both in the second ratio.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import time
from collections.abc import Callable

import torch

import irc  # noqa: F401  (the backend)
from bench.common import print_load, table

LAYERS = [(768, 768), (768, 3072), (3072, 768)]
ROWS = [2, 4, 16, 128, 512]
TRACED = 100


def clock(call: Callable[[torch.Tensor], object], x: torch.Tensor, count: int) -> float:
    """Seconds of a call, of so many."""
    start = time.thread_time()
    for _ in range(count):
        call(x)
    return (time.thread_time() - start) / count


def guards(dynamic: bool, chosen: dict[str, object], rounds: int) -> float:
    """Seconds of a call that computes next to nothing, through torch.compile's guards."""
    torch._dynamo.reset()
    call = torch.compile(torch.nn.Linear(8, 8).eval(), backend="irc", dynamic=dynamic,
                         options=chosen)  # fmt: skip
    if dynamic:
        call(torch.randn(TRACED, 8))
    x = torch.randn(2, 8)
    call(x)
    return min(clock(call, x, 300) for _ in range(rounds))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--frozen", action="store_true")
    options = parser.parse_args()
    torch.set_grad_enabled(False)
    torch.set_num_threads(1)
    chosen = {"freezing": True} if options.frozen else {}
    print_load()
    lines = []
    passed = {name: guards(name == "dynamic", chosen, options.rounds) for name in (
        "dynamic", "static")}  # fmt: skip
    print("guards: " + ", ".join(f"{name} {each * 1e6:.1f} us" for name, each in passed.items()))
    for inner, columns in LAYERS:
        torch._dynamo.reset()
        layer = torch.nn.Linear(inner, columns).eval()
        dynamic = torch.compile(layer, backend="irc", dynamic=True, options=chosen)
        dynamic(torch.randn(TRACED, inner))
        for rows in ROWS:
            x = torch.randn(rows, inner)
            static = torch.compile(copy.deepcopy(layer), backend="irc", dynamic=False,
                                   options=chosen)  # fmt: skip
            count = max(1, int(2e8 / (rows * inner * columns)))
            ways = {"dynamic": dynamic, "static": static, "eager": layer}
            for call in ways.values():
                call(x)
            times: dict[str, list[float]] = {name: [] for name in ways}
            for _ in range(options.rounds):
                for name, call in ways.items():
                    times[name].append(clock(call, x, count))
            pairs = list(zip(times["dynamic"], times["static"], strict=True))
            alone = [(a - passed["dynamic"]) / (b - passed["static"]) for a, b in pairs]
            lines.append([
                str(rows), str(inner), str(columns),
                *(f"{min(each) * 1e6:.1f}" for each in times.values()),
                f"{statistics.median(a / b for a, b in pairs):.2f}",
                f"{statistics.median(alone):.2f}",
            ])  # fmt: skip
    print(table(["rows", "inner", "columns", "dynamic", "static", "eager", "ratio",
                 "without guards"], lines))  # fmt: skip
    print_load()


if __name__ == "__main__":
    main()
