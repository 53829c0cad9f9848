"""Four programs as computes, as groups, as CPU kernels and as GPU kernels, each checked.

    python -m bench.experiments.levels [--out docs/design/experiments/levels]

Every text is interpreted and compared with eager; the table that is printed has the error of each
and the number of computes, groups and kernels.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import irc
from irc.ir.passes import PassManager

TO_LOOP = "functional,aten-to-graph,graph-to-layout,layout-to-loop"
FUSE = "fuse-loops"


def layer_norm_backward(
    g: torch.Tensor, x: torch.Tensor, mean: torch.Tensor, rstd: torch.Tensor, w: torch.Tensor
) -> Any:
    """Gradients of a layer norm over the last dimension."""
    return torch.ops.aten.native_layer_norm_backward(
        g, x, [x.shape[-1]], mean, rstd, w, w, [True, True, True]
    )


def softmax_of_rows(x: torch.Tensor, index: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """softmax(x[index] + b)."""
    return torch.softmax(x[index] + b, -1)


def sum_dim_0(x: torch.Tensor) -> torch.Tensor:
    """Sum over the first dimension."""
    return x.sum(0)


def cumsum(x: torch.Tensor) -> torch.Tensor:
    """Running sum along the last dimension."""
    return x.cumsum(-1)


def programs() -> dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]]:
    """The four programs with arguments: odd sizes, so that tails are seen."""
    generator = torch.Generator().manual_seed(0)

    def rand(*sizes: int) -> torch.Tensor:
        return torch.randn(sizes, generator=generator)

    x = rand(5, 77)
    mean, rstd = x.mean(-1, keepdim=True), (x.var(-1, correction=0, keepdim=True) + 1e-5).rsqrt()
    index = torch.tensor([4, 0, 2])
    return {
        "layer_norm_backward": (layer_norm_backward, (rand(5, 77), x, mean, rstd, rand(77))),
        "softmax_of_rows": (softmax_of_rows, (x, index, rand(77))),
        "sum_dim_0": (sum_dim_0, (rand(37, 21),)),
        "cumsum": (cumsum, (rand(3, 45),)),
    }


def forms() -> dict[str, str]:
    """Each form's name and the pipeline that makes it from the aten level."""
    group = f"{TO_LOOP},{FUSE}"
    return {
        "compute": TO_LOOP,
        "group": group,
        "cpu_kernel": f"{group},schedule{{target=cpu vector_bits=512}},form-kernels",
        "gpu_kernel": f"{group},schedule{{target=gpu}},form-kernels",
    }


def error(got: Any, expected: Any) -> float:
    """The largest difference relative to the largest expected value."""
    expected = expected if isinstance(expected, tuple | list) else [expected]
    return max(
        float((a - b).abs().max() / b.abs().max()) for a, b in zip(got, expected, strict=True)
    )


def check(name: str) -> dict[str, tuple[str, float]]:
    """For each form: the program's text and its error in the interpreter."""
    function, arguments = programs()[name]
    expected = function(*arguments)
    found = {}
    for form, text in forms().items():
        module = irc.trace(function, arguments)
        PassManager.parse(text, verify="each").run(module)
        printed = irc.print_op(module)
        again = irc.parse(printed, filename=f"{name}.{form}.mlir")
        found[form] = (printed, error(irc.run(again, *arguments), expected))
    return found


def main() -> int:
    """Write the texts and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs/design/experiments/levels"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    print(f"{'program':22}{'form':12}{'computes':>9}{'groups':>8}{'kernels':>8}{'error':>10}")
    for name in programs():
        for form, (text, off) in check(name).items():
            (options.out / f"{name}.{form}.mlir").write_text(text + "\n", encoding="utf-8")
            counts = [text.count(w) for w in ("loop.compute", "loop.group", "kernel.func")]
            print(f"{name:22}{form:12}{counts[0]:9}{counts[1]:8}{counts[2]:8}{off:10.1e}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
