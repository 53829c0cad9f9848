"""How much of a gradient's error is chance: MobileNetV2's, for several images.

    python -m bench.experiments.conditioning --images 6

Prints, for each batch of random images, the errors of the gradients against float64 in units of
eager's own error: of irc's program, and of eager mode with batch norms that compute in float64 (all
else in f32).  Where an image has activations next to a kink of ReLU6, rounding decides which side
they fall on, so that even the more exact of two programs is off by more than twice the other's
error now and then.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from bench.common import geometric_mean
from tests.accuracy import Error, error
from tests.models.test_models import gradients, with_batch_statistics
from tests.models.zoo import ZOO

ENTRY = ZOO["mobilenet_v2"]
# Gradients that are zero but for rounding have no error relative to themselves.
LARGEST_ERROR = 1e-3


@contextmanager
def exact_batch_norms() -> Iterator[None]:
    """Batch norms that compute in float64 and round their results."""
    plain = nn.functional.batch_norm

    def exact(source: torch.Tensor, *rest: Any, **options: Any) -> torch.Tensor:
        wide = [t.double() if isinstance(t, torch.Tensor) else t for t in rest]
        named = {k: t.double() if isinstance(t, torch.Tensor) else t for k, t in options.items()}
        return plain(source.double(), *wide, **named).to(source.dtype)

    nn.functional.batch_norm = exact
    try:
        yield
    finally:
        nn.functional.batch_norm = plain


def run(kind: str, images: torch.Tensor) -> tuple[list[str], list[torch.Tensor | None]]:
    """Names and values of one program's gradients."""
    torch._dynamo.reset()
    model = with_batch_statistics(ENTRY.make_model())
    if kind == "float64":
        return gradients(model.double(), model, (images.double(),))
    if kind == "exact batch norms":
        with exact_batch_norms():
            return gradients(model, model, (images,))
    call = torch.compile(model, backend="irc", dynamic=False) if kind == "irc" else model
    return gradients(model, call, (images,))


def errors(kind: str, images: torch.Tensor, eager: Any, exact: Any) -> list[float]:
    """The errors of one program's gradients in units of eager's."""
    names, made = run(kind, images)
    ratios = []
    for name, a, b, c in zip(names, made, eager, exact, strict=True):
        if a is None or not a.is_floating_point() or "running" in name:
            continue
        found = error(a, b, c)
        if isinstance(found, Error) and 0 < found.eager < LARGEST_ERROR * found.scale:
            ratios.append(max(found.mine / found.eager, 1e-9))
    return ratios


def main() -> None:
    """Print a line for each batch of images and program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=6, help="batches of images")
    count = parser.parse_args().images
    torch.set_num_threads(1)
    print(f"{'images':>6} {'program':<18} {'geomean':>8} {'largest':>8}  (eager's error = 1)")
    for seed in range(count):
        generator = torch.Generator().manual_seed(100 + seed)
        images = torch.randn(2, 3, ENTRY.sizes[0], ENTRY.sizes[0], generator=generator)
        eager, exact = run("eager", images)[1], run("float64", images)[1]
        for kind in ("irc", "exact batch norms"):
            ratios = errors(kind, images, eager, exact)
            mean = geometric_mean(ratios)
            print(f"{seed:6} {kind:<18} {mean:8.2f} {max(ratios):8.2f}", flush=True)


if __name__ == "__main__":
    main()
