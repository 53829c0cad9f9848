"""Models on a GPU under max-autotune, with CUDA graphs: irc against TorchInductor in one process.

    python -m bench.tuned_models [--models bert-base,gpt2-small] [--sides tuned,plain,inductor]

A model's lines: `tuned`, the seconds of its first call with an empty store (that of IRC_CACHE_DIR,
if it is set) and what of them was measuring, those with a filled store, how many problems there
were and who computes each; then the lines of `bench.gpu_models` for irc tuned, irc with CUDA graphs
alone (`plain`, reduce-overhead), and Inductor's max-autotune, which took turns. No model begins
after --seconds.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from typing import Any

import torch

import irc
from bench import gpu_models
from bench.common import geometric_mean
from bench.gpu_builders import GROUPS, find
from irc.ir.passes import PassContext
from irc.tuning import session

MODE, PLAIN = "max-autotune", "reduce-overhead"
PASSES = ("choose-contractions", "tune")


class Noted(session.Session):
    """A session that is remembered."""

    def __init__(self, *known: Any, **named: Any) -> None:
        super().__init__(*known, **named)
        sessions.append(self)


sessions: list[Noted] = []
contexts: list[PassContext] = []


def told_by(name: str, tuned: list[gpu_models.Side], spent: list[float]) -> None:
    """Print what tuning took, and what it found."""
    times = "; with a filled store ".join(
        f"{side.first:.1f} s, of which {seconds:.1f} s are measuring"
        for side, seconds in zip(tuned, spent, strict=True)
    )
    print(f"{name} tuned: first call {times}; {irc.metrics.autotune_problems} problems, "
          f"{irc.metrics.autotune_cut_short} cut short", flush=True)  # fmt: skip
    for remark in dict.fromkeys(r.text for c in contexts for r in c.remarks
                                if r.pass_name in PASSES):  # fmt: skip
        print("   ", remark[:230], flush=True)


def clocked(name: str, sides: list[tuple[str, gpu_models.Side]]) -> None:
    """Measure the sides in turn, and print their lines."""
    gpu_models.measured([side for _, side in sides])
    for mode, side in sides:
        print(gpu_models.line(name, mode, side), flush=True)


def compared(name: str, asked: argparse.Namespace) -> list[gpu_models.Side]:
    """Compile and clock a model; its sides, irc tuned first."""
    dtype, peers = getattr(torch, asked.dtype), asked.sides.split(",")
    model = find(name)
    module = model.make().cuda().to(dtype)
    inputs = gpu_models.on_gpu(model.inputs(), dtype)
    eager = gpu_models.stepper(model, module, module, inputs)()
    sessions.clear()
    contexts.clear()
    irc.metrics.reset()
    options = {"max_autotune": True, "coordinate_descent_tuning": True, "triton.cudagraphs": True,
               "remarks": "no remark is told like this", "fx_graph_cache": False}  # fmt: skip
    tuned, spent = [], []
    for _ in range(asked.times if "tuned" in peers else 0):
        before = len(sessions)
        run = torch.compile(lambda *x: module(*x), backend="irc", options=options)
        call = gpu_models.stepper(model, module, run, inputs)
        tuned.append(gpu_models.warmed("irc", call, eager))
        spent.append(sum(each.spent for each in sessions[before:]))
        told_by(name, tuned, spent)
    sides = [(MODE, side) for side in tuned[:1]]
    if "plain" in peers:
        sides.append((PLAIN, gpu_models.made(name, "irc", PLAIN, inputs, module, eager)))
        clocked(name, sides)
    if "inductor" in peers:
        sides.append((MODE, gpu_models.made(name, "inductor", MODE, inputs, module, eager)))
        clocked(name, sides)
    return [side for _, side in sides]


def main() -> None:
    """Run all models."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", default="", help="names, with commas between")
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--sides", default="tuned,plain,inductor")
    parser.add_argument("--times", type=int, default=2, help="compiles of irc tuned")
    asked = parser.parse_args()
    start, lower = time.perf_counter(), irc.pipeline.lower

    def noted(*known: Any, **named: Any) -> PassContext:
        contexts.append(lower(*known, **named))
        return contexts[-1]

    session.Session, irc.pipeline.lower = Noted, noted
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("IRC_CACHE_DIR", folder)
        for name in asked.models.split(",") if asked.models else list(GROUPS["small"]):
            if time.perf_counter() - start > asked.seconds:
                break
            sides = compared(name, asked)
            if len(sides) > 1:
                ratios.append(sides[0].wall / sides[-1].wall)
            torch._dynamo.reset()
    if ratios:
        print(f"wall of the last side's: geometric mean {geometric_mean(ratios):.3f}, "
              + " ".join(f"{ratio:.2f}" for ratio in ratios))  # fmt: skip


if __name__ == "__main__":
    main()
