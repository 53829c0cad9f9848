"""Random products and convolutions, with what is done before and behind them, against eager mode in
float64.

    python -m tests.fuzz.contractions --count 5000 [--first 0] [--on avx2] [--seconds 60]
                                      [--kind products|convolutions|gradients|integers|sizes|parts]

Every one is a kernel of irc's own, with the cost model's schedule; on a CPU some products have a
frozen weight. `--on`: cpu, avx2 (what of it an older one has), cuda, or triton: kernels of a GPU
run in Triton's interpreter, of products of at most 65 rows, columns and terms; parts: f32 is cut
into parts of bf16 wherever registers of whole tiles take these (with the kind `parts`). A GPU sums
up the depth of windows in as many parts as the seed says. The kind `sizes` calls one program with
many sizes, at and beside the ends of ranges that have a schedule of their own, with elements that
are no numbers in some. Prints the seeds that differ or fail; the exit status is 1 if there are any.
No program is begun after the seconds.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import attrs
import torch
from torch.nn import functional

import irc
from irc.passes.graph.contractions import measured
from tests.conformance.gpu_programs import interpreted

OWN = {
    "max_autotune_gemm": True, "max_autotune_gemm_backends": "IRC",
    "max_autotune_conv_backends": "IRC", "fx_graph_cache": False, "max_autotune_budget": 0,
}  # fmt: skip
SIZES = (1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 33, 48, 64, 65, 100, 129, 200)
DTYPES = (torch.float32, torch.float32, torch.float32, torch.bfloat16, torch.float16, torch.float64)
#: Relative to numbers larger than 1.
TOLERANCE = {torch.float64: 1e-11, torch.float32: 3e-5}
LARGE = (300, 1030, 2100)
PLACES: dict[str, dict[str, Any]] = {
    "cpu": {}, "avx2": {"target": "avx2"}, "triton": {"target": "triton"}, "cuda": {},
    "parts": {},
}  # fmt: skip
Function = Callable[..., Any]

BATCHES = ((), (), (), (), (1,), (2,), (3,), (2, 3))
PROLOGUES: tuple[Function, ...] = (
    lambda x: x, lambda x: x, torch.sin, torch.relu, torch.neg, lambda x: x * 2 + 1,
    lambda x: x.softmax(-1), lambda x: functional.layer_norm(x, [x.shape[-1]]),
)  # fmt: skip
EPILOGUES: dict[str, Function] = {
    "relu": lambda z, *_: z.relu(),
    "gelu": lambda z, *_: functional.gelu(z),
    "half": lambda z, *_: z * 0.5,
    "square": lambda z, *_: z * z,
    "softmax": lambda z, *_: z.softmax(-1),
    "sum": lambda z, *_: z.sum(-1, keepdim=True),
    "mean": lambda z, *_: z.mean(-2, keepdim=True),
    "turned": lambda z, *_: z.mT.contiguous().mT,
    "flat": lambda z, *_: z.reshape(-1, z.shape[-1]),
    "bias": lambda z, bias, *_: z + bias if z.shape[-1:] == bias.shape else z,
    "residual": lambda z, _, rest, __: z + rest if z.shape == rest.shape else z,
    "again": lambda z, _, __, w: z @ w if z.shape[-1] == w.shape[0] else z,
}


@attrs.frozen
class RandomProduct:
    """A function of tensors, and these. frozen: the second one is a weight of a frozen program.
    exact: results are eager mode's, bit for bit. calls: further lists of tensors that the program
    is called with."""

    function: Function
    args: tuple[torch.Tensor, ...]
    dynamic: bool
    frozen: bool
    label: str
    exact: bool = False
    calls: tuple[tuple[torch.Tensor, ...], ...] = ()


class Weighted(torch.nn.Module):
    """A function whose second argument is a parameter."""

    def __init__(self, function: Function, weight: torch.Tensor) -> None:
        super().__init__()
        self.function, self.weight = function, torch.nn.Parameter(weight, requires_grad=False)

    def forward(self, first: torch.Tensor, *rest: torch.Tensor) -> Any:
        """The function's results."""
        return self.function(first, self.weight, *rest)


