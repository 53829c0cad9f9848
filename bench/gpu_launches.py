"""What a GPU runs in a call of a model, launch by launch, beside Inductor.

    python -m bench.gpu_launches [--models llama-100m,t5-small] [--most 20] [--alone]
    python -m bench.gpu_turns --modes default --launches 20    # compiles the models at once

A line a side: how many launches a call has, and how long they take together; then the kernels that
take longest, each with its time in all and by launch (the median of CALLS calls, by the profiler),
how often it is launched, and its first launch's program instances, threads and registers. bf16.

Then the sides stretch by stretch: what both leave to a library (products, convolutions, attention)
cuts a call into stretches, one such launch or all that is launched between two, since the sides
fuse in other places. `behind` are the stretches that take irc more than MOST_RATIO of Inductor's
time, and more than NOISE_US longer, equal ones in one line.
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
import statistics
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import torch
from torch.profiler import ProfilerActivity, profile

import irc  # noqa: F401  # so that an uninstalled checkout is found too
from bench.gpu_builders import SMALL, find
from bench.gpu_models import on_gpu, stepper

CALLS, WARM = 9, 3
KINDS = ("kernel", "gpu_memcpy", "gpu_memset")
MOST_RATIO, NOISE_US = 1.03, 0.25
#: How libraries name their kernels, by what these compute. Attention's come first: cuDNN's are
#: called after the products in them, too.
FAMILIES = {
    "attention": re.compile(r"sdpa|fmha|flash|attention", re.IGNORECASE),
    "convolution": re.compile(r"fprop|dgrad|wgrad|conv|winograd", re.IGNORECASE),
    "product": re.compile(r"gemm|gemv|nvjet|cutlass|splitk", re.IGNORECASE),
}
#: How both compilers name their kernels, which are no library's.
OF_COMPILERS = re.compile(r"triton_|k\d+|irc")


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


def family_of(launch: Launch) -> str | None:
    """What a library's kernel computes; None for a compiler's."""
    if OF_COMPILERS.match(launch.name):
        return None
    return next((f for f, form in FAMILIES.items() if form.search(launch.name)), None)


@attrs.frozen
class Stretch:
    """What two sides launch for the same part of a call."""

    family: str | None
    mine: tuple[Launch, ...]
    theirs: tuple[Launch, ...]

    @property
    def us(self) -> tuple[float, float]:
        """Microseconds of both sides."""
        return sum(e.us for e in self.mine), sum(e.us for e in self.theirs)

    @property
    def behind(self) -> bool:
        """Whether it takes irc longer, by more than is allowed."""
        mine, theirs = self.us
        return mine > MOST_RATIO * theirs and mine - theirs > NOISE_US


def stretches(mine: list[Launch], theirs: list[Launch]) -> Iterator[Stretch]:
    """Both sides cut at the library's kernels that they have in common, in order."""
    places = [[i for i, e in enumerate(side) if family_of(e)] for side in (mine, theirs)]
    words = [[family_of(side[i]) for i in at]
             for side, at in zip((mine, theirs), places, strict=True)]  # fmt: skip
    blocks = difflib.SequenceMatcher(None, *words, autojunk=False).get_matching_blocks()
    begin = (0, 0)
    for block in blocks:
        for k in range(block.size):
            i, j = places[0][block.a + k], places[1][block.b + k]
            if i > begin[0] or j > begin[1]:
                yield Stretch(None, tuple(mine[begin[0] : i]), tuple(theirs[begin[1] : j]))
            yield Stretch(family_of(mine[i]), (mine[i],), (theirs[j],))
            begin = (i + 1, j + 1)
    if len(mine) > begin[0] or len(theirs) > begin[1]:
        yield Stretch(None, tuple(mine[begin[0] :]), tuple(theirs[begin[1] :]))


def compare(title: str, mine: list[Launch], theirs: list[Launch]) -> None:
    """Print the stretches that are behind."""
    every = list(stretches(mine, theirs))
    behind = [s for s in every if s.behind]
    lost = sum(s.us[0] - s.us[1] for s in behind)
    print(f"{title}: {len(every)} stretches, {len(behind)} behind by {lost:.1f} us", flush=True)
    alike: dict[tuple[Any, ...], list[Stretch]] = {}
    for each in behind:
        names = tuple(tuple(e.name for e in side) for side in (each.mine, each.theirs))
        alike.setdefault(names, []).append(each)
    for group in sorted(alike.values(), key=lambda g: -sum(s.us[0] - s.us[1] for s in g)):
        us = [statistics.mean(s.us[side] for s in group) for side in (0, 1)]
        names = [" + ".join(e.name[:50] for e in side) or "none"
                 for side in (group[0].mine, group[0].theirs)]  # fmt: skip
        print(f"  behind {len(group):3} x {us[0]:7.2f} us, Inductor {us[1]:7.2f}: "
              f"{names[0]} | {names[1]}", flush=True)  # fmt: skip


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
        sides = []
        for backend in ("irc",) if options.alone else ("irc", "inductor"):
            torch._dynamo.reset()
            run = torch.compile(lambda *x, module=module: module(*x), backend=backend)
            sides.append(launches_of(stepper(model, module, run, inputs)))
            tell(f"{name} {backend}", sides[-1], options.most)
        if not options.alone:
            compare(name, *sides)


if __name__ == "__main__":
    main()
