"""Operators by themselves, of images, rows and losses: irc, TorchInductor's default, eager mode.

    OMP_NUM_THREADS=1 python -m bench.operators [--gradients] [--only NAME,NAME] [--behind]
    OMP_NUM_THREADS=1 python -m bench.operators --more ...
    python -m bench.operators --gpu [--gradients] ...

One thread, f32 unless said, random arguments of some hundred kilobytes; `-last` has channels
innermost. A line a case: median microseconds of each side, clocked in turn, and
TorchInductor's time over irc's; with `--gradients` those of all float arguments, of the sum of the
result, forward included. `--more`: other operators (`bench.more_operators`). `--behind`: only
where that is below 0.9. `--gpu`: arrays of a GPU, with
16 times as many images, rows or batches; what the GPU takes, by CUDA graphs of ten calls.
"""

from __future__ import annotations

import argparse
import functools
import statistics
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

import irc  # noqa: F401  # its import registers the backend
from bench.common import in_turns, print_load
from bench.gpu_timing import recorded, replayed
from bench.more_operators import more

Case = tuple[Callable[..., Tensor], tuple[Tensor, ...]]
ROUNDS, LEAST_SECONDS, BEHIND, GPU_TIMES, GPU_CALLS = 9, 0.02, 0.9, 16, 10
randn = torch.randn


def places(below: int, *sizes: int) -> Tensor:
    """Random positions."""
    return torch.randint(0, below, sizes)


def images() -> Iterator[tuple[str, Callable[..., Tensor], tuple[int, ...]]]:
    """What is done with an image, and its sizes."""
    for mode in ("nearest", "bilinear", "bicubic"):
        larger = functools.partial(F.interpolate, scale_factor=2, mode=mode)
        yield f"upsampled {mode}", larger, (2, 32, 48, 48)
    yield "max_pool", lambda x: F.max_pool2d(x, 3, 2, 1), (2, 64, 56, 56)
    yield "avg_pool", lambda x: F.avg_pool2d(x, 3, 2, 1), (2, 64, 56, 56)
    yield "adaptive avg", lambda x: F.adaptive_avg_pool2d(x, 7), (2, 64, 56, 56)
    yield "adaptive avg, odd", lambda x: F.adaptive_avg_pool2d(x, 5), (2, 64, 56, 56)
    yield "adaptive max", lambda x: F.adaptive_max_pool2d(x, 5), (2, 64, 56, 56)
    yield "group_norm", lambda x: F.group_norm(x, 8), (2, 64, 56, 56)
    yield "instance_norm", lambda x: F.instance_norm(x), (2, 64, 56, 56)
    yield "batch_norm", lambda x: F.batch_norm(x, None, None, training=True), (4, 64, 28, 28)
    yield "pixel_shuffle", lambda x: F.pixel_shuffle(x, 2) * 2, (2, 64, 28, 28)
    yield "pixel_unshuffle", lambda x: F.pixel_unshuffle(x, 2) * 2, (2, 16, 56, 56)
    for mode in ("reflect", "replicate", "constant", "circular"):
        yield (f"pad {mode}",
               lambda x, m=mode: F.pad(x, (3, 3, 3, 3), mode=m) * 2, (2, 32, 56, 56))  # fmt: skip
    yield "softmax of channels", lambda x: torch.softmax(x, 1), (2, 21, 96, 96)
    yield "channel_shuffle", lambda x: F.channel_shuffle(x, 4) * 2, (2, 64, 28, 28)
    yield "permuted layer_norm", _permuted_norm, (4, 64, 28, 28)


def _permuted_norm(x: Tensor) -> Tensor:
    return F.layer_norm(x.permute(0, 2, 3, 1), (x.shape[1],)).permute(0, 3, 1, 2)


def _rotary_pairs(x: Tensor, c: Tensor, s: Tensor) -> Tensor:
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack((a * c - b * s, a * s + b * c), -1).flatten(-2)


def _rotary_turned(x: Tensor, c: Tensor, s: Tensor) -> Tensor:
    turned = torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)
    return x * c.repeat_interleave(2, -1) + turned * s.repeat_interleave(2, -1)


def _rotary_complex(x: Tensor, f: Tensor) -> Tensor:
    return torch.view_as_real(torch.view_as_complex(x) * torch.view_as_complex(f)[:, None])


def _colors(x: Tensor) -> Tensor:
    r, g, b = x.unbind(-1)
    return torch.stack((r * 0.3 + g * 0.6, g * 2, b - r), -1)