def restrided(rng: random.Random, tensor: torch.Tensor) -> torch.Tensor:
    """The same elements with other strides: turned, in wider rows, apart."""
    way = rng.randrange(4)
    if way == 0:
        return tensor.mT.contiguous().mT
    if way == 1:
        return tensor
    step, more = (1, rng.randrange(1, 5)) if way == 2 else (2, 0)
    *rows, width = tensor.shape
    room = tensor.new_zeros(*rows, width * step + more)
    room[..., : width * step : step] = tensor
    return room[..., : width * step : step]


def random_product(seed: int, most: int = SIZES[-1]) -> RandomProduct:
    """The program of a seed, of sizes up to `most`."""
    rng = random.Random(seed)
    generator = torch.Generator().manual_seed(seed)
    usual = [size for size in SIZES if size <= most]
    large = LARGE if most == SIZES[-1] else usual
    dtype = rng.choice(DTYPES)
    m, k, n = (rng.choice(usual if rng.random() < 0.9 else large) for _ in range(3))
    batch = list(rng.choice(BATCHES))

    def randn(*shape: int, scale: int = 1) -> torch.Tensor:
        return (torch.randn(shape, generator=generator) / scale**0.5).to(dtype)

    left = restrided(rng, randn(*batch, m, k))
    right = restrided(rng, randn(*(batch if rng.random() < 0.7 else []), k, n, scale=k))
    rest = (randn(n), randn(*batch, m, n), randn(n, rng.choice((3, 16, 40)), scale=n))
    before = rng.choice(PROLOGUES), rng.choice(PROLOGUES[:6])
    behind = rng.choices(list(EPILOGUES), k=rng.randrange(3))
    alpha, beta = rng.choice((1, 1, 0.5, -2)), rng.choice((1, 1, 0, 3))
    operator = rng.choice(("matmul", "matmul", "addmm", "linear", "einsum"))

    def function(left: Any, right: Any, *rest: Any) -> Any:
        x, y = before[0](left), before[1](right)
        if operator == "addmm" and x.dim() == y.dim() <= 3:
            add = torch.addmm if x.dim() == 2 else torch.baddbmm
            z = add(rest[x.dim() - 2], x, y, alpha=alpha, beta=beta)
        elif operator == "linear" and y.dim() == 2:
            z = functional.linear(x, y.mT, rest[0])
        elif operator == "einsum" and x.dim() == y.dim() == 3:
            z = torch.einsum("bmk,bkn->mbn", x, y)  # nothing of `rest` fits
            return (z, z.relu() * 2)
        elif operator == "einsum" and x.dim() > 2 and y.dim() == 2:
            z = torch.einsum("...mk,kn->...nm", x, y).mT
        else:
            z = x @ y
        parts = [z]
        for name in behind:
            parts.append(EPILOGUES[name](parts[-1], *rest))
        return tuple(parts) if alpha == 1 else (parts[-1],)

    args = (left, right, *rest)
    dynamic = rng.random() < 0.2 and not any(1 in a.shape for a in args)
    frozen = rng.random() < 0.2 and not dynamic
    label = (f"{dtype} {batch} {m}x{k}x{n} {operator} {behind} alpha={alpha} beta={beta}"
             f"{' frozen' * frozen}{' dynamic' * dynamic}")  # fmt: skip
    return RandomProduct(function, args, dynamic, frozen, label)


#: Terms that registers of whole tiles take, and what is rare in a factor.
TERMS = (32, 64, 96, 160, 288, 1056)
HUGE = 3.4e38
RARE = (float("inf"), float("-inf"), float("nan"), HUGE, 1e-38, 0.0)


