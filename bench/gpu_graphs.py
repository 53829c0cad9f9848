"""CUDA graphs: whether results stay right over many calls, and what a call takes.

    python -m bench.gpu_graphs --calls 10000                   # results, sizes changing, threads
    python -m bench.gpu_graphs --models bert-base,gpt2-small   # wall ms a call, against Inductor

Wall: the median over ROUNDS of a call until the GPU is done, sides taking turns, bf16, inference.
GPU: what the same launches take when they follow each other (BATCH replays between two
synchronizations).
"""

from __future__ import annotations

import argparse
import statistics
import threading
import time
from collections.abc import Callable
from typing import Any

import torch

import irc  # noqa: F401  # so that an uninstalled checkout is found too

ROUNDS, BATCH = 41, 20


def block(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Products and what stands between them, with a reduction."""
    for _ in range(3):
        x = torch.nn.functional.layer_norm(torch.relu(x @ w) + x, [x.shape[1]])
    return x @ w


def many_calls(calls: int) -> None:
    """Calls of changing sizes from two threads; each result is compared when it is 50 calls old."""
    w = torch.randn(64, 64, device="cuda", dtype=torch.bfloat16) / 8
    run = torch.compile(block, backend="irc", mode="reduce-overhead", dynamic=True)
    wrong: list[int] = []
    lock = threading.Lock()

    def worker(seed: int) -> None:
        made = torch.Generator("cuda").manual_seed(seed)
        held: list[tuple[torch.Tensor, torch.Tensor]] = []
        with torch.no_grad():
            inputs = [torch.randn(n, 64, device="cuda", dtype=torch.bfloat16, generator=made)
                      for n in (3, 8, 17, 32, 33)]  # fmt: skip
            with lock:
                wanted = [run(x, w).clone() for x in inputs]
            for call in range(calls // 2):
                which = call * 7 % 5
                held.append((run(inputs[which].clone(), w), wanted[which]))
                if len(held) == 50:
                    wrong.extend(call for a, b in held if not torch.equal(a, b))
                    held.clear()

    start = time.perf_counter()
    threads = [threading.Thread(target=worker, args=(seed,)) for seed in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    taken = time.perf_counter() - start
    print(f"{calls} calls of 5 sizes in 2 threads: {len(wrong)} wrong, {taken:.1f} s", flush=True)


def wall_ms(call: Callable[[], object]) -> float:
    """One call until the GPU is done."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    call()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) * 1e3


def batch_ms(call: Callable[[], object]) -> float:
    """A call among BATCH that follow each other."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(BATCH):
        call()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) * 1e3 / BATCH


def host_ms(call: Callable[[], object]) -> float:
    """Until a call returns, without waiting for the GPU."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    call()
    taken = (time.perf_counter() - start) * 1e3
    torch.cuda.synchronize()
    return taken


def model_lines(name: str, peer: bool) -> None:
    """Print a model's times."""
    from bench.builders import find

    found = find(name)
    model = found.make().to("cuda", torch.bfloat16)
    inputs = [t.cuda().bfloat16() if t.is_floating_point() else t.cuda() for t in found.inputs()]
    sides: dict[str, Any] = {
        "irc": torch.compile(lambda *x: model(*x), backend="irc"),
        "irc graphs": torch.compile(lambda *x: model(*x), backend="irc", mode="reduce-overhead"),
    }
    if peer:
        sides["inductor graphs"] = torch.compile(lambda *x: model(*x), mode="reduce-overhead")
    with torch.no_grad():
        for side, run in sides.items():
            start = time.perf_counter()
            for _ in range(4):
                run(*inputs)
            torch.cuda.synchronize()
            print(f"# {name} {side}: first four calls {time.perf_counter() - start:.1f} s",
                  flush=True)  # fmt: skip
        for kind, measure in (("wall", wall_ms), ("host", host_ms), ("batch", batch_ms)):
            times: dict[str, list[float]] = {side: [] for side in sides}
            for _ in range(ROUNDS):
                for side, run in sides.items():
                    times[side].append(measure(lambda r=run: r(*inputs)))
            told = ", ".join(f"{s} {statistics.median(t):.3f}" for s, t in times.items())
            print(f"{name} {kind} ms: {told}", flush=True)


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--calls", type=int, default=0)
    parser.add_argument("--models", default="")
    parser.add_argument("--alone", action="store_true", help="without Inductor")
    options = parser.parse_args()
    print(f"# {torch.cuda.get_device_name()}, torch {torch.__version__}")
    if options.calls:
        many_calls(options.calls)
    for name in filter(None, options.models.split(",")):
        model_lines(name, not options.alone)


if __name__ == "__main__":
    main()
