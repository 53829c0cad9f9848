"""Models on a GPU under max-autotune, CUDA graphs on both sides: irc against TorchInductor, many
models in a short time.

    python -m bench.tuned_models [--models bert-base,gpt2-small] [--patience 170] [--again]

A process a model. irc is tuned with an empty store, one model at a time, on all processors; its
line has the seconds of the first call, those that it measured, and how many candidates it built,
the same for a second compile with the store that the first one filled. Inductor's sides, and with
--plain irc's with CUDA graphs alone, are compiled all at once on PROCESSORS of the machine's each,
for as long as PATIENCE: Inductor measures while others compile and measure. Then one model after
another is clocked, sides taking turns, as `bench.gpu_models` does, while nothing else runs. With
--again each of Inductor's sides is then compiled once more by itself, from the kernels that it left
on disk but without its choices, which nothing disturbs now, and clocked again beside irc's.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import tempfile
import time
import traceback
from multiprocessing.connection import Connection
from types import FunctionType
from typing import Any

from bench.common import geometric_mean
from bench.gpu_turns import PROCESSORS, _ready

#: What TorchInductor's mode is, but for choices that it kept, so that each compile measures.
PEER = {"max_autotune": True, "triton.cudagraphs": True, "coordinate_descent_tuning": True,
        "autotune_local_cache": False, "fx_graph_cache": False}  # fmt: skip
KINDS = ("wall", "host", "gpu")


class Compiler:
    """A model whose sides are compiled, each with code of its own, so that Dynamo looks through no
    others' entries."""

    def __init__(self, name: str, asked: argparse.Namespace) -> None:
        import torch

        from bench import gpu_models
        from bench.gpu_builders import find

        self.name, self.model, dtype = name, find(name), getattr(torch, asked.dtype)
        self.module = self.model.make().cuda().to(dtype)
        self.inputs = gpu_models.on_gpu(self.model.inputs(), dtype)
        torch.manual_seed(0)
        self.eager = gpu_models.stepper(self.model, self.module, self.module, self.inputs)()
        self.count = 0

    def side(self, backend: str, options: dict[str, Any]) -> Any:
        """A side, called until it is warm."""
        import torch

        from bench import gpu_models

        module = self.module

        def call(*x: Any) -> Any:
            return module(*x)

        self.count += 1
        label = f"{backend}_{self.count}"
        code = call.__code__.replace(co_name=label)
        own = FunctionType(code, call.__globals__, label, None, call.__closure__)
        run = torch.compile(own, backend=backend, options=options)
        step = gpu_models.stepper(self.model, module, run, self.inputs)
        return gpu_models.warmed(backend, step, self.eager)

    def tuned(self, budget: int, remarks: bool) -> Any:
        """irc's side with the store as it is; what tuning took is printed."""
        import irc
        from irc.options.options import MODES
        from irc.tuning import session

        sessions: list[session.Session] = []
        contexts: list[Any] = []
        plain, lower = session.Session, irc.pipeline.lower

        class Noted(plain):  # type: ignore[misc, valid-type]
            def __init__(self, *known: Any, **named: Any) -> None:
                super().__init__(*known, **named)
                sessions.append(self)

        def noted(*known: Any, **named: Any) -> Any:
            contexts.append(lower(*known, **named))
            return contexts[-1]

        session.Session, irc.pipeline.lower = Noted, noted  # type: ignore[misc]
        irc.metrics.reset()
        try:
            side = self.side("irc", {**MODES["max-autotune"], "fx_graph_cache": False,
                                     "remarks": "no remark is told like this",
                                     "max_autotune_budget": budget})  # fmt: skip
        finally:
            session.Session, irc.pipeline.lower = plain, lower  # type: ignore[misc]
        counted = irc.metrics.snapshot()
        told = ", ".join(f"{what} {counted[key]}" for key, what in (
            ("autotune_problems", "problems"), ("autotune_cut_short", "cut short"),
            ("autotune_candidates", "candidates built"), ("autotune_workers", "workers"),
            ("autotune_local_hits", "from the store")) if key in counted)  # fmt: skip
        seconds = sum(each.spent for each in sessions)
        print(f"{self.name} tuned: first call {side.first:.1f} s, of which {seconds:.1f} s are "
              f"measuring; {told}", flush=True)  # fmt: skip
        if remarks:
            texts = [r.text for c in contexts for r in c.remarks
                     if r.pass_name in ("choose-contractions", "tune")]  # fmt: skip
            for text in dict.fromkeys(texts):
                print(f"    {self.name}: {text[:230]}", flush=True)
        return side


