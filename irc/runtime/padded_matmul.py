"""Padded matrix products: by hand, and whether padding one pays.

    y = irc.pad_mm(a, b, 0, 2, 6)

computes `a @ b` with k larger by 2 and n by 6.

    measure = on_target(Target.host())
    measure(product)        # 1.3: padded, the product runs 1.3 times as fast

`product` is the pass pad-matmul's. What was measured is kept in irc's cache as JSON, under the
device, torch's version and precision, and the product.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import attrs
import torch
from torch.utils._python_dispatch import _disable_current_modes

from irc.cache.keys import key_of
from irc.cache.store import DiskCache, shared_cache
from irc.dialects.aten.facts import factors_of
from irc.target import Target

#: At most so many multiplications are timed on a CPU; of larger products fewer rows.
CPU_MULTIPLICATIONS = 2_000_000_000
ROUNDS = {"cpu": 6, "cuda": 13}
"""Rounds of which the median counts, and one before them; a GPU's are short."""
CALLS = 4
"""Calls of a GPU's in a sample, so that what begins and ends one counts little."""

Sample = Callable[[Sequence[Callable[[], None]]], Sequence[float]]


def on_target(target: Target, cache: DiskCache | None = None) -> Callable[[Any], float | None]:
    """A measure for products of a target: how many times faster the padded one is, from the cache
    or timed now; None where this machine is another target, or a size is symbolic."""

    def measure(product: Any) -> float | None:
        device = "cuda" if target.is_gpu else "cpu"
        if target != Target.host(target.is_gpu):
            return None
        if device == "cuda" and not torch.cuda.is_available():
            return None
        if not all(isinstance(size, int) for size in (product.m, product.k, product.n)):
            return None
        kept = cache if cache is not None else shared_cache()
        key = key_of("pad-matmul", device_name(target), torch.__version__, precision(),
                     json.dumps(attrs.asdict(product), sort_keys=True))  # fmt: skip
        known = read(kept, key)
        if known is None:
            with _disable_current_modes():  # AOTAutograd compiles under fake tensors
                known = speedup(product, device)
            kept.put_json(key, {"speedup": known})
        return known

    return measure


def device_name(target: Target) -> str:
    """What tells one device from another."""
    if target.is_gpu:
        return torch.cuda.get_device_name()
    return f"{target.features.cache_key()} {target.threads}"


def precision() -> str:
    """The precision of f32 products that torch is set to."""
    return torch.get_float32_matmul_precision()


def read(cache: DiskCache, key: str) -> float | None:
    """A decision kept earlier; None for none, or one that isn't ours."""
    kept = cache.get_json(key)
    speedup = kept.get("speedup") if isinstance(kept, dict) else None
    return float(speedup) if isinstance(speedup, int | float) else None


def speedup(product: Any, device: str) -> float:
    """The time of the product over that of padding and multiplying (cutting makes a view)."""
    m = product.m
    if device == "cpu":
        m = min(m, max(CPU_MULTIPLICATIONS // (product.batch * product.k * product.n), 8))
    more = (product.padding[0] if m == product.m else 0, *product.padding[1:])
    dtype = getattr(torch, product.dtype)
    batch = (product.batch,) if factors_of(product.callee).batched else ()

    # The program's own random numbers stay as they are.
    generator = torch.Generator(device).manual_seed(0)

    def factor(rows: int, columns: int, transposed: bool) -> torch.Tensor:
        shape = (*batch, columns, rows) if transposed else (*batch, rows, columns)
        tensor = torch.randn(shape, device=device, dtype=dtype, generator=generator)
        return tensor.mT if transposed else tensor

    left = factor(m, product.k, product.transposed[0])
    right = factor(product.k, product.n, product.transposed[1])

    def plain() -> None:
        torch.matmul(left, right)

    m_more, k_more, n_more = more
    padding = (0, k_more, 0, m_more), (0, n_more, 0, k_more)
    # What is padded where it is computed is not padded in the time that counts.
    factors = [
        torch.nn.functional.pad(factor, amounts) if computed else None
        for factor, amounts, computed in zip((left, right), padding, product.computed, strict=True)
    ]

    def padded() -> None:
        a = torch.nn.functional.pad(left, padding[0]) if factors[0] is None else factors[0]
        b = torch.nn.functional.pad(right, padding[1]) if factors[1] is None else factors[1]
        torch.matmul(a, b)

    with torch.no_grad():
        return ratio(plain, padded, on_gpu if device == "cuda" else on_cpu, ROUNDS[device])


def ratio(
    first: Callable[[], None], second: Callable[[], None], sample: Sample, rounds: int
) -> float:
    """How many times as long the first takes as the second: the median over rounds, in each of
    which one is sampled right after the other, and the other one first in the next. The first round
    is for what is done once."""
    ratios = []
    for number in range(rounds + 1):
        turned = number % 2
        times = sample((second, first) if turned else (first, second))
        ratios.append(times[turned] / times[1 - turned])
    return statistics.median(ratios[1:])


def on_gpu(runs: Sequence[Callable[[], None]]) -> Sequence[float]:
    """How long a GPU takes for some calls of each, whatever the host takes."""
    from irc.runtime.gpu_clock import clocked

    def several(run: Callable[[], None]) -> None:
        for _ in range(CALLS):
            run()

    return [max(seconds, 1e-9) for seconds in clocked([partial(several, run) for run in runs])]


def on_cpu(runs: Sequence[Callable[[], None]]) -> Sequence[float]:
    """How long a call of each takes."""
    times = []
    for run in runs:
        start = time.perf_counter()
        run()
        times.append(max(time.perf_counter() - start, 1e-9))
    return times


def pad_mm(
    a: torch.Tensor, b: torch.Tensor, m_padding: int, k_padding: int, n_padding: int
) -> torch.Tensor:
    """`a @ b`, computed with m, k and n larger by so many zeros. For [..., m, k] and [..., k, n];
    the result is [..., m, n], a view of the larger product. Works in compiled functions."""
    m, n = a.shape[-2], b.shape[-1]
    a = torch.nn.functional.pad(a, (0, k_padding, 0, m_padding))
    b = torch.nn.functional.pad(b, (0, n_padding, 0, k_padding))
    return torch.matmul(a, b)[..., :m, :n]
