"""The figures of this machine that the cost model has: `irc.target.speeds.Speeds`.

    python -m bench.target_speeds      (one thread; docs/cost-model.md says what each is for)

Kernels that follow each other on one array, which grows, tell of launches, caches and memory;
chains of one function on an array that the first-level cache keeps tell of functions. Both are
slopes, of long programs less short ones, so that what a call takes is in neither.
"""

from __future__ import annotations

import time
from typing import Any

import torch

import irc
from irc.ir.types import TensorType, f32

PASSES = "schedule,form-kernels,bufferize,plan-memory"
SIZES = tuple(1 << k for k in (4, 9, 10, 11, 13, 15, 16, 17, 20, 22))
FUNCTIONS = {
    "product": "arith.mulf {}, %a", "quotient": "arith.divf %a, {}", "sqrt": "math.sqrt {}",
    "exp": "math.exp {}", "tanh": "math.tanh {}", "erf": "math.erf {}", "log": "math.log {}",
    "sin": "math.sin {}",
}  # fmt: skip
SHORT, LONG = 4, 20


def program(count: int, kernels: int, function: str, calls: int) -> Any:
    """`kernels` computes after each other, each with a chain of calls of a function."""
    shape = TensorType((count,), f32, (1,))
    lines = [f"func.func @main(%x0: {shape}) -> {shape} attributes {{level = \"loop\"}} {{"]
    for number in range(kernels):
        lines.append(f"%x{number + 1} = loop.compute par(i0: {count}) -> map {{")
        lines.append(f"%a = loop.read %x{number}[i0] : f32\n%c = arith.constant 1.001 : f32")
        lines.append("%v0 = arith.addf %a, %c : f32")
        for call in range(calls):
            lines.append(f"%v{call + 1} = {function.format(f'%v{call}')} : f32")
        lines.append(f"%z = arith.addf %v{calls}, %c : f32\nloop.yield %z }} : {shape}")
    lines.append(f"return %x{kernels} : {shape} }}")
    module = irc.parse("\n".join(lines))
    irc.PassManager.parse(PASSES).run(module)
    return irc.build(module)


def seconds(executable: Any, x: torch.Tensor, calls: int) -> float:
    """The least time of a call."""
    found = []
    for _ in range(15):
        start = time.perf_counter()
        for _ in range(calls):
            executable(x)
        found.append((time.perf_counter() - start) / calls)
    return min(found)


def slope(short: Any, long: Any, count: int) -> float:
    """Seconds for one kernel, or one call in a chain, more."""
    x, calls = torch.rand(count) + 1, max(1, min(2000, 500_000 // count))
    return (seconds(long, x, calls) - seconds(short, x, calls)) / (LONG - SHORT)


def main() -> None:
    """Measure and print."""
    torch.set_num_threads(1)
    product = FUNCTIONS["product"]
    for count in SIZES:
        short, long = (program(count, kernels, product, 0) for kernels in (SHORT, LONG))
        each = slope(short, long, count)
        print(f"{4 * count:9} bytes: {each * 1e9:12.1f} ns a kernel, "
              f"{each / count * 1e12:7.1f} ps an element")  # fmt: skip
    for name, function in FUNCTIONS.items():
        short, long = (program(2048, 1, function, calls) for calls in (SHORT, LONG))
        print(f"{name:9} {slope(short, long, 2048) / 2048 * 1e12:8.1f} ps")


if __name__ == "__main__":
    main()