def random_parts(seed: int, most: int = SIZES[-1]) -> RandomProduct:
    """A product of f32 whose factors are cut into parts of bf16, some of them with elements that
    are no numbers, largest, or nearly none."""
    rng = random.Random(seed)
    generator = torch.Generator().manual_seed(seed)
    m, n = (rng.choice([size for size in SIZES if 1 < size <= most]) for _ in range(2))
    k = rng.choice(TERMS)

    def randn(*shape: int, scale: int = 1) -> torch.Tensor:
        return torch.randn(shape, generator=generator) / scale**0.5

    batch = list(rng.choice(BATCHES))
    left = restrided(rng, randn(*batch, m, k))
    right = restrided(rng, randn(*(batch if rng.random() < 0.5 else []), k, n, scale=k))
    rest = (randn(n), randn(*batch, m, n), randn(n, 32, scale=n))
    before = rng.choice(PROLOGUES), rng.choice(PROLOGUES[:6])
    behind = rng.choices(list(EPILOGUES), k=rng.randrange(3))
    special = rng.random() < 0.3
    if special:  # nothing behind it that makes numbers of these
        before, behind = (PROLOGUES[0], PROLOGUES[0]), []
        values = [rng.choice(RARE), rng.choice(RARE)]
        # Of sums that are too large the order says whether they are infinite or no number.
        both = HUGE not in values and rng.random() < 0.3
        for factor in (left, right) if both else (rng.choice((left, right)),):
            place = tuple(rng.randrange(size) for size in factor.shape)
            factor[place] = values.pop()

    def function(left: Any, right: Any, *rest: Any) -> Any:
        parts = [before[0](left) @ before[1](right)]
        for name in behind:
            parts.append(EPILOGUES[name](parts[-1], *rest))
        return tuple(parts)

    frozen = rng.random() < 0.4
    label = f"{batch} {m}x{k}x{n} {behind}{' special' * special}{' frozen' * frozen}"
    return RandomProduct(function, (left, right, *rest), False, frozen, label)


TAPS = ((1, 1), (3, 3), (3, 3), (2, 3), (5, 5), (7, 7), (1, 3), (3, 1))
BEHIND: dict[str, Function] = {
    "nothing": lambda z, _: z,
    "relu": lambda z, _: z.relu(),
    "gelu": lambda z, _: functional.gelu(z),
    "residual": lambda z, rest: (z + rest).relu(),
    "channels": lambda z, _: z.softmax(1),
    "pooled": lambda z, _: z.mean((2, 3)),
}


def random_convolution(seed: int, most: int = SIZES[-1]) -> RandomProduct:
    """The program of a seed: sizes, taps, strides, paddings, dilations, groups, layouts; a few
    images have an element that is no number."""
    rng = random.Random(seed)
    generator = torch.Generator().manual_seed(seed)
    dtype, groups = rng.choice(DTYPES), rng.choice((1, 1, 1, 1, 2, 3, 8))
    channels = rng.choice([n for n in (1, 2, 3, 5, 8, 16, 17, 33, 65) if n * groups <= most])
    out = rng.choice([n for n in (1, 4, 7, 8, 17, 48, 100) if n * groups <= most])
    taps, stride = rng.choice(TAPS), (rng.choice((1, 1, 2, 3)), rng.choice((1, 1, 2)))
    padding, dilation = (rng.randrange(4), rng.randrange(3)), (rng.choice((1, 1, 2)), 1)
    size = [max(rng.choice((5, 8, 14, 17, 28)), d * (t - 1) + 1)
            for t, d in zip(taps, dilation, strict=True)]  # fmt: skip

    def randn(*shape: int, scale: int = 1) -> torch.Tensor:
        values = (torch.randn(shape, generator=generator) / scale**0.5).to(dtype)
        last = rng.random() < 0.5 and len(shape) == 4
        return values.to(memory_format=torch.channels_last) if last else values

    image = randn(rng.choice((1, 2, 3)), channels * groups, *size)
    weight = randn(out * groups, channels, *taps, scale=channels * taps[0] * taps[1])
    if rng.random() < 0.1:
        image[0, 0, 0, 0] = float("nan")
    before, behind = rng.choice(PROLOGUES[:6]), rng.choice(list(BEHIND))

    def convolved(image: Any, weight: Any, bias: Any) -> Any:
        return functional.conv2d(before(image), weight, bias, stride, padding, dilation, groups)

    def function(image: Any, weight: Any, bias: Any, rest: Any) -> Any:
        return (BEHIND[behind](convolved(image, weight, bias), rest),)

    args = (image, weight, randn(out * groups))
    args = (*args, torch.randn_like(convolved(*args)))
    label = (f"{dtype} {list(image.shape)} {list(weight.shape)} groups={groups} {stride} {padding} "
             f"{dilation} {behind} strides={image.stride()} {weight.stride()}")  # fmt: skip
    return RandomProduct(function, args, False, False, label)


