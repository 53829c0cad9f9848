"""First calls of a model on a GPU, each in a process of its own: aot_eager, irc cold and warm.

    python -m bench.gpu_first [--model bert-base] [--repeats 2] [--dtype bfloat16]

Every process imports irc, makes the model and calls it once in eager mode; when all have, one after
another makes its first compiled call, while the others sleep. *Cold*: an empty cache folder;
*warm*: the folder that a cold one of before left. A line a process: seconds until the GPU is done;
the last lines are irc's medians less aot_eager's.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import tempfile
import time
from multiprocessing.connection import Connection

SIDES = (("aot_eager", "cold"), ("irc", "cold"), ("irc", "warm"))


def _first(pipe: Connection, name: str, dtype: str, backend: str, folder: str) -> None:
    """A process: says that it is ready, waits, and tells the seconds of the first call."""
    os.environ["IRC_CACHE_DIR"] = folder
    import torch

    import irc  # noqa: F401  # so that an uninstalled checkout is found too
    from bench.gpu_builders import find
    from bench.gpu_models import on_gpu

    model = find(name)
    element = getattr(torch, dtype)
    module = model.make().cuda().to(element)
    inputs = on_gpu(model.inputs(), element)
    with torch.no_grad():
        module(*inputs)
        torch.cuda.synchronize()
        pipe.send("ready")
        pipe.recv()
        start = time.perf_counter()
        torch.compile(module, backend=backend)(*inputs)
        torch.cuda.synchronize()
        pipe.send(time.perf_counter() - start)


def seconds(name: str, dtype: str, repeats: int) -> dict[tuple[str, str], list[float]]:
    """Seconds of each side's first calls; prints each."""
    context = multiprocessing.get_context("spawn")
    started = []
    with tempfile.TemporaryDirectory() as root:
        for repeat in range(repeats):
            folder = os.path.join(root, str(repeat))
            os.mkdir(folder, 0o700)
            for side in SIDES:
                here, there = context.Pipe()
                process = context.Process(
                    target=_first, args=(there, name, dtype, side[0], folder), daemon=False
                )
                process.start()
                there.close()
                started.append((side, here, process))
        for _, pipe, _ in started:
            pipe.recv()
        found: dict[tuple[str, str], list[float]] = {side: [] for side in SIDES}
        for side, pipe, process in started:
            pipe.send("go")
            found[side].append(pipe.recv())
            print(f"{name} {' '.join(side)}: {found[side][-1]:.2f} s", flush=True)
            process.join()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--model", default="bert-base")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--dtype", default="bfloat16")
    options = parser.parse_args()
    found = seconds(options.model, options.dtype, options.repeats)
    base = statistics.median(found["aot_eager", "cold"])
    for side in SIDES[1:]:
        more = statistics.median(found[side]) - base
        print(f"{options.model} {' '.join(side)}: aot_eager's + {more:.2f} s")


if __name__ == "__main__":
    main()
