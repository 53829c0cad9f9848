"""What the memory of large results costs: irc, whose pool has it back when they are gone, beside
TorchInductor and eager mode, which ask malloc.

    OMP_NUM_THREADS=1 python -m bench.large_results [--rounds 15] [--threads 1]

A line for a result of so many MB (`x + 1` of f32, dropped before the next call) and for gradients
of so many MB (a step of linear layers on few rows, their gradients dropped after it): the median
milliseconds of a call of each side, all called in turn in one process, and in brackets the pages
that were touched for the first time in it. The first line is one of memory: what it takes to fill
so many MB of a fresh array of torch's, and to fill them again.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
from collections.abc import Callable

import torch
from torch import nn

from bench.common import compiled, print_load, table

SIZES = (2, 8, 16, 51, 200)
"""MB of a result; GPT-2's logits for 256 tokens are 51."""
LAYERS = (4, 32)
"""Linear layers of 1024 x 1024, 4 MB of gradients each."""
SIDES = ("irc", "inductor", "eager")


def in_turn(calls: dict[str, Callable[[], None]], rounds: int) -> list[str]:
    """Median milliseconds and first touches of a call, by side."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    pages: dict[str, list[int]] = {name: [] for name in calls}
    for number in range(rounds + 2):
        for name, call in calls.items():
            before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
            call()
            taken = time.perf_counter() - start
            after = resource.getrusage(resource.RUSAGE_SELF)
            if number > 1:
                times[name].append(taken * 1e3)
                pages[name].append(after.ru_minflt - before.ru_minflt)
    return [f"{statistics.median(times[name]):.2f} [{statistics.median(pages[name]):.0f}]"
            for name in calls]  # fmt: skip


def of_memory(megabytes: int) -> list[str]:
    """Milliseconds to fill a fresh array, and the same one again."""
    kept: list[torch.Tensor] = []

    def fresh() -> None:
        kept[:] = [torch.empty(megabytes * 250_000)]
        kept[0].fill_(1.0)

    def once_more() -> None:
        kept[0].fill_(2.0)

    first, again = in_turn({"fresh": fresh, "again": once_more}, 7)
    return [f"{megabytes} MB, filled", f"fresh {first}", f"again {again}", ""]


def of_results(megabytes: int, rounds: int) -> list[str]:
    """A line of a result."""
    torch._dynamo.reset()
    x = torch.randn(megabytes * 250_000)
    calls: dict[str, Callable[[], None]] = {}
    for side in SIDES:
        run = compiled(lambda x: x + 1, side, dynamic=False)
        run(x)

        def call(run: Callable[..., torch.Tensor] = run) -> None:
            run(x)

        calls[side] = call
    return [f"a result of {megabytes} MB", *in_turn(calls, rounds)]


def of_gradients(layers: int, rounds: int) -> list[str]:
    """A line of a step of training."""
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(1024, 1024, bias=False) for _ in range(layers)))
    x = torch.randn(4, 1024)
    calls: dict[str, Callable[[], None]] = {}
    for side in SIDES:
        run = compiled(model, side, dynamic=False)

        def step(run: Callable[..., torch.Tensor] = run) -> None:
            run(x).square().mean().backward()
            for parameter in model.parameters():
                parameter.grad = None

        step()
        calls[side] = step
    return [f"gradients of {layers * 4.194:.0f} MB", *in_turn(calls, rounds)]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    print_load()
    rows = [of_memory(51)]
    rows += [of_results(size, asked.rounds) for size in SIZES]
    rows += [of_gradients(layers, asked.rounds) for layers in LAYERS]
    print(table(["ms of a call [first touches]", *SIDES], rows))


if __name__ == "__main__":
    main()
