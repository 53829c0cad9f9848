"""Speed of the IR against xDSL: the same text, the same tasks, process CPU time.

    python -m bench.ir_speed [--ops 10000,100000] [--processes 5] [--collector both] [--append]
    python -m bench.ir_speed --libraries irc,irc@REVISION    (against irc as a commit has it)
    python -m bench.ir_speed --report         (the tables of what bench/results/ir_speed.json holds)

Each measurement is a process of its own; irc's and xDSL's alternate, and the median of the
processes' ratios is printed (above 1: irc is faster).  Collector "shipped" leaves Python's cyclic
collector as each library handles it; "off" disables it in both.  The text is MLIR's generic form,
in functions of 100 ops, one in eight a repetition, one in eight dead, one in eight foldable, one in
eight a subtraction, which "rewrite" makes an addition by one pattern and nothing else.

Results replace what was measured before at the same size and collector; with `--append` they are
further processes of it, so that a long measurement can be taken in pieces.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

from bench.common import RESULTS, ROOT, folder_of, print_load, table, write_results

LIBRARIES = ("irc", "xdsl")
PER_FUNCTION = 100
# Times faster than xDSL, at 10,000 ops with the collector as shipped; memory: at most half per op.
GOALS = {
    "parse": 20, "build": 15, "print": 12, "verify": 12, "canonicalize": 12, "cse": 10, "dce": 10,
    "rewrite": 8, "clone": 6, "startup": 3, "bytes_per_op": 2,
}  # fmt: skip


def program(ops: int) -> str:
    """The text of a module with about `ops` ops on i64."""
    functions = (_function(k, PER_FUNCTION) for k in range(max(1, ops // PER_FUNCTION)))
    return '"builtin.module"() ({\n' + "".join(functions) + "}) : () -> ()\n"


def _function(number: int, ops: int) -> str:
    head = f'"func.func"() <{{sym_name = "f{number}", function_type = (i64, i64) -> i64}}> ({{\n'
    lines = [head + "^bb0(%a: i64, %b: i64):\n"]
    lines.append('  %zero = "arith.constant"() <{value = 0 : i64}> : () -> i64\n')
    live = left = "%a"
    for k in range(ops - 3):
        kind = k % 8
        name, other = f"%v{k}", "%b"
        op = ("addi", "muli", "addi", "xori", "addi", "subi", "andi", "addi")[kind]
        if kind == 1:  # what the op before computed, again
            op = "addi"
        elif kind == 2:  # foldable: plus zero
            left, other = live, "%zero"
        else:
            left = live
        extra = (
            " <{overflowFlags = #arith.overflow<none>}>" if op in ("addi", "muli", "subi") else ""
        )
        lines.append(f'  {name} = "arith.{op}"({left}, {other}){extra} : (i64, i64) -> i64\n')
        if kind not in (1, 3):  # the fourth of eight stays without a user
            live = name
    lines.append(f'  "func.return"({live}) : (i64) -> ()\n}}) : () -> ()\n')
    return "".join(lines)


def irc_tasks(text: str, ops: int) -> dict[str, Callable[[], Any]]:
    """The tasks on irc; those that change the module work on a copy made outside the clock."""
    import irc
    from irc import PassManager, pattern
    from irc.dialects import arith, func
    from irc.ir import types as T
    from irc.ir.registry import lookup_op

    ModuleOp: Any = lookup_op("builtin.module")  # in a file of another name in older revisions

    @pattern(arith.SubIOp, name="bench.sub_to_add")
    def sub_to_add(op: Any, rw: Any) -> None:
        rw.replace(op, [rw.builder.value(arith.AddIOp, op.operands[0], op.operands[1])])

    def build() -> Any:
        with irc.gc_paused:
            module = ModuleOp.empty()
            for number in range(max(1, ops // PER_FUNCTION)):
                made = func.FuncOp.create(f"f{number}", [T.i64, T.i64], [T.i64])
                irc.Builder.at_end(module.block).insert(made)
                builder = irc.Builder.at_end(made.block)
                value, other = made.block.arguments
                for _ in range(PER_FUNCTION - 2):
                    value = builder.value(arith.AddIOp, value, other)
                builder.create(func.ReturnOp, [value])
        return module

    return {
        "parse": lambda: irc.parse(text),
        "build": build,
        "print": lambda m: irc.print_op(m, generic=True),
        "verify": lambda m: irc.verify(m),
        "clone": lambda m: m.clone(),
        "canonicalize": lambda m: PassManager.parse("canonicalize").run(m),
        "cse": lambda m: PassManager.parse("cse").run(m),
        "dce": lambda m: PassManager.parse("dce").run(m),
        "rewrite": lambda m: irc.apply_patterns_greedily(m, [sub_to_add], fold=False),
    }


def xdsl_tasks(text: str, ops: int) -> dict[str, Callable[[], Any]]:
    """The same on xDSL."""
    import io

    from xdsl.builder import Builder
    from xdsl.context import Context
    from xdsl.dialects import arith, func
    from xdsl.dialects.builtin import Builtin, FunctionType, ModuleOp, i64
    from xdsl.ir import Block, Region
    from xdsl.parser import Parser
    from xdsl.pattern_rewriter import (
        GreedyRewritePatternApplier,
        PatternRewriter,
        PatternRewriteWalker,
        RewritePattern,
    )
    from xdsl.printer import Printer
    from xdsl.rewriter import InsertPoint
    from xdsl.transforms.canonicalize import CanonicalizePass
    from xdsl.transforms.common_subexpression_elimination import cse
    from xdsl.transforms.dead_code_elimination import dce

    context = Context()
    for dialect in (Builtin, arith.Arith, func.Func):
        context.load_dialect(dialect)

    class SubToAdd(RewritePattern):
        def match_and_rewrite(self, op: Any, rewriter: PatternRewriter) -> None:
            if isinstance(op, arith.SubiOp):
                rewriter.replace(op, arith.AddiOp(op.operands[0], op.operands[1]))

    def build() -> Any:
        functions = []
        for number in range(max(1, ops // PER_FUNCTION)):
            block = Block(arg_types=[i64, i64])
            builder = Builder(InsertPoint.at_end(block))
            value, other = block.args
            for _ in range(PER_FUNCTION - 2):
                value = builder.insert(arith.AddiOp(value, other)).result
            builder.insert(func.ReturnOp(value))
            kind = FunctionType.from_lists([i64, i64], [i64])
            functions.append(func.FuncOp(f"f{number}", kind, Region(block)))
        return ModuleOp(functions)

    def print_generic(module: Any) -> str:
        stream = io.StringIO()
        Printer(stream, print_generic_format=True).print_op(module)
        return stream.getvalue()

    walker = PatternRewriteWalker(GreedyRewritePatternApplier([SubToAdd()]))
    return {
        "parse": lambda: Parser(context, text).parse_module(),
        "build": build,
        "print": print_generic,
        "verify": lambda m: m.verify(),
        "clone": lambda m: m.clone(),
        "canonicalize": lambda m: CanonicalizePass().apply(context, m),
        "cse": cse,
        "dce": dce,
        "rewrite": walker.rewrite_module,
    }


def tasks(library: str, text: str, ops: int) -> dict[str, Callable[..., Any]]:
    """The tasks of a library by name: parse and build make a module, the others take one."""
    return irc_tasks(text, ops) if library == "irc" else xdsl_tasks(text, ops)


def clocked(call: Callable[[], Any]) -> float:
    """Process CPU seconds of a call, after a full collection."""
    gc.collect()
    start = time.process_time()
    kept = call()
    taken = time.process_time() - start
    del kept
    return taken


def child(library: str, ops: int, collector: str, memory: bool) -> dict[str, float]:
    """All figures of one process; with `memory` only the bytes that a parsed op takes."""
    text = program(ops)
    named = tasks(library, text, ops)
    parse = named["parse"]
    # Lazy imports and tables of the first call are start-up, measured on its own.
    small = tasks(library, program(PER_FUNCTION), PER_FUNCTION)
    for name, task in small.items():
        task() if name in ("parse", "build") else task(small["parse"]())
    if memory:
        gc.collect()
        tracemalloc.start()
        module = parse()
        gc.collect()
        size, _ = tracemalloc.get_traced_memory()
        count = sum(1 for _ in module.walk())
        return {"bytes_per_op": size / count}
    if collector == "off":
        gc.disable()
    seconds = {}
    for name, task in named.items():
        times = []
        for _ in range(3 if ops <= 10_000 else 1):
            if name in ("parse", "build"):
                times.append(clocked(task))
            else:
                module = parse()
                times.append(clocked(lambda task=task, module=module: task(module)))
                del module
        seconds[name] = min(times)
    return seconds


def run_child(library: str, ops: int, collector: str, memory: bool = False) -> dict[str, float]:
    """`child` in a new process; CalledProcessError with its output if it fails."""
    name, _, revision = library.partition("@")
    words = ["--child", name, "--ops", str(ops), "--collector", collector]
    done = subprocess.run(
        [sys.executable, "-m", "bench.ir_speed", *words, *["--memory"] * memory],
        cwd=folder_of(revision) if revision else ROOT, stdout=subprocess.PIPE, check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def startup(library: str, bytecode: str) -> float:
    """CPU seconds of the tool on a file of one function, its children included.

    As in an installed wheel the bytecode is there: a first run, outside the clock, writes it below
    the folder `bytecode`.
    """
    name, _, revision = library.partition("@")
    module = {"irc": "irc.tools.irc_opt", "xdsl": "xdsl.tools.xdsl_opt"}[name]
    tool = [sys.executable, "-c", f"from {module} import main; main()"]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = str(folder_of(revision) if revision else ROOT)
    environment["PYTHONPYCACHEPREFIX"] = bytecode
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        file.write(program(5))
        file.flush()
        start = [*tool, file.name]
        subprocess.run(start, stdout=subprocess.DEVNULL, check=True, env=environment)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(start, stdout=subprocess.DEVNULL, check=True, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def measure(
    libraries: list[str], ops: int, collector: str, processes: int
) -> dict[str, dict[str, list[float]]]:
    """Figures by library and task, one a process, the libraries in turn."""
    found: dict[str, dict[str, list[float]]] = {library: {} for library in libraries}
    bytecode = tempfile.TemporaryDirectory()
    for number in range(processes):
        for library in libraries if number % 2 == 0 else libraries[::-1]:
            figures = run_child(library, ops, collector)
            if collector == "shipped":
                figures["startup"] = startup(library, bytecode.name)
            if number == 0:
                figures |= run_child(library, ops, collector, memory=True)
            for task, value in figures.items():
                found[library].setdefault(task, []).append(value)
    bytecode.cleanup()
    return found


def summarize(found: dict[str, dict[str, list[float]]], judged: bool) -> list[list[str]]:
    """A row a task: medians and, where both libraries were measured, the ratio and its goal."""
    rows = []
    for task in GOALS:
        row = [task]
        for figures in found.values():
            values = figures.get(task)
            unit, scale = ("B", 1) if task == "bytes_per_op" else ("ms", 1e3)
            row.append(f"{statistics.median(values) * scale:.1f} {unit}" if values else "-")
        if len(found) == 2 and all(task in figures for figures in found.values()):
            first, second = (figures[task] for figures in found.values())
            pairs = zip(first, second, strict=True)
            ratio = statistics.median(peer / max(mine, 1e-9) for mine, peer in pairs)
            row += [f"{ratio:.2f}", str(GOALS[task]) if judged else ""]
            row.append(("met" if ratio >= GOALS[task] else "MISSED") if judged else "")
        else:
            row += ["", "", ""]
        rows.append(row)
    return rows


def joined(
    old: dict[str, dict[str, list[float]]], new: dict[str, dict[str, list[float]]]
) -> dict[str, dict[str, list[float]]]:
    """The figures of the processes of two runs, in order."""
    return {
        library: {t: old.get(library, {}).get(t, []) + values for t, values in figures.items()}
        for library, figures in new.items()
    }


def stored(file: str) -> dict[str, dict[str, dict[str, list[float]]]]:
    """What bench/results holds of former runs, by size and collector."""
    path = RESULTS / f"{file}.json"
    return json.loads(path.read_text())["results"] if path.exists() else {}


def report(results: dict[str, dict[str, dict[str, list[float]]]]) -> None:
    """Print a table for each size and collector; goals are for 10,000 ops as shipped."""
    for key, found in results.items():
        ops, collector = key.split("/")
        processes = len(next(iter(found.values()))["parse"])
        print(f"{ops} ops, collector {collector}, {processes} processes each")
        head = ["task", *found, "ratio", "goal", ""]
        print(table(head, summarize(found, key == "10000/shipped" and "xdsl" in found)), flush=True)


def main() -> None:
    """Measure, print, write bench/results/ir_speed.json."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--ops", default="10000,100000")
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--collector", default="both", choices=("shipped", "off", "both"))
    parser.add_argument("--libraries", default="irc,xdsl")
    parser.add_argument("--child", choices=LIBRARIES)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--output", default="ir_speed")
    parser.add_argument("--append", action="store_true", help="keep the processes of former runs")
    parser.add_argument("--report", action="store_true", help="only print what was measured")
    options = parser.parse_args()
    if options.child:
        figures = child(options.child, int(options.ops), options.collector, options.memory)
        print(json.dumps(figures))
        return
    libraries = options.libraries.split(",")
    results = stored(options.output)
    if options.report:
        report(results)
        return
    print_load()
    for collector in ("shipped", "off") if options.collector == "both" else (options.collector,):
        for ops in map(int, options.ops.split(",")):
            found = measure(libraries, ops, collector, options.processes)
            key = f"{ops}/{collector}"
            results[key] = joined(results.get(key, {}), found) if options.append else found
            report({key: results[key]})
            write_results(options.output, results)
    print_load()


if __name__ == "__main__":
    main()