def random_gradients(seed: int, most: int = SIZES[-1]) -> RandomProduct:
    """The gradients of the image, the weight and the bias of a seed's convolution, which may be
    transposed: of all, or of some."""
    rng = random.Random(seed)
    generator = torch.Generator().manual_seed(seed)
    dtype, groups = rng.choice(DTYPES), rng.choice((1, 1, 1, 1, 2, 3))
    channels = rng.choice([n for n in (1, 3, 8, 16, 17, 33, 64) if n * groups <= most])
    out = rng.choice([n for n in (1, 4, 7, 16, 17, 48) if n * groups <= most])
    taps, stride = rng.choice(TAPS), rng.choice(((1, 1), (1, 1), (2, 1), (2, 3)))
    padding, dilation = (rng.randrange(3), rng.randrange(2)), (rng.choice((1, 1, 2)), 1)
    size = [max(rng.choice((5, 8, 14, 16)), d * (t - 1) + 1)
            for t, d in zip(taps, dilation, strict=True)]  # fmt: skip
    turned, mask = rng.random() < 0.2, rng.choice(((1, 1, 0), (1, 1, 1), (1, 0, 0), (0, 1, 0)))

    def randn(*shape: int, scale: int = 1) -> torch.Tensor:
        values = (torch.randn(shape, generator=generator) / scale**0.5).to(dtype)
        last = rng.random() < 0.6
        return values.to(memory_format=torch.channels_last) if last else values

    image = randn(rng.choice((1, 2, 4)), channels * groups, *size)
    first, second = (channels * groups, out) if turned else (out * groups, channels)
    weight = randn(first, second, *taps, scale=second * taps[0] * taps[1])
    rest = (stride, padding, dilation, turned, (0, 0), groups)
    places = randn(*torch.convolution(image, weight, None, *rest).shape)
    before = rng.choice(PROLOGUES[:6])

    def function(places: Any, image: Any, weight: Any) -> Any:
        sizes = [places.shape[1]] if mask[2] else None
        gradients = torch.ops.aten.convolution_backward(
            before(places), image.relu(), weight, sizes, *rest, list(map(bool, mask))
        )
        return tuple(each for each, wanted in zip(gradients, mask, strict=True) if wanted)

    label = (f"{dtype} {list(image.shape)} {list(weight.shape)} groups={groups} {stride} {padding} "
             f"{dilation} {mask}{' transposed' * turned} strides={image.stride()} "
             f"{weight.stride()} {places.stride()}")  # fmt: skip
    return RandomProduct(function, (places, image, weight), False, False, label)


MANY_SIZES = (0, 1, 2, 3, 4, 5, 8, 9, 15, 16, 17, 31, 63, 64, 65, 127, 128, 129, 256, 300, 512, 513)
FORMS = ("rows", "rows", "batch", "two", "columns", "depth", "products")


def random_sizes(seed: int, most: int = SIZES[-1]) -> RandomProduct:
    """The program of a seed, of one symbolic size, and what it is called with."""
    rng = random.Random(seed)
    generator = torch.Generator().manual_seed(seed)
    dtype, form = rng.choice(DTYPES), rng.choice(FORMS)
    k, n = (rng.choice([size for size in (8, 17, 64, 100, 129, 256) if size <= max(most, 17)])
            for _ in range(2))  # fmt: skip
    before, behind = rng.choice(PROLOGUES), rng.choices(list(EPILOGUES), k=rng.randrange(3))

    def randn(*shape: int, scale: int = 1) -> torch.Tensor:
        return (torch.randn(shape, generator=generator) / max(1, scale) ** 0.5).to(dtype)

    def arguments(size: int) -> tuple[torch.Tensor, ...]:
        shapes = {"rows": (size, k), "batch": (3, size, k), "two": (size, 5, k),
                  "columns": (k, size), "depth": (24, size), "products": (size, 24, k)}  # fmt: skip
        left = randn(*shapes[form])
        if form == "products":
            left = left / k**0.5
        if rng.random() < 0.15 and left.numel():
            left.view(-1)[rng.randrange(left.numel())] = rng.choice((float("nan"), float("inf")))
        right = {"columns": (n, k), "depth": (size, 40), "products": (size, k, 40)}
        return left, randn(*right.get(form, (k, n)), scale=k)

    def function(left: Any, right: Any) -> Any:
        x = before(left)
        parts = [right @ x if form == "columns" else x @ right]
        for name in behind:
            if name not in ("bias", "residual", "again"):
                parts.append(EPILOGUES[name](parts[-1]))
        return tuple(parts)

    frozen = form in ("rows", "batch", "two") and rng.random() < 0.5
    least = int(form == "columns" and "flat" in behind)  # no rows can be told of no columns
    sizes = rng.sample([size for size in MANY_SIZES if least <= size <= most * 3], 10)
    first = arguments(rng.choice((37, 100)))
    calls = []
    for size in sizes:
        given = arguments(size)
        calls.append((given[0], first[1]) if form in ("rows", "batch", "two", "columns") else given)
    label = f"{dtype} {k}x{n} {form} {behind} sizes={sizes}{' frozen' * frozen}"
    return RandomProduct(function, first, True, frozen, label, calls=tuple(calls))


