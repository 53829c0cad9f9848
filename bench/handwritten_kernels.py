"""Speed of hand-written kernels, and what they cost to compile, on one thread.

    python bench/handwritten_kernels.py [--inductor] [name ...]

Each round runs our kernel, torch eager and (with --inductor) TorchInductor one after the other on
the same tensors, each with a fresh result; the table shows medians over rounds, the median of the
rounds' ratios, and our time into memory that was written before (with the bandwidth if each byte
moves once). Then the cost of the kernel alone: its text, and its object (medians of 9).
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import statistics  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable  # noqa: E402
from pathlib import Path  # noqa: E402

import torch  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from irc.codegen.llvm.jit import compile_module  # noqa: E402
from irc.codegen.llvm.kernel_emitter import emit_kernels  # noqa: E402
from irc.target.cpu import TargetFeatures  # noqa: E402
from tests.codegen.llvm import handwritten  # noqa: E402
from tests.codegen.llvm.kernel_programs import Compiled  # noqa: E402

HOST = TargetFeatures.host()
ROUNDS = 15


def _layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return torch.layer_norm(x, [x.shape[-1]], weight, bias)


def cases() -> dict[str, tuple]:
    """name: (kernel, inputs, output, eager function of the inputs, bytes moved)."""
    x, z = torch.randn(2, 4 << 20)
    rows = torch.randn(4096, 1024)
    half = torch.randn(4 << 20).bfloat16()
    square = torch.randn(2048, 2048)
    vector = torch.randn(1024)
    index = torch.randint(0, 50_000, (1 << 20,))
    big = rows.numel() * 8
    return {
        "axpy": (handwritten.axpy(HOST, x.numel()), [x, z], torch.empty_like(x),
                 lambda a, b: 2 * a + b, x.numel() * 12),
        "softmax": (handwritten.softmax(HOST, *rows.shape), [rows], torch.empty_like(rows),
                    lambda a: torch.softmax(a, 1), big),
        "layer_norm": (handwritten.layer_norm(HOST, *rows.shape), [rows, vector, vector],
                       torch.empty_like(rows), _layer_norm, big),
        "gelu_bf16": (handwritten.gelu_bf16(HOST, half.numel()), [half], torch.empty_like(half),
                      torch.nn.functional.gelu, half.numel() * 4),
        "transpose": (handwritten.transpose(HOST, *square.shape), [square],
                      torch.empty_like(square), lambda a: a.t().contiguous(), square.numel() * 8),
        "cumsum": (handwritten.cumsum(HOST, *rows.shape), [rows], torch.empty_like(rows),
                   lambda a: a.cumsum(1), big),
        "scatter_add": (handwritten.scatter_add(HOST, index.numel()), [x[: index.numel()], index],
                        torch.zeros(50_000), lambda v, i: torch.zeros(50_000).scatter_add_(0, i, v),
                        index.numel() * 12),
    }  # fmt: skip


def seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def measure(name: str, case: tuple, inductor: bool) -> None:
    callee, inputs, output, eager, size = case
    call = Compiled([callee], HOST).function(name, len(inputs) + 1)
    pointers = [t.data_ptr() for t in (*inputs, output)]

    def fresh() -> torch.Tensor:
        made = torch.zeros_like(output) if name == "scatter_add" else torch.empty_like(output)
        call(*pointers[:-1], made.data_ptr(), 0, callee.grid)
        return made

    runs = [lambda: call(*pointers, 0, callee.grid), fresh, lambda: eager(*inputs)]
    if inductor:
        compiled = torch.compile(eager)
        compiled(*inputs)
        runs.append(lambda: compiled(*inputs))
    times: list[list[float]] = [[] for _ in runs]
    for number in range(ROUNDS + 2):
        for taken, run in zip(times, runs, strict=True):
            elapsed = seconds(run)
            if number >= 2:
                taken.append(elapsed)
    kept, ours = (statistics.median(t) for t in times[:2])
    ratios = [
        statistics.median(b / a for a, b in zip(times[1], other, strict=True))
        for other in times[2:]
    ]
    others = "  ".join(
        f"{statistics.median(t) * 1e6:9.0f} us ({r:4.2f}x)"
        for t, r in zip(times[2:], ratios, strict=True)
    )
    emit = statistics.median(seconds(lambda: emit_kernels([callee], HOST)) for _ in range(9))
    text = emit_kernels([callee], HOST)
    build = statistics.median(seconds(lambda: compile_module(text, HOST)) for _ in range(9))
    speed = f"{ours * 1e6:9.0f} us {kept * 1e6:9.0f} us {size / kept / 1e9:6.1f} GB/s"
    cost = f"{len(text.splitlines())} lines in {emit * 1e3:4.2f} ms, object {build * 1e3:4.1f} ms"
    print(f"{name:12s} {speed}  {others}  {cost}")


def main() -> None:
    torch.set_num_threads(1)
    names = [a for a in sys.argv[1:] if not a.startswith("-")]
    peers = "eager; inductor" if "--inductor" in sys.argv else "eager"
    print(f"ours; ours into kept memory, its bandwidth; {peers}; the kernel's text and object")
    for name, case in cases().items():
        if not names or name in names:
            measure(name, case, "--inductor" in sys.argv)


if __name__ == "__main__":
    main()
