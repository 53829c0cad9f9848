"""Products of f32 by the two libraries that torch has on a CPU: whether choosing one would pay.

    OMP_NUM_THREADS=1 python -m bench.products [--rounds 20]

For each shape (rows, inner, columns): billions of operations a second of ATen's product (MKL on
x86) and of oneDNN's, each with a bias and a right factor that is in no cache, the two in turn, and
the median of the ratios (above 1: oneDNN is faster).
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch

from bench.common import print_load, table

SHAPES = [
    (64, 256, 256), (256, 256, 256), (16, 768, 768), (256, 768, 768), (512, 768, 768),
    (256, 768, 2304), (512, 768, 3072), (512, 3072, 768), (788, 768, 3072), (256, 768, 50257),
]  # fmt: skip
COLD_BYTES = 300e6


def measure(shape: tuple[int, int, int], rounds: int) -> tuple[float, float, float]:
    """Operations a nanosecond of ATen and of oneDNN, and the median of the rounds' ratios."""
    rows, inner, columns = shape
    count = max(2, int(COLD_BYTES / (inner * columns * 4)))
    weights = [torch.randn(columns, inner) for _ in range(count)]
    x, bias, out = torch.randn(rows, inner), torch.randn(columns), torch.empty(rows, columns)

    def aten(weight: torch.Tensor) -> None:
        torch.addmm(bias, x, weight.t(), out=out)

    def onednn(weight: torch.Tensor) -> None:
        torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")

    def seconds(call: Callable[[torch.Tensor], None]) -> float:
        start = time.perf_counter()
        for weight in weights:
            call(weight)
        return (time.perf_counter() - start) / count

    times = [(seconds(aten), seconds(onednn)) for _ in range(rounds + 1)][1:]
    operations = 2 * rows * inner * columns / 1e9
    ratio = statistics.median(a / b for a, b in times)
    first, second = (statistics.median(t[i] for t in times) for i in (0, 1))
    return operations / first, operations / second, ratio


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    torch.set_grad_enabled(False)
    print_load()
    print(f"threads {torch.get_num_threads()}")
    rows = []
    for shape in SHAPES:
        aten, onednn, ratio = measure(shape, rounds)
        rows.append([*map(str, shape), f"{aten:.1f}", f"{onednn:.1f}", f"{ratio:.2f}"])
    print(table(["rows", "inner", "columns", "ATen", "oneDNN", "ratio"], rows))
    print_load()


if __name__ == "__main__":
    main()