def rows() -> Iterator[tuple[str, Callable[..., Tensor], tuple[int, ...]]]:
    """What is done with one array."""
    yield "roll", lambda x: torch.roll(x, (3, 3), (1, 2)) * 2, (8, 56, 56, 96)
    yield "flip", lambda x: x.flip(-1) * 2, (64, 64, 200)
    yield "cumsum", lambda x: x.cumsum(-1) * 2, (256, 1000)
    yield "cumsum of columns", lambda x: x.cumsum(0) * 2, (1000, 256)
    yield "sort", lambda x: x.sort(-1)[0], (128, 1000)
    yield "topk", lambda x: x.topk(8, -1)[0], (128, 1000)
    yield "layer_norm", lambda x: F.layer_norm(x, (768,)), (512, 768)
    yield "variance of columns", lambda x: x.var(0), (1000, 512)
    yield "few columns", lambda x: x.softmax(0), (60_000, 3)
    yield "logsumexp of columns", lambda x: x.logsumexp(0), (1000, 512)
    yield "geglu", lambda x: F.gelu(x[..., :512]) * x[..., 512:], (512, 1024)
    yield "one of nine", lambda x: x[:, 0, 0] * (x[:, 1, 1] - x[:, 2, 1]), (50_000, 3, 3)
    yield "complex", lambda x: torch.view_as_complex(x).square().abs(), (100_000, 2)
    yield "transposed and not", lambda x: x.t() + x, (700, 700)
    yield "unfold", lambda x: F.unfold(x, 3, padding=1) * 2, (2, 16, 32, 32)
    yield "fold", lambda x: F.fold(x, (32, 32), 3, padding=1), (2, 144, 1024)
    yield "avg_pool of volumes", lambda x: F.avg_pool3d(x, 2), (1, 16, 16, 32, 32)
    yield "max_pool of lines", lambda x: F.max_pool1d(x, 3, 2, 1), (4, 64, 1000)


def few_rows() -> Iterator[tuple[str, Callable[..., Tensor], tuple[int, ...]]]:
    """What is done with few long rows: logits of a token, images of a decoder."""
    yield "softmax of a row", lambda x: x.softmax(-1), (1, 128_256)
    yield "softmax of eight rows", lambda x: x.softmax(-1), (8, 128_256)
    yield "softmax of odd rows", lambda x: x.softmax(-1), (2, 50_021)
    yield "softmax of a long row", lambda x: x.softmax(-1), (1, 1 << 22)
    yield "logsumexp of a row", lambda x: x.logsumexp(-1), (1, 128_256)
    yield "layer_norm of a row", lambda x: F.layer_norm(x, x.shape[-1:]), (1, 128_256)
    yield "normalize of rows", lambda x: F.normalize(x, dim=-1), (2, 50_021)
    yield "argmax of a row", lambda x: x.argmax(-1), (1, 128_256)
    for sizes in ((1, 512, 64, 64), (2, 320, 64, 64), (1, 128, 512, 512)):
        yield f"group_norm {'x'.join(map(str, sizes))}", _activated_norm, sizes


def _activated_norm(x: Tensor) -> Tensor:
    return F.silu(F.group_norm(x, 32))


