"""Attention written by hand: with `fuse-attention`, without, and in eager mode.

    python -m bench.attention [--device cuda] [--only vit]

A line a case: microseconds (the least of the runs; on a GPU those of the GPU, from a CUDA graph),
how many operators of ATen and kernels a call runs, and the largest error against float64.
"""

from __future__ import annotations

import argparse
import functools
import math
import time
from collections.abc import Callable
from typing import Any

import attrs
import torch

import irc
from bench.gpu_timing import recorded, replayed
from irc.frontend import backend

NEVER = {"pattern_matcher": False}


@attrs.frozen
class Case:
    """Sizes of an attention. heads: of the query, and of keys and values."""

    name: str
    batch: int
    heads: tuple[int, int]
    queries: int
    keys: int
    width: int = 64
    dtype: torch.dtype = torch.float32
    mask: str = ""
    training: bool = False


CASES = (
    Case("bert", 4, (12, 12), 128, 128, mask="padding"),
    Case("gpt2", 1, (12, 12), 256, 256, mask="causal"),
    Case("vit", 4, (12, 12), 197, 197),
    Case("vit-bf16", 4, (12, 12), 197, 197, dtype=torch.bfloat16),
    Case("llama", 1, (32, 8), 128, 128, mask="causal"),
    Case("decode", 1, (32, 8), 1, 512),
    Case("decode-batch", 16, (12, 12), 1, 512),
    Case("decode-bf16", 1, (32, 8), 1, 512, dtype=torch.bfloat16),
    Case("short", 4, (12, 12), 32, 32),
    Case("vit-training", 4, (12, 12), 197, 197, training=True),
    Case("vit-bf16-training", 4, (12, 12), 197, 197, dtype=torch.bfloat16, training=True),
)


def written(case: Case) -> Callable[..., torch.Tensor]:
    """The attention as models write it, with its heads joined."""

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *mask: torch.Tensor) -> Any:
        times = case.heads[0] // case.heads[1]
        if times > 1:
            k, v = (x.repeat_interleave(times, 1) for x in (k, v))
        scores = q @ k.transpose(-1, -2) * (1 / math.sqrt(case.width))
        if case.mask == "causal":
            seen = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).tril()
            scores = scores.masked_fill(~seen, -math.inf)
        if mask:
            scores = scores + mask[0]
        made = torch.softmax(scores, -1) @ v
        return made.transpose(1, 2).flatten(2)

    return attend


def arguments(case: Case, device: str) -> list[torch.Tensor]:
    """Views of projections; gradients are asked of them in training."""
    torch.manual_seed(0)

    def heads(count: int, length: int) -> torch.Tensor:
        made = torch.randn(case.batch, length, count, case.width, device=device).to(case.dtype)
        return made.transpose(1, 2).requires_grad_(case.training)

    given = [heads(case.heads[0], case.queries), heads(case.heads[1], case.keys)]
    given.append(heads(case.heads[1], case.keys))
    if case.mask == "padding":
        given.append(torch.zeros(case.batch, 1, 1, case.keys, device=device, dtype=case.dtype))
    return given


def microseconds(call: Callable[[], Any], device: str, runs: int = 20) -> float:
    """The least time of a call."""
    for _ in range(3):
        call()
    if device == "cpu":
        times = []
        for _ in range(runs):
            began = time.perf_counter()
            call()
            times.append(time.perf_counter() - began)
        return min(times) * 1e6
    graph = recorded(call, runs)
    replayed(graph, runs)
    return replayed(graph, runs)


def run(function: Callable[..., torch.Tensor], given: list[torch.Tensor], training: bool) -> Any:
    """The result, and in training the gradients of its sum of squares."""
    if not training:
        with torch.no_grad():
            return [function(*given)]
    made = function(*given)
    wanted = [g for g in given if g.requires_grad]
    return [made, *torch.autograd.grad(made, wanted, made.detach())]


def called(compiled: list[Any]) -> str:
    """How many operators of ATen and kernels compiled programs call."""
    counts = [entry.executable.info.metrics for entry in compiled]
    return " ".join(f"{sum(c[name] for c in counts)} {name}" for name in ("aten_calls", "launches"))


def measured(case: Case, device: str) -> str:
    """The line of a case."""
    function, given = written(case), arguments(case, device)
    exact = run(function, [g.detach().double().requires_grad_(case.training) if g.requires_grad
                           else g.double() for g in given], case.training)  # fmt: skip
    took = [microseconds(lambda: run(function, given, case.training), device)]
    texts = []
    chosen: list[dict[str, Any]] = [{}, NEVER]
    for options in chosen:
        torch._dynamo.reset()
        compiled = torch.compile(function, backend="irc", dynamic=False, options=options)
        with backend.recording() as programs:
            found = run(compiled, given, case.training)
        pairs = zip(found, exact, strict=True)
        off = max(float((a.detach().double() - b.detach()).abs().max()) for a, b in pairs)
        # Autograd's nodes of this stream would otherwise be captured on another.
        found = pairs = None  # type: ignore[assignment]
        again = functools.partial(run, compiled, given, case.training)
        took.append(microseconds(again, device))
        texts.append(f"{off:.0e} {called(programs)}")
    eager, fused, left = took
    return (
        f"{case.name:18} eager {eager:8.1f}  irc {fused:8.1f}  without {left:8.1f}  "
        f"ratio {fused / left:4.2f}  {texts[0]}  without: {texts[1]}"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    options = parser.parse_args()
    assert irc is not None
    for case in CASES:
        if options.only in case.name:
            try:
                print(measured(case, options.device), flush=True)
            except Exception as error:
                print(f"{case.name:18} FAILED {type(error).__name__}: {str(error)[:200]}")


if __name__ == "__main__":
    main()