def _compiled(compiler: Compiler, every: list[int], lock: Any, asked: argparse.Namespace) -> Any:
    """irc's side, when no other model's is tuned, and then Inductor's."""
    own = os.sched_getaffinity(0)
    sides: dict[str, Any] = {}

    def tune() -> None:
        os.sched_setaffinity(0, every)
        sides["irc"] = compiler.tuned(asked.budget, True)
        compiler.tuned(asked.budget, False)
        os.sched_setaffinity(0, own)

    def peer() -> None:
        if not asked.alone:
            sides["inductor"] = compiler.side("inductor", PEER)
        if asked.plain:
            sides["plain"] = compiler.side("irc", {"triton.cudagraphs": True})
            sides["plain"].name = "irc untuned"

    with lock:
        tune()
    peer()
    return [sides[key] for key in ("irc", "inductor", "plain") if key in sides]


def _clocked(name: str, mode: str, sides: list[Any]) -> dict[str, float]:
    from bench import gpu_models

    gpu_models.measured(sides)
    for each in sides:
        print(gpu_models.line(name, mode, each), flush=True)
    ratios = {kind: getattr(sides[0], kind) / getattr(sides[1], kind)
              for kind in KINDS if sides[1:] and sides[1].name == "inductor"}  # fmt: skip
    if sides[-1].name == "irc untuned":
        ratios["of untuned"] = sides[0].wall / sides[-1].wall
    return ratios


def child(
    parent: Connection, name: str, number: int, lock: Any, asked: argparse.Namespace
) -> None:
    """Compile, say so, wait, clock; again, if that is asked."""
    try:
        start = time.perf_counter()
        every = sorted(os.sched_getaffinity(0))
        count = min(asked.processors, len(every))
        os.sched_setaffinity(0, {every[(count * number + i) % len(every)] for i in range(count)})
        compiler = Compiler(name, asked)
        sides = _compiled(compiler, every, lock, asked)
        parent.send(time.perf_counter() - start)
        parent.recv()
        os.sched_setaffinity(0, every)
        parent.send(_clocked(name, "max-autotune", sides))
        if parent.recv() and not asked.alone:
            again = [sides[0], compiler.side("inductor", PEER)]
            parent.send(_clocked(name, "max-autotune again", again))
        else:
            parent.send({})
    except Exception as error:
        traceback.print_exc()
        text = " ".join(str(error).split())[:300]
        print(f"{name} FAILED {type(error).__name__}: {text}", flush=True)
    parent.close()


def measure(names: list[str], asked: argparse.Namespace) -> list[dict[str, dict[str, float]]]:
    """The ratios by name, of the first and of the second compile, lines printed on the way."""
    spawn = multiprocessing.get_context("spawn")
    connections: dict[str, Connection] = {}
    lock, processes = spawn.Lock(), []
    for number, name in enumerate(names):
        mine, its = spawn.Pipe()
        process = spawn.Process(target=child, args=(its, name, number, lock, asked))
        process.start()
        its.close()
        connections[name] = mine
        processes.append(process)
    ready = _ready(connections, time.perf_counter() + asked.patience)
    found: list[dict[str, dict[str, float]]] = [{}, {}]
    order = [*ready, *(n for n in names if n not in ready)]
    for turn in range(2):
        for name in order:
            connection = connections[name]
            try:
                if not turn and name not in ready:
                    connection.recv()
                connection.send(bool(turn) and asked.again)
                found[turn][name] = connection.recv()
            except (EOFError, BrokenPipeError):
                continue
        told(found[turn], "again" if turn else "at once")
    for process in processes:
        process.join()
    return found


def told(ratios: dict[str, dict[str, float]], how: str) -> None:
    """Print what irc's figures are of Inductor's."""
    for kind in dict.fromkeys(key for each in ratios.values() for key in each):
        names = [name for name, known in ratios.items() if kind in known]
        each = [ratios[name][kind] for name in names]
        print(f"max-autotune {how} {kind}: geometric mean {geometric_mean(each):.3f}, "
              + " ".join(f"{n} {r:.2f}" for n, r in zip(names, each, strict=True)),
              flush=True)  # fmt: skip


def main() -> None:
    """Measure what is asked for, and print the ratios."""
    from bench.gpu_builders import GROUPS

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", default="", help="names, with commas between")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--alone", action="store_true", help="without Inductor")
    parser.add_argument("--plain", action="store_true", help="irc without tuning, too")
    parser.add_argument("--again", action="store_true", help="Inductor once more, by itself")
    parser.add_argument("--budget", type=int, default=15, help="of irc's tuning, seconds")
    parser.add_argument("--patience", type=float, default=170.0, help="seconds for compiling")
    parser.add_argument("--processors", type=int, default=PROCESSORS, help="for Inductor's side")
    asked = parser.parse_args()
    names = asked.models.split(",") if asked.models else list(GROUPS["small"])
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("IRC_CACHE_DIR", folder)
        measure(names, asked)


if __name__ == "__main__":
    main()
