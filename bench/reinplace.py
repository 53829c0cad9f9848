"""What updates in place save: time, copies and bytes, with and without.

    python -m bench.reinplace

Programs that update a part of an argument: a key-value cache at a fixed position, in a box, at two
positions and at an index, a row that is added to, and a custom operator that writes its argument.
"Without" leaves out the pass `reinplace`, and lets kernels copy what they scatter into, as they do
where it is needed afterwards. Copies are those of the host program; times are medians of
interleaved rounds.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any
from unittest import mock

import torch

import irc
from irc.dialects import host, kernel
from irc.ir.passes import PassContext, PassManager
from irc.pipeline import pipeline_text

ROUNDS = 30
UPDATES = "irc.passes.kernel.cpu.plan.may_be_one_memory"
CACHE = torch.zeros(4, 16, 1024, 64)
NEW = torch.ones(4, 16, 1, 64)


def fixed(cache: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
    """A step of a key-value cache at position 5."""
    cache[:, :, 5:6] = new
    return new * 2


def indexed(cache: torch.Tensor, new: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
    """A step of a key-value cache at an index."""
    cache.index_copy_(2, place, new)
    return new * 2


def box(cache: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
    """One entry of the batch's step of a key-value cache."""
    cache[1:2, :, 5:6] = new[:1]
    return new * 2


def two(cache: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
    """Two positions of a key-value cache, one after the other."""
    cache[:, :, 5:6] = new
    cache[:, :, 700:701] = new * 3
    return new * 2


def row(cache: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
    """Adds to a row of an argument."""
    cache[:, :, 5] += new[:, :, 0]
    return new * 2


def custom(cache: torch.Tensor) -> torch.Tensor:
    """A custom operator that writes a slice of its argument."""
    return torch.ops.irc_bench.touch(cache)


def register() -> torch.library.Library:
    """Define the custom operator."""
    library = torch.library.Library("irc_bench", "DEF")
    library.define("touch(Tensor(a!) x) -> Tensor")
    library.impl("touch", lambda x: x[0, 0, 0].add_(1).clone(), "CPU")
    torch.library.register_fake(
        "irc_bench::touch", lambda x: x.new_empty(x.shape[-1:]), lib=library
    )
    return library


def build(function: Callable[..., Any], args: Sequence[Any], without: bool) -> tuple[Any, str]:
    """The executable, and a line about its programs; `without` what writes in place."""
    module = irc.trace(function, tuple(args))
    text = pipeline_text(functional=False)
    kept = mock.patch(UPDATES, lambda *_: False) if without else nullcontext()
    with kept:
        manager = PassManager.parse(text.replace(",reinplace", "") if without else text)
        manager.run(module, PassContext(target="llvm"))
    ops = module.lookup("main").block.ops  # type: ignore[union-attr]
    copies = sum(isinstance(o, host.HostCopyOp) for o in ops)
    every = [o for o in module.regions[0].blocks[0].ops if isinstance(o, kernel.KernelFuncOp)]
    updating = sum(k.initialized is not None for k in every)
    return irc.build(module), f"copies {copies}, kernels that update in place {updating}"


def main() -> None:
    """Print a line per program."""
    library = register()
    torch.set_num_threads(1)
    print(f"load {os.getloadavg()[0]:.1f}, {ROUNDS} interleaved rounds, one thread")
    cases: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
        (fixed, (CACHE, NEW)),
        (box, (CACHE, NEW)),
        (two, (CACHE, NEW)),
        (row, (CACHE, NEW)),
        (indexed, (CACHE, NEW, torch.tensor([5]))),
        (custom, (CACHE,)),
    ]
    for function, args in cases:
        (off, about_off), (on, about_on) = (build(function, args, w) for w in (True, False))
        ratios, times = [], []
        for _ in range(ROUNDS):
            seconds = []
            for run in (off, on):
                start = time.perf_counter()
                run(*args)
                seconds.append(time.perf_counter() - start)
            ratios.append(seconds[0] / seconds[1])
            times.append(seconds)
        before, after = (statistics.median(t[k] for t in times) * 1e6 for k in (0, 1))
        print(f"{function.__name__}: without {before:.0f} us ({about_off}); with {after:.0f} us "
              f"({about_on}); ratio {statistics.median(ratios):.2f}")  # fmt: skip
    del library


if __name__ == "__main__":
    main()
