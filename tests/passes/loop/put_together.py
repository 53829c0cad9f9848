"""Random programs that put images together of pieces: what they are made of, by seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional
from torch.utils._pytree import tree_leaves

Step = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

DTYPES = (torch.float32, torch.bfloat16, torch.float64, torch.int64, torch.bool)
LAYOUTS = ("contiguous", "permuted", "channels last", "expanded", "every other")
_MOST = 30_000
_SPECIAL = (float("nan"), float("inf"), -float("inf"), -0.0, 0.0)


def image(draw: random.Random, sizes: Sequence[int], dtype: torch.dtype, layout: str):
    """A tensor of such sizes and strides, with NaN, infinities and both zeros among the data."""
    generator = torch.Generator().manual_seed(draw.randrange(1 << 30))

    def filled(*shape: int) -> torch.Tensor:
        x = torch.randint(-3, 4, shape, generator=generator).float()
        for value in _SPECIAL if dtype.is_floating_point else ():
            x[torch.rand(shape, generator=generator) < 0.03] = value
        return x.ne(0) if dtype is torch.bool else x.to(dtype)

    if layout == "permuted":
        order = draw.sample(range(len(sizes)), len(sizes))
        return filled(*(sizes[d] for d in order)).permute(
            [order.index(d) for d in range(len(sizes))]
        )
    if layout == "channels last" and len(sizes) == 4:
        return filled(*sizes).contiguous(memory_format=torch.channels_last)
    if layout == "expanded":
        lone = draw.randrange(len(sizes))
        one = [min(1, size) if d == lone else size for d, size in enumerate(sizes)]
        return filled(*one).expand(*sizes)
    if layout == "every other":
        return filled(*sizes[:-1], 2 * sizes[-1])[..., ::2]
    return filled(*sizes)


def _elementwise(draw: random.Random, dtype: torch.dtype) -> Step:
    """A function whose values are exact, as long as the numbers are few bits."""
    if dtype is torch.bool:
        return draw.choice([
            lambda x, y: ~x, lambda x, y: x ^ True, lambda x, y: x & (x | False),
        ])  # fmt: skip
    number = draw.choice([1, 2, -1])
    common: list[Step] = [
        lambda x, y: x * number, lambda x, y: x + number, lambda x, y: -x, lambda x, y: x.abs(),
        lambda x, y: torch.where(x > 1, x, -x),
    ]  # fmt: skip
    if dtype.is_floating_point:
        common += [lambda x, y: x / number, lambda x, y: x.nan_to_num(1.0, 2.0, -2.0)]
    return draw.choice(common)


def _paired(draw: random.Random, dtype: torch.dtype) -> Callable[..., torch.Tensor]:
    if dtype is torch.bool:
        return draw.choice([torch.logical_and, torch.logical_xor])
    wide = dtype in (torch.int64, torch.float64)
    return draw.choice([torch.add, torch.sub, torch.mul if wide else torch.add])


def _step(draw: random.Random, x: torch.Tensor) -> Step:
    """One way to put an image of such sizes together, of it and of another of the same sizes."""
    rank, dtype, sizes = x.dim(), x.dtype, x.shape
    dim = draw.randrange(rank)
    one, other = _elementwise(draw, dtype), _elementwise(draw, dtype)
    filler = draw.choice([0, 1]) if dtype is torch.bool else draw.choice([0, 2, -1])
    kind = draw.choice(
        ["cat", "cat", "stack", "pad", "pad", "roll", "roll", "slice", "select", "where", "single"]
    )
    if kind == "cat":
        cut = draw.randint(0, sizes[dim])
        return lambda x, y: torch.cat([one(x, y), other(y, x).narrow(dim, 0, cut)], dim)
    if kind == "stack":
        return lambda x, y: torch.stack([one(x, y), other(y, x), x], dim).flatten(dim, dim + 1)
    if kind == "pad":
        reach = [draw.randint(-1 if sizes[rank - 1 - d // 2] > 2 else 0, 3)
                 for d in range(2 * draw.randint(1, rank))]  # fmt: skip
        return lambda x, y: functional.pad(one(x, y), reach, value=filler)
    if kind == "roll":
        dims = draw.sample(range(rank), draw.randint(1, min(2, rank)))
        shifts = [draw.randint(-4, 4) for _ in dims]
        return lambda x, y: torch.roll(one(x, y), shifts, dims)
    if kind == "slice" and sizes[dim]:
        low = draw.randrange(sizes[dim])
        high, step = draw.randint(low, sizes[dim]), draw.choice([1, 1, 1, 2])
        return lambda x, y: torch.slice_scatter(
            one(x, y), other(y, x)[(slice(None),) * dim + (slice(low, high, step),)], dim, low,
            high, step,
        )  # fmt: skip
    if kind == "select" and sizes[dim]:
        place, source = draw.randrange(sizes[dim]), draw.randrange(sizes[dim])
        return lambda x, y: torch.select_scatter(
            one(x, y), other(y, x).select(dim, source), dim, place
        )
    if kind == "where":
        border = draw.randint(-1, sizes[dim] + 1)
        shape = [-1 if d == dim else 1 for d in range(rank)]
        compared = draw.choice([torch.lt, torch.ge, torch.eq, torch.ne, torch.le, torch.gt])
        return lambda x, y: torch.where(
            compared(torch.arange(x.shape[dim]), border).view(shape), one(x, y), other(y, x)
        )
    return one


def program(seed: int) -> tuple[Callable[..., tuple[torch.Tensor, ...]], list[torch.Tensor]]:
    """A function of two images of the same sizes, and these."""
    draw = random.Random(seed)
    rank = draw.choice([2, 3, 3, 4])
    sizes = [draw.choice([1, 3, 5, 7, 9, 17, 31]) for _ in range(rank)]
    if draw.random() < 0.06:
        sizes[draw.randrange(rank)] = 0
    while torch.Size(sizes).numel() > 6_000:
        sizes[sizes.index(max(sizes))] //= 2
    dtype = draw.choice(DTYPES)
    arguments = [image(draw, sizes, dtype, draw.choice(LAYOUTS)) for _ in range(2)]
    x, y = arguments
    steps: list[Callable[..., tuple[torch.Tensor, torch.Tensor]]] = []
    for _ in range(draw.randint(1, 3)):
        step, paired = _step(draw, x), _paired(draw, dtype)
        both = draw.random() < 0.7

        def advance(x, y, step=step, paired=paired, both=both):
            whole = step(x, y)
            return whole, paired(whole, step(y, x)) if both else step(y, y)

        after = advance(x, y)
        if after[0].numel() > _MOST:
            break
        steps.append(advance)
        x, y = after

    def function(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        for advance in steps:
            x, y = advance(x, y)
        return x, y

    return function, arguments


def _bits(x: torch.Tensor) -> torch.Tensor:
    """The bits of each element as an integer, one for all NaN."""
    if not x.dtype.is_floating_point:
        return x
    x = torch.where(x.isnan(), float("nan"), x).contiguous()
    return x.view({2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()])


def same_bits(results: Any, expected: Any) -> None:
    """Tensors, or trees of them, are equal in dtype, sizes and each bit, but for those of NaN."""
    pairs = (tree_leaves(tree) for tree in (results, expected))
    for one, other in zip(*pairs, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        torch.testing.assert_close(_bits(one), _bits(other), rtol=0, atol=0)


__all__ = ["DTYPES", "LAYOUTS", "image", "program", "same_bits"]
