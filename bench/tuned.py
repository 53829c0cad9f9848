"""What tuning brings: for small programs the default's time, the winner's, and the seconds of a
compile, cold and with a filled store.

    python -m bench.tuned [--cuda] [--apart]
    python -m bench.tuned --frozen          # layers on constant weights: oneDNN's or irc's panels
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from typing import Any

import torch

import irc
from irc.ir.passes import PassContext

Program = tuple[str, Callable[..., Any], tuple[tuple[int, ...], ...]]


def programs(gpu: bool) -> list[Program]:
    """Functions with the shapes of their arguments."""
    rows = 8192 if gpu else 512
    functional = torch.nn.functional
    return [
        ("softmax", lambda x: torch.softmax(x, -1), ((rows, 1024),)),
        ("long softmax", lambda x: torch.softmax(x, -1), ((rows // 4, 30523),)),
        ("layer_norm", lambda x, w: functional.layer_norm(x, (768,), w), ((rows, 768), (768,))),
        ("gelu", lambda x: functional.gelu(x), ((rows, 4096),)),
        ("column sums", lambda x: x.sum(0), ((rows, 768),)),
        ("row sums", lambda x: x.sum(1), ((rows, 3072),)),
        ("transposed sum", lambda x, y: x.t() + y, ((rows, 1000), (1000, rows))),
        ("product", lambda a, b: a @ b, ((rows // 2, 768), (768, 768))),
        ("product, gelu", lambda a, b, c: functional.gelu(a @ b + c),
         ((rows // 2, 768), (768, 3072), (3072,))),
    ]  # fmt: skip


def layer(inner: int, columns: int) -> Program:
    """A linear on a constant weight with what follows it in a transformer."""
    linear = torch.nn.Linear(inner, columns).eval()

    def run(x: Any, residual: Any) -> Any:
        y = linear(x)
        if columns > inner:
            return torch.nn.functional.gelu(y)
        return torch.nn.functional.layer_norm(y + residual, (columns,))

    return f"linear {inner} to {columns}", run, ()


def layers() -> list[Program]:
    """The layers of BERT-base for several rows."""
    every = [(rows, *size) for rows in (16, 128, 512)
             for size in ((768, 768), (768, 3072), (3072, 768))]  # fmt: skip
    return [(*layer(inner, columns)[:2], ((rows, inner), (rows, columns)))
            for rows, inner, columns in every]  # fmt: skip


def lines(program: Program, device: str, dtype: torch.dtype, options: dict[str, Any]) -> None:
    """Print the remarks of a cold compile, and both compiles' seconds."""
    name, function, shapes = program
    args = [torch.randn(shape, device=device).to(dtype) for shape in shapes]
    context: list[PassContext] = []
    lower = irc.pipeline.lower

    def noted(*known: Any, **named: Any) -> PassContext:
        context.append(lower(*known, **named))
        return context[-1]

    irc.pipeline.lower = noted
    seconds = []
    try:
        for _ in range(2):
            torch._dynamo.reset()
            start = time.perf_counter()
            result = torch.compile(function, backend="irc", options=options)(*args)
            seconds.append(time.perf_counter() - start)
    finally:
        irc.pipeline.lower = lower
    torch.testing.assert_close(result, function(*args), atol=3e-2, rtol=3e-2)
    print(f"{name} {dtype} cold {seconds[0]:.2f} s, stored {seconds[1]:.2f} s")
    for remark in context[0].remarks:
        if remark.pass_name in ("tune", "choose-contractions"):
            print("   ", remark.text[:200])


def main() -> None:
    """Run all programs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--frozen", action="store_true")
    parser.add_argument("--apart", action="store_true", help="measure in another process")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["IRC_CACHE_DIR"] = folder
        options = {
            "max_autotune": True, "fx_graph_cache": False, "remarks": "no remark is told like this",
            "autotune_in_subproc": asked.apart, "max_autotune_budget": 30,
            "freezing": asked.frozen,
        }  # fmt: skip
        device, dtypes = ("cuda", (torch.bfloat16,)) if asked.cuda else ("cpu", (torch.float32,))
        for dtype in dtypes:
            for program in layers() if asked.frozen else programs(asked.cuda):
                with torch.no_grad():
                    lines(program, device, dtype, options)


if __name__ == "__main__":
    main()
