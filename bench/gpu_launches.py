"""What a GPU runs in a call of a model, launch by launch, beside Inductor.

    python -m bench.gpu_launches [--models llama-100m,t5-small] [--most 20] [--alone]

A line a side: how many launches a call has, and how long they take together; then the kernels that
take longest, each with its time in all and by launch (the median of CALLS calls, by the profiler),
how often it is launched, and its first launch's program instances, threads and registers. bf16.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Callable
from typing import Any

import attrs
import torch
from torch.profiler import ProfilerActivity, profile

import irc  # noqa: F401  # so that an uninstalled checkout is found too
from bench.gpu_builders import SMALL, find
from bench.gpu_models import on_gpu, stepper

CALLS, WARM = 9, 3
KINDS = ("kernel", "gpu_memcpy", "gpu_memset")


@attrs.frozen
class Launch:
    """One launch of a call: microseconds, the kernel, and how it was launched."""

    us: float
    name: str
    shape: str


def events_of(call: Callable[[], object]) -> list[dict[str, Any]]:
    """What the GPU ran in one call, in order."""
    with profile(activities=[ProfilerActivity.CUDA]) as record:
        call()
        torch.cuda.synchronize()
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        record.export_chrome_trace(file.name)
        with open(file.name, encoding="utf-8") as text:
            events = json.load(text)["traceEvents"]
    return sorted((e for e in events if e.get("cat") in KINDS), key=lambda e: e["ts"])


def launches_of(call: Callable[[], object]) -> list[Launch]:
    """The launches of a call, each with its median time."""
    for _ in range(WARM):
        call()
    torch.cuda.synchronize()
    calls = [events_of(call) for _ in range(CALLS)]
    length = statistics.mode(map(len, calls))
    calls = [events for events in calls if len(events) == length]
    launches = []
    for number, event in enumerate(calls[0]):
        facts = event["args"]
        sizes = [facts.get("grid") or [0], facts.get("block") or [0]]
        counts = "x".join(str(torch.Size(size).numel()) for size in sizes)
        us = statistics.median(events[number]["dur"] for events in calls)
        shape = f"{counts} r{facts.get('registers per thread', 0)}"
        launches.append(Launch(us, event["name"], shape))
    return launches


def tell(title: str, launches: list[Launch], most: int) -> None:
    """Print a side."""
    print(f"{title}: {len(launches)} launches, {sum(e.us for e in launches):.1f} us", flush=True)
    kernels: dict[str, list[Launch]] = {}
    for each in launches:
        kernels.setdefault(each.name, []).append(each)
    ranked = sorted(kernels.items(), key=lambda pair: -sum(e.us for e in pair[1]))
    for name, group in ranked[:most]:
        total = sum(e.us for e in group)
        print(f"  {total:9.1f} us {len(group):4} x {total / len(group):8.2f}  "
              f"{group[0].shape:18} {name[:80]}", flush=True)  # fmt: skip


def main() -> None:
    """Profile what is asked for, and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", default=",".join(SMALL), help="names, with commas between")
    parser.add_argument("--most", type=int, default=20, help="kernels of a side")
    parser.add_argument("--alone", action="store_true", help="without Inductor")
    options = parser.parse_args()
    print(f"# {torch.cuda.get_device_name()}, torch {torch.__version__}", flush=True)
    for name in options.models.split(","):
        model = find(name)
        module = model.make().cuda().bfloat16()
        inputs = on_gpu(model.inputs(), torch.bfloat16)
        for backend in ("irc",) if options.alone else ("irc", "inductor"):
            torch._dynamo.reset()
            run = torch.compile(lambda *x, module=module: module(*x), backend=backend)
            launches = launches_of(stepper(model, module, run, inputs))
            tell(f"{name} {backend}", launches, options.most)


if __name__ == "__main__":
    main()
