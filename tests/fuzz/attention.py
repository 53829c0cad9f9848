"""Random attention whose scores a function changes, against float64, on a CPU.

    python -m tests.fuzz.attention --count 200 [--first 0]

Sizes, heads that share keys, dtypes, memory formats, functions of scores, masks with and without
lists of blocks, tiles and threads. A line for each that is wrong, and how many there were.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import random
from collections.abc import Callable
from typing import Any
from unittest import mock

import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from irc.passes.graph import stream_softmaxes
from tests.passes.frozen.frozen_convolutions import threads

Place = Callable[..., Any]


def score_of(random_: random.Random, keys: int) -> tuple[str, Place | None]:
    """A function of scores."""
    cut, bias = random_.randrange(1, keys + 1), torch.randn(keys)
    functions: dict[str, Place | None] = {
        "none": None,
        "cap": lambda s, b, h, q, k: 5 * torch.tanh(s / 5),
        "slopes": lambda s, b, h, q, k: s + (k - q) * 0.02 * (h + 1),
        "bias": lambda s, b, h, q, k: s + bias[k],
        "below": lambda s, b, h, q, k: torch.where(k < cut, s, -math.inf),
        "causal": lambda s, b, h, q, k: torch.where(q >= k, s * 1.5, -math.inf),
        "near": lambda s, b, h, q, k: torch.where((k <= q + 3) & (q - k < cut), s, -math.inf),
    }
    name = random_.choice(list(functions))
    return name, functions[name]


def mask_of(random_: random.Random, keys: int) -> tuple[str, Place | None]:
    """A function of places that lists of blocks are made of."""
    width, documents = random_.randrange(1, keys + 8), torch.arange(1024) // 37
    functions: dict[str, Place | None] = {
        "none": None,
        "causal": lambda b, h, q, k: q >= k,
        "window": lambda b, h, q, k: (q >= k) & (q - k < width),
        "documents": lambda b, h, q, k: documents[q] == documents[k],
        "late": lambda b, h, q, k: q >= k + width,
    }
    name = random_.choice([*functions, "none", "none"])
    return name, functions[name]


def arrays_of(random_: random.Random, shape: Any, dtype: torch.dtype) -> torch.Tensor:
    """Numbers in some order in memory."""
    batch, heads, rows, width = shape
    order = random_.choice(["heads", "rows", "wide"])
    if order == "rows":
        return torch.randn(batch, rows, heads, width).to(dtype).transpose(1, 2)
    if order == "wide":
        return torch.randn(batch, heads, rows, width + 3).to(dtype)[..., :width]
    return torch.randn(shape).to(dtype)


def wrong(seed: int) -> str:
    """What is wrong with a case; "" for a right one."""
    random_ = random.Random(seed)
    torch.manual_seed(seed)
    torch._dynamo.reset()
    shared = random_.choice([1, 1, 2])
    heads = shared * random_.randrange(1, 4)
    rows, keys = (random_.choice([1, 7, 16, 33, 64, 100, 128, 200, 257]) for _ in range(2))
    keys, batch = max(keys, 16), random_.randrange(1, 3)
    width = random_.choice([4, 8, 24, 32, 40, 64])
    dtype = random_.choice([torch.float32, torch.float32, torch.bfloat16, torch.float16])
    (score, score_mod), (mask, mask_mod) = score_of(random_, keys), mask_of(random_, keys)
    block = random_.choice([16, 32, 128])
    tile = random_.choice([16, 32, 64, 128]), random_.choice([16, 40, 64, 256])
    query = arrays_of(random_, (batch, heads, rows, width), dtype)
    both = [arrays_of(random_, (batch, heads // shared, keys, width), dtype) for _ in range(2)]

    def attend(q: Any, k: Any, v: Any) -> Any:
        lists = None
        if mask_mod is not None:
            lists = create_block_mask(
                mask_mod, None, None, rows, keys, device="cpu", BLOCK_SIZE=block
            )
        return flex_attention(q, k, v, score_mod, lists, enable_gqa=shared > 1)

    passes = {"before:expand-streams": f"expand-streams{{rows={tile[0]} columns={tile[1]}}}"}
    options = {"passes": passes, "pattern_matcher": False}
    told = (f"{seed}: {batch}x{heads}/{shared}x{rows}x{keys}x{width} {dtype}, {score}, {mask} by "
            f"{block}, tiles of {tile}")  # fmt: skip
    several = threads(3) if random_.random() < 0.3 else contextlib.nullcontext()
    with mock.patch.object(stream_softmaxes, "near", lambda shape, target: ""), several:
        try:
            call = torch.compile(attend, backend="irc", dynamic=False, options=options)
            got = call(query, *both)
        except Exception as error:
            return f"{told}: {error!r:.300}"
    exact = attend(*(x.double() for x in (query, *both)))
    gap, bits = (got.double() - exact).nan_to_num(0).abs().max().item(), torch.finfo(dtype).eps
    size = max(1.0, exact.nan_to_num(0).abs().max().item())
    if not torch.equal(got.isnan(), exact.isnan()) or gap > 24 * bits * size:
        return f"{told}: off by {gap:.3g}"
    return ""


def main() -> None:
    """Print what is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    asked = parser.parse_args()
    seeds = range(asked.first, asked.first + asked.count)
    lines = [told for seed in seeds if (told := wrong(seed))]
    print(*lines, f"{asked.count} cases, {len(lines)} wrong", sep="\n")


if __name__ == "__main__":
    main()
