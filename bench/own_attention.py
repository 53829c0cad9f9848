"""Attention of irc's own on a CPU (`expand-attention`) against ATen's operator, called in turn.

    python -m bench.own_attention [--only causal] [--threads 2] [--rounds 200] [--walks]

F.scaled_dot_product_attention of [b, s, h, d] arrays as [b, h, s, d], in eager mode and compiled,
whatever the processor's figures say; with `--walks` all rows walk over the keys. A line a case:
median microseconds of each, the median of the rounds' ratios, errors against float64; and the same
of the rounds in which the machine did what it can, and in which it did less than 0.6 of that, by a
short loop beside each call (`bench.products`).
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence

import attrs
import torch
import torch.nn.functional as F

from bench.common import print_load
from bench.products import watch
from bench.steady import SHARE
from irc.target import Target

FORCED = "expand-attention{force=true}"
WALKS = "expand-attention{walk=true}"
DISTURBED = 0.6
"""Of the best rate of the loop: below, the machine is in its slow state."""
FEWEST = 5
"""Rounds of a state that are worth a line."""
SIZES = (
    (4, 12, 12, 128, 128, 64, False), (4, 12, 12, 197, 197, 64, False),
    (1, 12, 12, 256, 256, 64, True), (1, 32, 8, 128, 128, 64, True),
    (1, 12, 12, 512, 512, 64, True), (2, 4, 4, 1000, 1000, 64, True),
    (1, 4, 4, 2048, 2048, 64, True), (1, 4, 4, 2048, 2048, 64, False),
    (1, 12, 12, 1024, 1024, 64, True), (1, 4, 4, 1000, 1111, 64, False),
)  # fmt: skip
"""Batch, heads, heads of keys, queries, keys, width, causal."""


@attrs.frozen
class Turn:
    """A round: seconds of both, and the rates of the loop beside them."""

    library: float
    own: float
    rates: tuple[float, ...]


def line(name: str, turns: Sequence[Turn]) -> str:
    """The medians of some rounds."""
    library, own = (statistics.median(getattr(t, side) for t in turns) * 1e6
                    for side in ("library", "own"))  # fmt: skip
    ratio = statistics.median(t.library / t.own for t in turns)
    return f"{name:42} {len(turns):4} ATen {library:8.0f}  irc {own:8.0f}  ratio {ratio:4.2f}"


def relative(found: torch.Tensor, exact: torch.Tensor) -> float:
    """The norm of what is wrong."""
    return float((found.double() - exact).norm() / exact.norm())


def measure(name: str, call: Callable[..., torch.Tensor], given: Sequence[torch.Tensor],
            rounds: int, look: Callable[[], float], walks: bool) -> None:  # fmt: skip
    """Print a case's lines."""
    torch._dynamo.reset()
    passes = {"before:expand-attention": WALKS if walks else FORCED}
    own = torch.compile(call, backend="irc", dynamic=False, options={"passes": passes})
    exact = call(*(t.double() for t in given))
    errors = relative(own(*given), exact), relative(call(*given), exact)

    def seconds(function: Callable[..., torch.Tensor]) -> float:
        start = time.perf_counter()
        function(*given)
        return time.perf_counter() - start

    for function in (own, call):
        seconds(function)
    turns = []
    for _ in range(rounds):
        first, library, second = look(), seconds(call), look()
        turns.append(Turn(library, seconds(own), (first, second, look())))
    best = max(max(turn.rates) for turn in turns)
    print(line(name, turns), f" errors {errors[0]:.1e} {errors[1]:.1e}", flush=True)
    quiet = [turn for turn in turns if min(turn.rates) > SHARE * best]
    slow = [turn for turn in turns if max(turn.rates) < DISTURBED * best]
    for label, some in (("undisturbed", quiet), ("disturbed", slow)):
        if len(some) >= FEWEST:
            print(line(f"    {label}", some), flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--walks", action="store_true")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    torch.set_grad_enabled(False)
    torch.manual_seed(0)
    look = watch(Target.host())
    print_load()
    for dtype in (torch.bfloat16, torch.float32):
        for batch, heads, key_heads, queries, keys, width, causal in SIZES:
            name = f"{str(dtype).removeprefix('torch.')} {batch}x{heads}x{queries}x{width}"
            name += f", {keys} keys" * (keys != queries) + ", causal" * causal
            name += f", {key_heads} heads of keys" * (heads != key_heads)
            if asked.only not in name:
                continue

            def call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = causal,
                     several: bool = heads != key_heads) -> torch.Tensor:  # fmt: skip
                return F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=several)

            given = [
                torch.randn(batch, length, count, width).to(dtype).transpose(1, 2)
                for length, count in ((queries, heads), (keys, key_heads), (keys, key_heads))
            ]
            measure(name, call, given, asked.rounds, look, asked.walks)
    print_load()


if __name__ == "__main__":
    main()
