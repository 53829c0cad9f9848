"""Attention whose scores a function changes, by irc, TorchInductor and eager mode.

    python -m bench.streamed_attention [--only NAME,NAME] [--backward] [--sizes B,H,S,D ...]
    python -m bench.streamed_attention --sizes 8,32/8,1x8192,128 8,32,1x4096,128
    python -m bench.streamed_attention --cpu [--dtype bfloat16] [--threads 1] --sizes 1,8,1024,64

Sizes: a batch, heads (and those of keys and values, where these are fewer), positions (or queries
and keys), elements of a head. Microseconds of the GPU (the least of two medians of graphs of calls;
with `--backward` those of the gradients alone, by torch's profiler), sides in turns, how many of
10^12 operations a second the two products of the forward have, and how many of 10^12 bytes a second
it reads of keys and values (of a causal or windowed one: of what it sees). With `--cpu` calls in
turns on a CPU, medians of `--rounds` and of their ratios, and 10^9 operations a second. `flex` is
`torch.nn.attention.flex_attention`, `library` is `scaled_dot_product_attention` of keys that were
repeated for the heads that share them, as a step of decoding has it; the others are written by
hand.
"""

from __future__ import annotations

import argparse
import functools
import math
import statistics
from collections.abc import Callable
from typing import Any

import attrs
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from bench.common import in_turns, median_ratio, print_load
from bench.operators import gpu_microseconds

Case = Callable[..., torch.Tensor]
WINDOW = 512
FILLED = 1500
PROFILED = 10
"""Calls that torch's profiler looks at."""


@attrs.frozen
class Sizes:
    """What a call is of; heads are those of queries, `shared` those of keys and values."""

    batch: int
    heads: int
    shared: int
    queries: int
    keys: int
    width: int

    @staticmethod
    def of(text: str) -> Sizes:
        """Those that a text says."""
        batch, heads, positions, width = text.split(",")
        both = [int(n) for n in heads.split("/")]
        ends = [int(n) for n in positions.split("x")]
        return Sizes(int(batch), both[0], both[-1], ends[0], ends[-1], int(width))


@attrs.frozen
class Where:
    """Where calls are measured, of what elements; rounds: of calls on a CPU; options: irc's."""

    device: str
    dtype: torch.dtype
    rounds: int
    options: dict[str, Any] | None = None


def causal(b: Any, h: Any, q: Any, k: Any) -> Any:
    """Each query sees the keys up to its own."""
    return q >= k


def window(b: Any, h: Any, q: Any, k: Any) -> Any:
    """Each query sees the last keys."""
    return (q >= k) & (q - k < WINDOW)


def capped(score: Any, b: Any, h: Any, q: Any, k: Any) -> Any:
    """Scores no larger than 30."""
    return 30 * torch.tanh(score / 30)


def slopes(score: Any, b: Any, h: Any, q: Any, k: Any) -> Any:
    """Linear biases of distances, of each head."""
    return score + (k - q) * torch.exp2(-(h + 1) * 0.5)


def filled(b: Any, h: Any, q: Any, k: Any) -> Any:
    """Each query sees the first keys, as far as a cache is filled."""
    return k < FILLED


def repeated(x: torch.Tensor, times: int) -> torch.Tensor:
    """Keys or values of heads, for each of several heads that share them."""
    batch, heads, keys, width = x.shape
    wide = x[:, :, None].expand(batch, heads, times, keys, width)
    return wide.reshape(batch, heads * times, keys, width)


