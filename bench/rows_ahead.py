"""Rows fetched some tiles before a CPU multiplies them (the schedule's key `rows_ahead`, the figure
`fetched_rows`), against none fetched.

    OMP_NUM_THREADS=1 python -m bench.rows_ahead [--dtype bfloat16] [--ahead 1 2 4] [--rounds 18]
                                                 [--shapes 12544x256x64 ...]

For each product (rows x terms x columns) with a frozen weight, by vectors: milliseconds with none
fetched, the median of the rounds' ratios for each number of tiles (above 1: faster), all called in
turn in one process with three arrays of rows, and billions of operations a second.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch

from bench.common import print_load, table
from irc.target import Target
from irc.target.cpu import TargetFeatures
from irc.target.figures import evolve

SHAPES = (
    "12544x384x96", "12544x96x384", "12544x256x64", "12544x64x256", "3136x512x128", "3136x768x192",
    "784x1024x256", "196x2048x512", "512x768x768", "512x768x3072", "788x768x2304",
)  # fmt: skip
LEAST_SECONDS = 0.015
"""A figure of a round takes about so long."""
RATE = 1e11
"""Operations a second, about."""


def measure(shape: str, dtype: torch.dtype, ahead: list[int], rounds: int) -> list[str]:
    """A line of the table."""
    rows, terms, columns = map(int, shape.split("x"))
    torch.manual_seed(0)
    layer = torch.nn.Linear(terms, columns).to(dtype).eval()
    inputs = [torch.randn(rows, terms).to(dtype) for _ in range(3)]
    calls = []
    for tiles in (0, *ahead):
        features = evolve(TargetFeatures.host(), fetched_rows=tiles, met_panels=1 << 20,
                          own_panels=(999,) * 3, own_pair_panels=(999,) * 3)  # fmt: skip
        options = {"freezing": True, "split_products": False,
                   "target": str(Target(features, library=("bf16", "f32")))}  # fmt: skip
        torch._dynamo.reset()
        calls.append(torch.compile(layer, backend="irc", options=options))
        calls[-1](inputs[0])
    work = 2.0 * rows * terms * columns
    count = max(1, int(LEAST_SECONDS / (3 * work / RATE)))
    times: list[list[float]] = []
    for number in range(rounds + 1):
        taken = [0.0] * len(calls)
        for side in range(len(calls)) if number % 2 else reversed(range(len(calls))):
            start = time.perf_counter()
            for _ in range(count):
                for x in inputs:
                    calls[side](x)
            taken[side] = (time.perf_counter() - start) / count / len(inputs)
        times.append(taken)
    medians = [statistics.median(each) for each in zip(*times[1:], strict=True)]
    ratios = [statistics.median(t[0] / t[side] for t in times[1:])
              for side in range(1, len(calls))]  # fmt: skip
    return [shape, f"{medians[0] * 1e3:.3f}", *(f"{ratio:.3f}" for ratio in ratios),
            *(f"{work / each / 1e9:.0f}" for each in medians)]  # fmt: skip


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"))
    parser.add_argument("--ahead", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--rounds", type=int, default=18)
    parser.add_argument("--shapes", nargs="+", default=list(SHAPES))
    chosen = parser.parse_args()
    torch.set_grad_enabled(False)
    torch.set_num_threads(1)
    print_load()
    dtype, ahead = getattr(torch, chosen.dtype), chosen.ahead
    head = ("product", "none ms", *(f"{n} ahead" for n in ahead), "GFLOP/s", *map(str, ahead))
    rows = [measure(shape, dtype, ahead, chosen.rounds) for shape in chosen.shapes]
    print(table(head, rows))
    print_load()


if __name__ == "__main__":
    main()
