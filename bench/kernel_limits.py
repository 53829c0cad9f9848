"""How far the kernels of `bench.kernels` are from what the machine allows.

    python -m bench.kernel_limits [--filter NAMES] [--times bench/results/cpu_kernels.txt]

For each case: bytes that an element must move; vector instructions, and among them those of the
multipliers (products, quotients, powers of two), that 16 elements take in the loops over whole
vectors, counted in the machine code; and two lower limits of the time: those bytes at the bandwidth
of a copy of as many bytes, and those instructions at two 512-bit registers a cycle, of which one
in the multipliers (Zen 4; Intel's server processors multiply two). `--times` names the output of
`bench.kernels`, whose times are set beside the larger limit. A quotient counts as one instruction.
Kernels along columns and transposed tiles have no count.
"""

from __future__ import annotations

import argparse
import ctypes
import re
import time
from pathlib import Path
from typing import Any

from bench.common import print_load, table
from bench.kernels import arguments, case_name, cases, kernels, traffic

_LABEL = re.compile(r"^(\.\w+):")
_JUMP = re.compile(r"^\s+j(?!mp)\w+\s+(\.\w+)")
_STEP = re.compile(r"^\s+addq\s+\$(\d+), %(\w+)")
_VECTOR = re.compile(r"^\s+v\w+.*%[xyz]mm")
_PRODUCT = re.compile(r"^\s+v(fn?m(add|sub)|mul|div|sqrt|scalef|rcp)\w*p[sd]")
_MOVE = re.compile(r"^\s+vmov[au]p[sd]\s+%zmm\d+, %zmm\d+$")
VECTOR_STEPS = (8, 16, 32, 64, 128, 256)
MULTIPLY_LATENCY = 3
"""Cycles of a dependent 64-bit product, on AMD's and Intel's processors since 2010 (uops.info)."""


def assembly(case: dict[str, Any]) -> list[str]:
    """The machine code, as text, of each kernel of a case."""
    import torch

    import irc
    from irc.codegen.llvm.kernel_emitter import emit_text
    from irc.dialects.kernel import KernelFuncOp
    from irc.pipeline import lower
    from irc.target.cpu import TargetFeatures

    with torch.no_grad():
        module = irc.trace(kernels()[case["kernel"]].function, tuple(arguments(case)))
    lower(module)
    found = [op for op in module.walk() if isinstance(op, KernelFuncOp)]
    return [emit_text([kernel], TargetFeatures.host(), "asm") for kernel in found]


def innermost_loops(text: str) -> list[tuple[int, int, int]]:
    """(elements, vector instructions, those of the multipliers) of one turn of each loop without
    a loop inside.

    The elements are the largest step of a counter, 0 where none counts vectors (a loop along
    columns); loops over the rest after a loop with larger steps are left out.
    """
    lines = text.splitlines()
    at = {found[1]: n for n, line in enumerate(lines) if (found := _LABEL.match(line))}
    spans = []
    for end, line in enumerate(lines):
        jump = _JUMP.match(line)
        if jump and at.get(jump[1], end) < end:
            spans.append((at[jump[1]], end))
    loops: list[tuple[int, int, int]] = []
    for start, end in spans:
        if any(start <= a and b <= end and (a, b) != (start, end) for a, b in spans):
            continue
        body = lines[start:end]
        found_steps = [int(found[1]) for line in body if (found := _STEP.match(line))]
        steps = max((s for s in found_steps if s in VECTOR_STEPS), default=0)
        vectors = sum(1 for line in body if _VECTOR.match(line) and not _MOVE.match(line))
        if not vectors or (loops and 0 < steps < loops[-1][0]):
            continue
        products = sum(1 for line in body if _PRODUCT.match(line))
        loops.append((steps, vectors, products))
    return loops


def cycles_per_second() -> float:
    """The core's clock, from a chain of products."""
    from irc.codegen.llvm.jit import compile_module, load_object
    from irc.target.cpu import TargetFeatures

    count = 2_000_000
    text = """
define i64 @chain(i64 %x, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %y = phi i64 [ %x, %entry ], [ %product, %loop ]
  %product = mul i64 %y, %x
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret i64 %product
}
"""
    loaded = load_object(compile_module(text, TargetFeatures.host()))
    chain = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(
        loaded.address("chain")
    )
    best = float("inf")
    for _ in range(60):
        start = time.perf_counter()
        chain(3, count)
        best = min(best, time.perf_counter() - start)
    return MULTIPLY_LATENCY * count / best


def copy_seconds(size_bytes: int) -> float:
    """The least seconds that copying takes which reads and writes `size_bytes` in all."""
    import torch

    source = torch.randn(size_bytes // 8)
    target = torch.empty_like(source)
    best = float("inf")
    for _ in range(30):
        start = time.perf_counter()
        target.copy_(source)
        best = min(best, time.perf_counter() - start)
    return best


def measured(path: Path) -> dict[str, float]:
    """Microseconds by case, from what `bench.kernels` has printed."""
    if not path.exists():
        return {}
    lines = (line.split() for line in path.read_text().splitlines())
    return {w[0]: float(w[1]) for w in lines if len(w) > 3 and "/" in w[0] and w[2] == "us"}


def main() -> None:
    """Print the table."""
    import torch

    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--filter", default="1e6/1000")
    parser.add_argument("--times", type=Path, default=Path("bench/results/cpu_kernels.txt"))
    options = parser.parse_args()
    wanted, times = options.filter.split(","), measured(options.times)
    clock = cycles_per_second()
    print_load()
    print(f"clock {clock / 1e9:.2f} GHz; limits in us; of limit: the larger one over the time")
    rows = []
    for case in cases():
        name = case_name(case)
        if not any(part in name for part in wanted):
            continue
        elements = round(case["size"] / case["columns"]) * case["columns"]
        loops = [loop for text in assembly(case) for loop in innermost_loops(text)]
        if any(not steps for steps, _, _ in loops):
            loops = []
        each = sum(vectors / steps for steps, vectors, _ in loops)
        multiplied = sum(products / steps for steps, _, products in loops)
        memory = copy_seconds(traffic(case)) * 1e6
        arithmetic = max(each / 2, multiplied) * elements / clock * 1e6
        time_us = times.get(name)
        rows.append([
            name, f"{traffic(case) / elements:.0f}",
            *(f"{16 * count:.1f}" if loops else "-" for count in (each, multiplied)),
            f"{memory:.0f}", f"{arithmetic:.0f}" if loops else "-",
            "-" if time_us is None else f"{time_us:.0f}",
            "-" if time_us is None else f"{max(memory, arithmetic) / time_us:.2f}",
        ])  # fmt: skip
    head = ["case", "bytes", "vectors", "products", "copy", "arithmetic", "measured", "of limit"]
    print(table(head, rows))


if __name__ == "__main__":
    main()