def cases(times: int = 1) -> dict[str, Case]:
    """All cases by name, with `times` as many images, rows or batches."""
    made: dict[str, Case] = {}
    for name, call, (first, *sizes) in images():
        x = randn(times * first, *sizes)
        made[name] = call, (x,)
        made[f"{name}-last"] = call, (x.contiguous(memory_format=torch.channels_last),)
    for name, call, (first, *sizes) in rows():
        square = name == "transposed and not"
        made[name] = call, (randn(first if square else times * first, *sizes),)
    for name, call, sizes in few_rows():
        x = randn(*sizes)
        made[name] = call, (x,)
        if x.dim() == 4:
            made[f"{name}-last"] = call, (x.contiguous(memory_format=torch.channels_last),)
    grid = torch.rand(times * 2, 48, 48, 2) * 2 - 1
    many, points = times * 256, times * 100_000
    classes, columns = places(1000, many), places(1000, many, 300)
    angles = randn(256, 32), randn(256, 32)
    several: dict[str, Case] = {
        "grid_sample": (lambda x, g: F.grid_sample(x, g, align_corners=False),
                        (randn(times * 2, 32, 48, 48), grid)),
        "cross": (torch.linalg.cross, (randn(points, 3), randn(points, 3))),
        "concatenated": (lambda x, y: torch.cat([x, y.exp(), x + y], 1).relu(),
                         (randn(times * 64, 200, 40), randn(times * 64, 200, 40))),
        "gather": (lambda x, i: x.gather(1, i), (randn(many, 1000), columns)),
        "embedding": (lambda w, i: F.embedding(i, w) * 2, (randn(5000, 128), classes)),
        "cross_entropy": (F.cross_entropy, (randn(many, 1000), classes)),
        "cdist": (torch.cdist, (randn(200, 32), randn(300, 32))),
        "attention with a mask": (F.scaled_dot_product_attention,
                                  (*(randn(times * 2, 8, 128, 64) for _ in range(3)),
                                   randn(128, 128))),
        "causal lines": (lambda x, w: F.conv1d(x, w, padding=3, groups=256),
                         (randn(times * 4, 256, 200), randn(256, 1, 4))),
        "rotary pairs": (_rotary_pairs, (randn(times * 4, 12, 256, 64), *angles)),
        "rotary turned": (_rotary_turned, (randn(times * 4, 12, 256, 64), *angles)),
        "rotary complex": (_rotary_complex, (randn(times * 4, 256, 12, 32, 2),
                                             randn(256, 32, 2))),
        "colors": (_colors, (randn(times * 8, 224, 224, 3),)),
        "transposed convolution": (lambda x, w: F.conv_transpose2d(x, w, stride=2),
                                   (randn(times * 2, 32, 28, 28), randn(32, 16, 2, 2))),
        "softmax of bf16": (lambda x: x.softmax(-1), (randn(times * 512, 1000).bfloat16(),)),
    }  # fmt: skip
    return {**made, **several}


def gpu_microseconds(call: Callable[[], object]) -> float:
    """The median of some replays of a graph of calls."""
    graph = recorded(call, GPU_CALLS)
    return statistics.median(replayed(graph, GPU_CALLS) for _ in range(ROUNDS))


def microseconds(steps: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """The medians of some rounds of each side's calls in turn, so many that the clock is no
    matter."""
    for step in steps.values():
        step()
        step()
    times = in_turns(steps, ROUNDS, LEAST_SECONDS)
    return {side: statistics.median(each) * 1e6 for side, each in times.items()}


def step_of(call: Callable[..., Tensor], given: tuple[Any, ...], gradients: bool) -> Any:
    """What is clocked; None where nothing has gradients."""
    if not gradients:
        return torch.no_grad()(lambda: call(*given))
    leaves = tuple(x.detach().requires_grad_() if x.is_floating_point() else x for x in given)
    wanted = [x for x in leaves if x.requires_grad]
    outcome = call(*leaves)
    if not outcome.requires_grad:
        return None
    ones = torch.ones_like(outcome)
    return lambda: torch.autograd.grad(call(*leaves), wanted, ones, allow_unused=True)


def line(name: str, case: Case, gradients: bool, gpu: bool = False) -> tuple[float, str]:
    """TorchInductor's time over irc's, and the line."""
    call, given = case
    if gpu:
        given = tuple(x.cuda() for x in given)
    torch._dynamo.reset()
    steps = {}
    for side in ("irc", "inductor", "eager"):
        compiled = call if side == "eager" else torch.compile(call, backend=side, dynamic=False)
        steps[side] = step_of(compiled, given, gradients)
    if None in steps.values():
        return 1.0, f"{name:28} has no gradient"
    if gpu:
        times = {side: gpu_microseconds(step) for side, step in steps.items()}
    else:
        times = microseconds(steps)
    ratio = times["inductor"] / times["irc"]
    shown = "  ".join(f"{side} {time:9.1f}" for side, time in times.items())
    return ratio, f"{name:28} {shown}  inductor:irc {ratio:5.2f}"


def main() -> None:
    """Print the lines."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--gradients", action="store_true")
    parser.add_argument("--only", default="", metavar="NAME,NAME")
    parser.add_argument("--behind", action="store_true")
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--more", action="store_true")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print_load()
    ratios, failed = [], []
    for name, case in (more() if asked.more else cases(GPU_TIMES if asked.gpu else 1)).items():
        if asked.only and name not in asked.only.split(","):
            continue
        try:
            ratio, text = line(name, case, asked.gradients, asked.gpu)
        except Exception as error:
            failed.append(name)
            print(f"{name:28} failed: {str(error).splitlines()[0][:90]}", flush=True)
            continue
        ratios.append(ratio)
        if not asked.behind or ratio < BEHIND:
            print(text, flush=True)
    print(f"{len(ratios)} cases, geometric mean {statistics.geometric_mean(ratios):.2f}, "
          f"{sum(r < BEHIND for r in ratios)} below {BEHIND}")  # fmt: skip
    print_load()
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