INTEGERS = (torch.int8, torch.int8, torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64)
WHOLE: dict[str, Function] = {
    "nothing": lambda z, _: z,
    "relu": lambda z, _: z.relu(),
    "scaled": lambda z, _: z.float() * 0.0078125,
    "added": lambda z, rest: z + rest,
    "narrow": lambda z, _: (z >> 3).to(torch.int8),
}


def random_integers(seed: int, most: int = SIZES[-1]) -> RandomProduct:
    """The program of a seed: integers of any value, in their type's sums or wider ones."""
    rng = random.Random(seed)
    generator = torch.Generator().manual_seed(seed)
    usual = [size for size in SIZES if size <= most]
    m, k, n = (rng.choice(usual if rng.random() < 0.95 else (*usual, 300)) for _ in range(3))
    dtype, way = rng.choice(INTEGERS), rng.choice(("product", "wide", "wide", "int_mm"))
    way = way if dtype == torch.int8 or way != "int_mm" else "product"
    behind, batch = rng.choice(list(WHOLE)), list(rng.choice(BATCHES)) if way != "int_mm" else []

    def whole(*shape: int) -> torch.Tensor:
        # Of the widest types so many bits that sums have their own, and floats of them too.
        bits = min(torch.iinfo(dtype).bits, 14)
        low = 0 if dtype == torch.uint8 else -(1 << (bits - 1))
        values = torch.randint(low, low + (1 << bits), shape, generator=generator)
        lowest = torch.rand(shape, generator=generator) < 0.1
        return torch.where(lowest, low, values).to(dtype)

    def function(left: Any, right: Any, rest: Any) -> Any:
        if way == "wide":
            left, right = left.int(), right.int()
        z = torch._int_mm(left, right) if way == "int_mm" else left @ right
        return (WHOLE[behind](z, rest.to(z.dtype)),)

    args = (restrided(rng, whole(*batch, m, k)), restrided(rng, whole(*batch, k, n)), whole(n))
    frozen = rng.random() < 0.2
    label = f"{dtype} {batch} {m}x{k}x{n} {way} {behind}{' frozen' * frozen}"
    return RandomProduct(function, args, False, frozen, label, True)


def parts_target() -> str:
    """This machine, as if products of parts were always the fastest."""
    from irc.target import Target
    from irc.target.figures import evolve

    every, host = (9999, 9999, 9999), Target.host()
    figures = {"own_split": every, "own_split_panels": every, "split_threads": 64,
               "tiled_work": 1}
    return str(evolve(host, processor=evolve(host.processor, **figures)))


def some_parts(rng: random.Random) -> Callable[..., list[int]]:
    """What says in how many parts a GPU sums up a depth: in any that it has."""
    from irc.analysis.depth_parts import cut_axis, leading_axes, window_sums

    def parts_of(call: Any, target: Any, apart: int | None = None) -> list[int]:
        windows = window_sums(call, target)
        if windows is None:
            return [1]
        lying = [False] * len(windows.depth)
        cuts = [n for n in range(2, 13) if leading_axes(windows.depth, n)
                or cut_axis(windows.depth, lying, n, 1) is not None]  # fmt: skip
        return [rng.choice([1, *cuts, *cuts, *cuts])]

    return parts_of


