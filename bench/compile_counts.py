"""Compile time as executed opcodes: the same number on any machine, however busy.

    python -m bench.compile_counts [--against irc@76fb8cb] [--filter warm] [--functions 30]

Rows, each of a new process:

* `help`: `irc-opt --help`; `entry`: importing irc and its backend once torch is loaded;
* `cold NAME`: the first torch.compile of a process, empty cache, irc's imports included;
* `warm NAME`: the same with the cache that such a process left;
* `lower NAME`: the passes alone on the graphs (forward and backward) of a program, each pass run
  before, so that nothing is loaded; `compile NAME`: all that irc does to compile it, likewise;
* `ir TASK`: the tasks of `bench.ir_speed` on 1,000 operations.

The last column is the number of irc's modules that the row's process loaded. With `--against`
(`irc@REVISION` or `irc@FOLDER`) each row is run for both, and the ratio is this checkout's. With
`--functions N` the N functions that rose most are listed for each row, by name. With
`--seconds REPEATS` the rows are clocked instead, in seconds of processor time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.common import (
    ROOT,
    folder_of,
    geometric_mean,
    median_ratio,
    print_load,
    side_name,
    table,
    write_results,
)
from bench.opcodes import Clocked, Counted

IR_TASKS = ("parse", "build", "print", "verify", "clone", "canonicalize", "cse", "dce", "rewrite")
WARM = ("block", "convolutions", "pointwise")
Measure = Counted | Clocked


# -- the programs


def _programs() -> dict[str, tuple[Callable[..., Any], Callable[[], list[Any]], bool, bool]]:
    """By name: a function, its arguments, whether it is trained, whether sizes are symbols."""
    import torch

    F = torch.nn.functional

    def pointwise(x, y):
        return (x * y).exp() + x.sigmoid() - y

    def block(x, qkv, out, up, down, scale, shift):
        size = x.shape[-1]
        q, k, v = F.linear(x, qkv).split(size, 2)
        q, k, v = (t.view(*t.shape[:2], 4, size // 4).transpose(1, 2) for t in (q, k, v))
        mask = torch.ones(x.shape[1], x.shape[1]).tril() == 0
        a = (q @ k.transpose(-2, -1) / 4).masked_fill(mask, float("-inf")).softmax(-1)
        x = x + F.linear((a @ v).transpose(1, 2).reshape(x.shape), out)
        h = F.gelu(F.linear(F.layer_norm(x, [size], scale, shift), up), approximate="tanh")
        return x + F.linear(h, down)

    def convolutions(x, w, scale, shift, v):
        y = F.relu(F.batch_norm(F.conv2d(x, w, padding=1), None, None, scale, shift, True))
        return F.max_pool2d(F.conv2d(y, v, padding=1) + y, 2).mean((2, 3))

    def tokens(ids, table, w, labels):
        return F.cross_entropy(F.linear(table[ids].mean(1), w), labels)

    def recurrent(x, w, u):
        h = torch.zeros(x.shape[0], w.shape[0])
        for step in range(6):
            h = torch.tanh(F.linear(x[:, step], w) + F.linear(h, u))
        return h

    def rotary(x, cos, sin, scale):
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * scale
        half = x.shape[-1] // 2
        turned = torch.cat([-x[..., half:], x[..., :half]], -1)
        return F.scaled_dot_product_attention(x * cos + turned * sin, x, x)

    def gathers(x, index, y):
        best, at = x.max(1)
        z = x.scatter_add(1, index, y).cumsum(1)
        return z.gather(1, index) + best[:, None], at, z.var(0)

    def half(x, w):
        return F.silu(x @ w).softmax(-1) * x[:, :1], (x + 1).sum(0)

    def randn(*sizes: int, dtype: Any = None) -> Any:
        return torch.randn(*sizes, dtype=dtype)

    def indices(high: int, *sizes: int) -> Any:
        return torch.randint(0, high, sizes)

    def of_block() -> list[Any]:
        sizes = (2, 16, 32), (96, 32), (32, 32), (128, 32), (32, 128), (32,), (32,)
        return [randn(*s) for s in sizes]

    return {
        "pointwise": (pointwise, lambda: [randn(37, 65), randn(37, 65)], False, False),
        "block": (block, of_block, True, False),
        "convolutions": (
            convolutions,
            lambda: [randn(2, 3, 16, 16), randn(8, 3, 3, 3), randn(8), randn(8), randn(8, 8, 3, 3)],
            True, False,
        ),
        "tokens": (
            tokens, lambda: [indices(50, 4, 9), randn(50, 16), randn(10, 16), indices(10, 4)],
            True, False,
        ),
        "recurrent": (recurrent, lambda: [randn(3, 6, 8), randn(8, 8), randn(8, 8)], True, False),
        "rotary": (
            rotary, lambda: [randn(2, 4, 16, 8), randn(16, 8), randn(16, 8), randn(8)],
            False, True,
        ),
        "gathers": (
            gathers, lambda: [randn(6, 40), indices(40, 6, 11), randn(6, 11)], False, False,
        ),
        "half": (
            half, lambda: [randn(*sizes, dtype=torch.bfloat16) for sizes in ((24, 32), (32, 32))],
            False, False,
        ),
    }  # fmt: skip


def _step(name: str) -> Callable[[], None]:
    """A function that compiles the program of a name and calls it once, forward and backward."""
    import torch

    function, make, trained, dynamic = _programs()[name]
    torch.manual_seed(0)
    arguments = make()
    if trained:
        arguments = [a.requires_grad_() if a.is_floating_point() else a for a in arguments]
    call = torch.compile(function, backend="irc", dynamic=dynamic)

    def step() -> None:
        if not trained:
            with torch.no_grad():
                call(*arguments)
        else:
            call(*arguments).sum().backward()

    return step


# -- the rows, in the process of a side


def _loaded_torch() -> None:
    import torch._dynamo.backends.common
    import torch._functorch.aot_autograd
    import torch._functorch.partitioners  # noqa: F401


def _help(counted: Measure) -> None:
    with counted.running():
        from irc.tools.irc_opt import main

        try:
            main(["--help"])
        except SystemExit:
            pass


def _entry(counted: Measure) -> None:
    _loaded_torch()
    with counted.running():
        import irc.frontend.backend  # noqa: F401


def _first(counted: Measure, name: str) -> None:
    _loaded_torch()
    _programs()
    with counted.running():
        import irc  # noqa: F401
    step = _step(name)
    with counted.running():
        step()


def _loaded() -> None:
    """Import all of irc, and compile something, so that nothing is left to be made ready."""
    from bench.compile_time import import_all

    _loaded_torch()
    import_all("irc")
    _step("tokens")()


def _compile(counted: Measure, name: str) -> None:
    import torch

    _loaded()
    torch._dynamo.reset()
    os.environ["IRC_CACHE_DIR"] = tempfile.mkdtemp(dir=os.environ["IRC_CACHE_DIR"])
    step = _step(name)
    with counted.running():
        step()


def _lower(counted: Measure, name: str) -> None:
    _loaded()
    import torch

    from irc import gc_paused, pipeline
    from irc.frontend.backend import recording

    torch._dynamo.reset()
    with recording() as record:
        _step(name)()
    modules = [compiled.imported.module for compiled in record]
    for module in modules:
        pipeline.lower(module.clone(), functional=True)
    with counted.running(), gc_paused:
        for module in modules:
            pipeline.lower(module, functional=True)


def _ir(counted: Measure, name: str) -> None:
    from bench.ir_speed import irc_tasks, program

    text = program(1000)
    tasks = irc_tasks(text, 1000)
    for timed in (False, True):
        module = [] if name in ("parse", "build") else [tasks["parse"]()]
        if timed:
            with counted.running():
                tasks[name](*module)
        else:
            tasks[name](*module)


ROWS: dict[str, Callable[..., None]] = {
    "help": _help, "entry": _entry, "cold": _first, "warm": _first, "lower": _lower,
    "compile": _compile, "ir": _ir,
}  # fmt: skip


def child(row: str, clock: bool = False) -> dict[str, Any]:
    """The figures of a row, counted (or clocked) in this process."""
    folder = str(Path.cwd() / "irc")
    counted = Clocked() if clock else Counted(folder)
    kind, _, name = row.partition(" ")
    ROWS[kind](counted, *([name] if name else []))
    modules = {n: m for n, m in sys.modules.items() if n.partition(".")[0] == "irc"}
    strangers = [n for n, m in modules.items() if not str(m.__file__).startswith(folder)]
    if strangers:  # beside an editable install its modules are found, too
        raise SystemExit(f"of another checkout: {', '.join(strangers)}")
    if isinstance(counted, Clocked):
        return {"seconds": counted.seconds, "modules": len(modules)}
    places = [[*place, count] for place, count in counted.places().items()]
    return {"opcodes": counted.total(), "modules": len(modules), "places": places}


# -- all rows, for both sides


def rows() -> list[str]:
    """The names of all rows."""
    programs = list(_programs())
    return [
        "help", "entry", *(f"warm {p}" for p in WARM), *(f"cold {p}" for p in WARM),
        *(f"lower {p}" for p in programs), *(f"compile {p}" for p in programs),
        *(f"ir {task}" for task in IR_TASKS),
    ]  # fmt: skip


def run_row(row: str, side: str, cache: str, clock: bool = False) -> dict[str, Any]:
    """A row's figures from a new process of a side; CalledProcessError if it fails."""
    revision = side.partition("@")[2]
    environment = {
        **os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0", "IRC_CACHE_DIR": cache,
        "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.NamedTemporaryFile("r", suffix=".json") as file:
        subprocess.run(
            [sys.executable, "-m", "bench.compile_counts", "--child", row, "--into", file.name,
             *["--clock"] * clock],
            cwd=folder_of(revision) if revision else ROOT, env=environment, check=True,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        return json.load(file)


def measure(row: str, side: str, clock: bool = False) -> dict[str, Any]:
    """A row's figures; a first process, not counted, leaves bytecode, and a warm row's cache."""
    with tempfile.TemporaryDirectory() as folder:
        first, second = (os.path.join(folder, n) for n in ("first", "second"))
        for path in (first, second):
            os.mkdir(path, 0o700)
        if row.startswith(("warm", "help", "entry", "cold")):
            run_row(row, side, first)
        return run_row(row, side, first if row.startswith("warm") else second, clock)


def measure_seconds(names: list[str], sides: list[str], repeats: int) -> dict[str, Any]:
    """Seconds of processor time of each row by side, the sides in turn; prints medians and the
    median of the ratios."""
    results: dict[str, Any] = {}
    cells = []
    for row in names:
        found: dict[str, list[float]] = {side: [] for side in sides}
        for number in range(repeats):
            for side in sides if number % 2 == 0 else sides[::-1]:
                found[side].append(measure(row, side, clock=True)["seconds"])
        results[row] = found
        cell = [row, *(f"{statistics.median(times):.3f}" for times in found.values())]
        if len(sides) > 1:
            cell.append(f"{median_ratio(*found.values()):.3f}")
        cells.append(cell)
        print(*cell, flush=True)
    print(table(["row, seconds", *sides, *["ratio"] * (len(sides) > 1)], cells))
    return results


def risen(mine: dict[str, Any], peer: dict[str, Any], count: int) -> str:
    """The functions whose opcodes rose most, by name, and those that fell most."""
    by_name: list[Counter[str]] = []
    files: dict[str, str] = {}
    for figures in (peer, mine):
        found: Counter[str] = Counter()
        for kind, file, function, opcodes in figures["places"]:
            name = function if kind else f"({file}) {function}"
            if function == "<module>" and kind:
                name = file
            found[name] += opcodes
            files[name] = file
        by_name.append(found)
    peer_by, mine_by = by_name
    changes = {n: mine_by[n] - peer_by[n] for n in {*mine_by, *peer_by}}
    ordered = sorted(changes, key=lambda n: -changes[n])
    shown = [*ordered[:count], *ordered[-(count // 2) :]]
    return "\n".join(
        f"  {changes[n]:+9d} {mine_by[n]:9d} {peer_by[n]:9d}  {files[n]} {n}" for n in shown
    )


def main() -> None:
    """Count each row for each side, print a table, write bench/results/compile_counts.json."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--against", default=None, type=side_name, metavar="irc@REVISION")
    parser.add_argument("--filter", default="", help="only rows whose name holds one of these, a,b")
    parser.add_argument("--functions", type=int, default=0, help="list what rose most")
    parser.add_argument("--seconds", type=int, default=0, metavar="REPEATS",
                        help="processor time instead, of so many processes a side")  # fmt: skip
    parser.add_argument("--clock", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--into", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        Path(options.into).write_text(json.dumps(child(options.child, options.clock)))
        return
    sides = ["irc", *([options.against] if options.against else [])]
    wanted = options.filter.split(",")
    names = [r for r in rows() if any(part in r for part in wanted)]
    if options.seconds:
        print_load()
        write_results("compile_seconds", measure_seconds(names, sides, options.seconds))
        print_load()
        return
    results: dict[str, Any] = {}
    cells = []
    for row in names:
        found = {side: measure(row, side) for side in sides}
        results[row] = {s: {k: f[k] for k in ("opcodes", "modules")} for s, f in found.items()}
        counts = [f["opcodes"] for f in found.values()]
        cell = [row, *(f"{c:,}" for c in counts)]
        cell += [f"{counts[0] / counts[1]:.3f}"] if len(sides) > 1 else []
        cells.append([*cell, " to ".join(str(f["modules"]) for f in found.values())])
        print(*cells[-1], flush=True)
        if options.functions and len(sides) > 1:
            print(risen(found["irc"], found[options.against], options.functions))
    head = ["row", *sides, *(["ratio"] if len(sides) > 1 else []), "modules"]
    print(table(head, cells))
    if len(sides) > 1:
        for kind in ROWS:
            ratios = [
                f["irc"]["opcodes"] / f[options.against]["opcodes"]
                for r, f in results.items() if r.split()[0] == kind
            ]  # fmt: skip
            if ratios:
                print(f"{kind}: mean {geometric_mean(ratios):.3f}, most {max(ratios):.3f}")
    write_results("compile_counts", results)


if __name__ == "__main__":
    main()
