"""`python -m bench.demo`: prints the four parts; see `bench/demo/__init__.py`."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import os
import sys
import textwrap
import time
from pathlib import Path

import bench.demo
from bench.common import print_load, table, write_results
from bench.demo import levels, rules, speed


def heading(text: str) -> None:
    """A line that stands out, on a terminal in bold."""
    mark = ("\033[1m", "\033[0m") if sys.stdout.isatty() else ("", "")
    print(f"\n{mark[0]}{text}{mark[1]}\n{'-' * len(text)}", flush=True)


def show(text: str) -> None:
    """A text, indented."""
    print(textwrap.indent(text, "  "), flush=True)


def show_level() -> None:
    """A function and its loop level."""
    heading("1. A level is a text")
    show(inspect.getsource(levels.scaled_softmax).rstrip())
    print("\nbecomes one kernel; on the loop level, behind fusion:\n")
    show(levels.one_level())


def show_rules() -> bool:
    """The rules and the pass, and what irc says; whether each is found right or wrong as it is."""
    heading("2. A rule is what it says, and can be run")
    right = True
    for name, expected in (("and_of_inverses", True), ("factored_out", False)):
        show(rules.source(name) + "\n")
        said, holds = rules.of_rule(getattr(rules, name))
        right &= holds == expected
        print(said)
        if expected:
            said, holds = rules.every_pair()
            right &= holds
            print(said)
        print()
    heading("3. A wrong pass is caught where it changes a value")
    show("# permute(permute(x, p), p) -> x\n" + rules.source("two_transposes_cancel"))
    said, holds = rules.of_pass()
    print(f"\n{said}", flush=True)
    return right and not holds


def show_levels(folder: Path) -> bool:
    """Every level of a model, checked; whether all checks hold."""
    heading("4. Every level of a model: read back, interpreted, compiled on from there")
    checks = levels.levels("small-gpt2", folder)
    print(table(levels.HEAD, [list(dataclasses.astuple(check)) for check in checks]))
    print(f"the files are in {folder}", flush=True)
    return not any(check.failed() for check in checks)


def show_speed(options: argparse.Namespace) -> bool:
    """The tables; whether irc was measured everywhere."""
    threads = int(os.environ.get("OMP_NUM_THREADS", "1"))
    heading(f"5. Beside eager mode and TorchInductor: f32, {threads} thread(s), no_grad")
    print_load()
    names = tuple(options.models.split(","))
    started = speed.Comparison(threads, options.patience, names)
    results: dict[str, list[speed.Row]] = {}
    try:
        rows: list[list[str]] = []
        started.settle()
        for model, found in speed.compare_models(started, names, options.rounds):
            results[model] = found
            rows += speed.model_rows(model, found)
        print(table(speed.MODEL_HEAD, rows) + "\n", flush=True)
        rows = []
        for kernel, found in speed.compare_kernels(started, options.rounds):
            results[kernel] = found
            rows.append(speed.kernel_row(kernel, found))
        print(table(speed.KERNEL_HEAD, rows))
    finally:
        started.close()
    failures = {f"{row.side}: {row.failure}": name for name, rows in results.items()
                for row in rows if row.failure}  # fmt: skip
    for failure, name in failures.items():
        print(f"{name}, {failure}")
    print(speed.LEGEND.format(rounds=options.rounds))
    print_load()
    write_results("demo", {name: [dataclasses.asdict(r) for r in rows]
                           for name, rows in results.items()})  # fmt: skip
    return not any(row.failure for rows in results.values() for row in rows
                   if row.side.startswith("irc"))  # fmt: skip


def main() -> int:
    """Show all parts; the exit code is 1 if a check failed or irc failed in a table."""
    start = time.monotonic()
    parser = argparse.ArgumentParser(description=(bench.demo.__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/demo"))
    parser.add_argument("--models", default=",".join(speed.MODELS))
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--patience", type=float, default=110.0, metavar="SECONDS",
                        help="sides that take longer to compile are left out")  # fmt: skip
    parser.add_argument("--skip-speed", action="store_true")
    parser.add_argument("--skip-levels", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    show_level()
    good = show_rules()
    if not options.skip_levels:
        good &= show_levels(options.out)
    if not options.skip_speed:
        good &= show_speed(options)
    print(f"\n{time.monotonic() - start:.0f} s")
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