def difference(program: RandomProduct, place: str = "cpu", seed: int = 0) -> str:
    """What is wrong with irc's results; "" for nothing. Raises what compiling raises. seed: of the
    number of parts in which a GPU sums up depths."""
    if place not in ("triton", "cuda"):
        return _difference(program, place)
    # Of f32 all bits are compared.
    whole = torch.backends.cudnn.flags(enabled=True, allow_tf32=False)
    with whole, mock.patch.object(measured, "parts_of", some_parts(random.Random(seed))):
        return _difference(program, place)


def _difference(program: RandomProduct, place: str) -> str:
    args, run = program.args, program.function
    options = {**OWN, **PLACES[place]}
    if place == "parts":
        options["target"] = parts_target()
    context = interpreted() if place == "triton" else contextlib.nullcontext()

    def placed(args: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        if place == "cuda":
            return tuple(a.cuda() for a in args)
        return (args[0], *args[2:]) if frozen else tuple(args)

    frozen = program.frozen and place != "cuda"
    if frozen:
        run = Weighted(run, args[1])
        options["freezing"] = True
    with context:
        if program.calls:  # sizes of 0 and 1 have programs of their own
            torch._dynamo.reset()
            with torch.no_grad():
                compiled = torch.compile(run, backend="irc", options=options, dynamic=True)
        else:
            compiled = irc.compile(run, placed(args), options=options, dynamic=program.dynamic)
        for each in (args, *program.calls):
            with torch.no_grad():
                results = [result.cpu() for result in compiled(*placed(each))]
            wrong = _difference_of(program, each, results)
            if wrong:
                return wrong if each is args else f"{[list(a.shape) for a in each]}: {wrong}"
    return ""


def _difference_of(
    program: RandomProduct, args: Sequence[torch.Tensor], results: Sequence[torch.Tensor]
) -> str:
    """What is wrong with the results of one call."""
    usual = program.function(*args)
    exact = usual if program.exact else program.function(*(a.double() for a in args))
    for mine, wanted, eager in zip(results, exact, usual, strict=True):
        if (mine.dtype, mine.shape) != (eager.dtype, eager.shape):
            return f"{mine.dtype} {mine.shape}, not {eager.dtype} {eager.shape}"
        if program.exact:
            if not torch.equal(mine, eager):
                return f"{(mine != eager).sum().item()} elements differ"
            continue
        if not torch.equal(mine.isnan(), wanted.isnan()):
            return "other elements are NaN"
        infinite = mine.isinf()  # sums of 16 bits overflow; eager's gelu of infinity is NaN
        if ((infinite != eager.isinf()) & (infinite != wanted.isinf())).any():
            return "other elements are infinite"
        error, least = (distance(each, wanted) for each in (mine, eager))
        if not error <= max(TOLERANCE.get(mine.dtype, 4e-2), 3 * least):
            return f"off by {error:.2e}, eager mode by {least:.2e}"
    return ""


def distance(values: torch.Tensor, wanted: torch.Tensor) -> float:
    """The largest error of what are numbers, relative to numbers larger than 1."""
    apart = ((values.double() - wanted).abs() / (1 + wanted.abs()))[wanted.isfinite()]
    return apart.max().item() if apart.numel() else 0.0


#: What makes the programs of a kind.
KINDS: dict[str, Callable[[int, int], RandomProduct]] = {
    "products": lambda *how: random_product(*how),
    "convolutions": lambda *how: random_convolution(*how),
    "gradients": lambda *how: random_gradients(*how),
    "integers": lambda *how: random_integers(*how),
    "sizes": lambda *how: random_sizes(*how),
    "parts": lambda *how: random_parts(*how),
}


def main(words: Sequence[str] | None = None) -> int:
    """Run the seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--kind", choices=list(KINDS), default="products")
    parser.add_argument("--on", choices=PLACES, default="cpu")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    chosen = parser.parse_args(words)
    count = failed = 0
    end = time.monotonic() + chosen.seconds
    for seed in range(chosen.first, chosen.first + chosen.count):
        if time.monotonic() > end:
            break
        program = KINDS[chosen.kind](seed, 65 if chosen.on == "triton" else SIZES[-1])
        count += 1
        try:
            wrong = difference(program, chosen.on, seed)
        except Exception as error:
            wrong = f"{type(error).__name__}: {str(error)[:300]}"
        if wrong:
            failed += 1
            print(f"seed {seed}: {program.label}: {wrong}", flush=True)
    print(f"{count} programs on {chosen.on}, {failed} wrong")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
