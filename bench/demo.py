"""The demonstration: two models through every level, checked, and compared with the peers.

    python -m bench.demo [--out out/demo] [--models resnet-18,small-gpt2] [--skip-table]

First the program of each model is taken down level by level.  Each level's text is written to the
output folder; it must parse back to the same text, run in the interpreter on a small input with the
results of the eager model, and go on from there to machine code that gives them too.  Then a table
compares eager, irc and TorchInductor: latency, cold compile, largest error against float64,
generated kernels, ATen calls, peak memory, each from a process of its own with empty caches.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import resource
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from bench.common import (
    Prepared,
    Side,
    SideFailed,
    compiled,
    interleaved,
    print_load,
    table,
    write_results,
)
from bench.compile_time import cache_folders, import_all

BACKENDS = ("eager", "irc", "inductor")
NAMES = ("resnet-18", "small-gpt2")
# Machine code rounds differently from eager; a wrong program is off by far more.
TOLERANCE = 1e-4


@dataclasses.dataclass
class Check:
    """What the text of one level came to: the file, and the three checks as "ok" or the reason."""

    level: str
    file: str
    parses: str = "-"
    interpreted: str = "-"
    continued: str = "-"

    def failed(self) -> bool:
        """Did any check not hold?"""
        return {self.parses, self.interpreted, self.continued} != {"ok"}


def small_case(name: str) -> tuple[Any, tuple[Any, ...]]:
    """The model with the small input on which every level is interpreted."""
    import torch

    from bench.builders import find

    module = find(name).make()
    torch.manual_seed(0)
    if name == "small-gpt2":
        return module, (torch.randint(0, 5000, (1, 8)),)
    return module, (torch.randn(1, 3, 32, 32),)


def relative_error(got: Any, expected: Any) -> float:
    """The largest difference relative to the largest expected value, over all results."""
    import torch

    got = (got,) if torch.is_tensor(got) else tuple(got)
    expected = (expected,) if torch.is_tensor(expected) else tuple(expected)
    pairs = zip(got, expected, strict=True)
    return max(float((a - b).abs().max() / b.abs().max().clamp_min(1e-30)) for a, b in pairs)


def verdict(run: Any) -> str:
    """ "ok" if `run()` gives an error within the tolerance, else what happened."""
    try:
        error = run()
    except Exception as failure:
        return f"{type(failure).__name__}: {' '.join(str(failure).split())[:120]}"
    return "ok" if error <= TOLERANCE else f"off by {error:.1e}"


def levels(name: str, folder: Path) -> list[Check]:
    """Take a model down the default pipeline; write and check the text of every level."""
    import torch

    import irc
    from irc import pipeline
    from irc.frontend.tracing import trace_function

    module, inputs = small_case(name)
    with torch.no_grad():
        expected = module(*inputs)
        program = irc.trace(module, inputs)
        # The module's own tensors are the program's first arguments.
        arguments = [*trace_function(module, inputs).tensors, *inputs]
    stages = list(pipeline.stages().items())
    checks = []
    for number in range(len(stages) + 1):
        level = stages[number - 1][0].split("-to-")[-1] if number else "aten"
        text = irc.print_op(program)
        path = folder / f"{name}.{number}.{level}.mlir"
        path.write_text(text, encoding="utf-8")
        rest = ",".join(text for _, text in stages[number:])
        check = Check(level, path.name)
        checks.append(check)
        check.parses = verdict(lambda text=text, path=path: round_trip(text, path))
        check.interpreted = verdict(
            lambda text=text: relative_error(irc.run(irc.parse(text), *arguments), expected)
        )
        check.continued = verdict(
            lambda text=text, rest=rest: relative_error(
                continue_from(text, rest)(*arguments), expected
            )
        )
        if number < len(stages):
            irc.PassManager.parse(stages[number][1]).run(program)
    return checks


def round_trip(text: str, path: Path) -> float:
    """0 if the text parses back to the program that prints it, else infinity."""
    import irc

    return 0.0 if irc.print_op(irc.parse(text, filename=str(path))) == text else float("inf")


def continue_from(text: str, rest: str) -> Any:
    """The executable that a text becomes through the rest of the pipeline."""
    import irc

    program = irc.parse(text)
    if rest:
        irc.PassManager.parse(rest).run(program)
    return irc.build(program, target="llvm")


def restart_peak() -> float:
    """Forget the process's largest memory so far; gives what it uses now, in MiB."""
    # A new process inherits the peak that getrusage tells from the one that started it; the
    # kernel's own mark for the address space can be taken back.
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return peak_memory()