def cases(sizes: Sizes, where: Where) -> dict[str, tuple[Case, float]]:
    """The functions of query, key and value by name, and how much of the scores each looks at."""
    queries, keys = sizes.queries, sizes.keys
    masks = (filled,) if queries < keys else (causal, window)
    device: Any = where.device
    blocks = {f: create_block_mask(f, None, None, queries, keys, device) for f in masks}
    seen = {causal: 0.5, window: min(1.0, WINDOW / keys), filled: min(1.0, FILLED / keys)}
    bias = torch.randn(1, 1, queries, keys, device=device, dtype=where.dtype)
    shared = {"enable_gqa": True} if sizes.heads != sizes.shared else {}

    def flex(mask: Any = None, **keywords: Any) -> tuple[Case, float]:
        keywords |= shared
        block = None if mask is None else blocks[mask]
        return (lambda q, k, v: flex_attention(q, k, v, block_mask=block, **keywords),
                1.0 if mask is None else seen[mask])  # fmt: skip

    def hand(function: Callable[[torch.Tensor], torch.Tensor]) -> tuple[Case, float]:
        return (lambda q, k, v: torch.softmax(
            function(q @ k.transpose(-1, -2)).float(), -1).to(q.dtype) @ v), 1.0  # fmt: skip

    def library(masked: bool) -> tuple[Case, float]:
        """As models call the library's attention: with keys and values of each head."""
        mask = torch.arange(keys, device=device).expand(queries, keys) < FILLED if masked else None

        def attend(q: Any, k: Any, v: Any) -> Any:
            k, v = (repeated(x, sizes.heads // sizes.shared) for x in (k, v))
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, mask)

        return attend, 1.0

    masked: dict[str, tuple[Case, float]] = {"flex filled": flex(filled)} if queries < keys else {
        "flex causal": flex(causal),
        "flex causal capped": flex(causal, score_mod=capped),
        "flex window": flex(window),
    }  # fmt: skip
    written = {
        "capped by hand": hand(lambda s: 30 * torch.tanh(s / math.sqrt(128) / 30)),
        "biased by hand": hand(lambda s: s * 0.1 + bias),
    }
    return {
        "flex": flex(),
        "flex capped": flex(score_mod=capped),
        "flex slopes": flex(score_mod=slopes),
        **masked,
        **(written if sizes.heads == sizes.shared else {}),
        **({"library": library(False), "library masked": library(True)} if queries < keys else {}),
    }


def profiled(run: Callable[[], Any]) -> float:
    """What the GPU's work takes in a call."""
    run()
    torch.cuda.synchronize()
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        for _ in range(PROFILED):
            run()
        torch.cuda.synchronize()
    return sum(event.device_time_total for event in profile.key_averages()) / PROFILED


def line(
    name: str, case: Case, seen: float, sizes: Sizes, backward: bool, sides: list[str],
    where: Where,
) -> str:  # fmt: skip
    """The line of a case."""
    ends = [(sizes.heads, sizes.queries), *[(sizes.shared, sizes.keys)] * 2]
    shapes = [(sizes.batch, *end, sizes.width) for end in ends]
    arrays = [torch.randn(*s, device=where.device, dtype=where.dtype) for s in shapes]
    if backward:
        arrays = [each.requires_grad_() for each in arrays]
    runs: dict[str, Callable[[], Any]] = {}
    for side in sides:
        torch._dynamo.reset()
        options = where.options if side == "irc" else None
        f = case if side == "eager" else torch.compile(
            case, backend=side, dynamic=False, options=options)  # fmt: skip
        if backward:
            gradient = torch.randn(*shapes[0], device=where.device, dtype=where.dtype)
            y = f(*arrays)
            runs[side] = functools.partial(
                torch.autograd.grad, y, arrays, gradient, retain_graph=True)  # fmt: skip
        else:
            runs[side] = lambda f=f: f(*arrays)
        runs[side]()
    ratio = math.nan
    if where.device == "cpu":
        rounds = in_turns(runs, where.rounds)
        times = {side: statistics.median(each) * 1e6 for side, each in rounds.items()}
        if "inductor" in rounds:
            ratio = median_ratio(rounds["inductor"], rounds["irc"])
    else:
        clock = profiled if backward else gpu_microseconds
        times = {side: clock(run) for side, run in runs.items()}
        again = {side: clock(run) for side, run in runs.items()}
        times = {side: min(times[side], again[side]) for side in sides}
        ratio = times.get("inductor", math.nan) / times["irc"]
    products = 4 * sizes.batch * sizes.heads * sizes.queries * sizes.keys * sizes.width * seen
    read = 4 * sizes.batch * sizes.shared * sizes.keys * sizes.width * seen
    shown = "  ".join(f"{side} {each:9.1f}" for side, each in times.items())
    rates = [each / times["irc"] / 1e6 for each in (products, read)]
    told = "" if backward else f"  {rates[0]:5.0f} Tflop/s  {rates[1]:5.2f} TB/s"
    if where.device == "cpu":
        told = f"  {1e3 * rates[0]:5.0f} Gflop/s"
    heads = f"{sizes.heads}/{sizes.shared}" if sizes.heads != sizes.shared else f"{sizes.heads}"
    shape = f"{sizes.batch}x{heads}x{sizes.queries}x{sizes.keys}x{sizes.width}"
    return f"{name:20} {shape:22} {shown}  inductor:irc {ratio:5.2f}{told}"


def main() -> None:
    """Print the lines."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", metavar="NAME,NAME")
    parser.add_argument("--backward", action="store_true")
    parser.add_argument("--sides", default="irc,inductor", metavar="SIDE,SIDE")
    parser.add_argument("--sizes", nargs="+", default=["4,16,2048,64", "2,16,4096,128"])
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--dtype", default="", help="float32 on a CPU, bfloat16 on a GPU")
    parser.add_argument("--threads", type=int, default=1, help="on a CPU")
    parser.add_argument("--rounds", type=int, default=15, help="on a CPU")
    parser.add_argument("--blocks", default="", metavar="ROWSxCOLUMNS", help="of a walk on a CPU")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    dtype = getattr(torch, asked.dtype or ("float32" if asked.cpu else "bfloat16"))
    options = None
    if asked.blocks:
        rows, columns = asked.blocks.split("x")
        expand = f"expand-streams{{rows={rows} columns={columns}}}"
        options = {"passes": {"before:expand-streams": expand}}
    where = Where("cpu" if asked.cpu else "cuda", dtype, asked.rounds, options)
    if asked.cpu:
        print_load()
    torch.manual_seed(0)
    ratios = []
    for text in asked.sizes:
        sizes = Sizes.of(text)
        for name, (case, seen) in cases(sizes, where).items():
            if asked.only and name not in asked.only.split(","):
                continue
            try:
                shown = line(name, case, seen, sizes, asked.backward, asked.sides.split(","), where)
            except Exception as error:
                print(f"{name:20} failed: {str(error).splitlines()[0][:120]}", flush=True)
                continue
            print(shown, flush=True)
            ratios.append(float(shown.split("inductor:irc")[1].split()[0]))
    print(f"{len(ratios)} cases, geometric mean {statistics.geometric_mean(ratios):.2f}")


if __name__ == "__main__":
    main()