def peak_memory() -> float:
    """The largest memory of this process (resident) since the last restart, in MiB."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return float(status.partition("VmHWM:")[2].split()[0]) / 1024


def prepare(case: dict[str, Any], backend: str) -> Prepared:
    """Compile a model in this process; facts: cold compile, error, counts, peak memory."""
    import torch

    from bench.builders import find, step
    from bench.counting import counted

    model = find(case["model"])
    module, inputs = model.make(), model.inputs()
    import_all(backend)
    before = restart_peak()
    with counted(backend) as count:
        call = compiled(module, backend, dynamic=False)
        start = time.perf_counter()
        output = step(module, call, model, inputs)
        first = time.perf_counter() - start
        counts = count()
    start = time.perf_counter()
    step(module, call, model, inputs)
    warm = time.perf_counter() - start
    peak = peak_memory()
    doubled = tuple(t.double() if t.is_floating_point() else t for t in inputs)
    exact_module = model.make().double()
    exact = step(exact_module, exact_module, model, doubled)
    facts = {
        "cold": first - warm,
        "error": float((output.double() - exact).abs().max()),
        "peak": peak - before,
        **counts,
    }
    del exact_module, exact
    torch.set_grad_enabled(True)
    return Prepared(lambda: step(module, call, model, inputs), facts)


def compare(name: str, backends: tuple[str, ...], rounds: int) -> dict[str, dict[str, Any]]:
    """The table's figures of one model by backend; a backend that fails has only "failure"."""
    found: dict[str, dict[str, Any]] = {}
    with cache_folders() as environment:
        sides = []
        for backend in backends:
            side = Side("bench.demo", backend, environment=environment)
            try:
                found[backend] = side.prepare({"model": name})
                sides.append(side)
            except SideFailed as error:
                found[backend] = {"failure": str(error)}
                side.close()
        for backend, seconds in interleaved(sides, rounds, seconds=0.05).items():
            found[backend]["latency"] = statistics.median(seconds)
        for side in sides:
            side.close()
    return found


def table_rows(name: str, found: dict[str, dict[str, Any]]) -> list[list[str]]:
    """A row a backend."""
    rows = []
    for backend, figures in found.items():
        if "failure" in figures:
            rows.append([name, backend, "failed", "", "", "", "", ""])
            continue
        rows.append(
            [
                name,
                backend,
                f"{figures['latency'] * 1e3:.1f} ms",
                f"{figures['cold']:.2f} s" if backend != "eager" else "-",
                f"{figures['error']:.1e}",
                str(figures.get("launches", "-")),
                str(figures.get("aten_calls", "-")),
                f"{figures['peak']:.0f} MiB",
            ]
        )
    return rows


def main() -> int:
    """Show both parts; the exit code is 1 if a check failed or irc failed in the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/demo"))
    parser.add_argument("--models", default=",".join(NAMES))
    parser.add_argument("--backends", default=",".join(BACKENDS))
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--skip-table", action="store_true")
    parser.add_argument("--skip-levels", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    failed = False
    for name in [] if options.skip_levels else options.models.split(","):
        checks = levels(name, options.out)
        failed |= any(check.failed() for check in checks)
        head = ("level", "file", "parses back", "interpreted", "continued")
        print(table(head, [list(dataclasses.astuple(check)) for check in checks]), flush=True)
    if not options.skip_table:
        print_load()
        results, rows = {}, []
        for name in options.models.split(","):
            found = results[name] = compare(
                name, tuple(options.backends.split(",")), options.rounds
            )
            failed |= "failure" in found.get("irc", {})
            rows += table_rows(name, found)
            for figures in found.values():
                if "failure" in figures:
                    print(figures["failure"])
        head = ("model", "", "latency", "cold compile", "error", "launches", "ATen", "peak memory")
        print(table(head, rows))
        print_load()
        write_results("demo", results)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
