"""Accuracy of the small models of tests/models/zoo.py on a GPU: outputs and gradients.

    python -m bench.gpu_accuracy [--only bert] [--shard 0/4]

A line a model: "ok" where outputs and all gradients are within 1e-4 of eager's (the largest RMS
error of an output over its RMS, and the largest norm of a gradient's error over that of the
largest gradient), else "OFF", or "FAILED" with the error. TF32 is off.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

import irc  # noqa: F401  # so that an uninstalled checkout is found too
from tests.conformance.ops import parse_shard
from tests.models.zoo import ZOO, Entry

LIMIT = 1e-4


def floats(outputs: Any) -> list[torch.Tensor]:
    """The floating tensors among a model's outputs."""
    leaves = pytree.tree_leaves(outputs)
    return [t for t in leaves if isinstance(t, torch.Tensor) and t.is_floating_point()]


def output_error(mine: Sequence[torch.Tensor], eager: Sequence[torch.Tensor]) -> float:
    """The largest RMS error over the RMS of what it is an error of."""
    ratios = [
        (a.double() - b.double()).norm() / b.double().norm().clamp_min(1e-30)
        for a, b in zip(mine, eager, strict=True)
    ]
    return float(max(ratios))


def gradients(model: nn.Module, call: Any, inputs: Sequence[torch.Tensor]) -> list[Any]:
    """The gradients of the sum of the outputs' mean squares, by parameter."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    outputs = [t for t in floats(call(*inputs)) if t.requires_grad]
    loss = sum(t.float().pow(2).mean() for t in outputs)
    assert isinstance(loss, torch.Tensor)
    return list(torch.autograd.grad(loss, parameters, allow_unused=True))


def errors(entry: Entry, device: str) -> tuple[float, float]:
    """The errors of outputs and of gradients."""
    model = entry.make_model().to(device).eval()
    inputs = [t.to(device) for t in entry.make_inputs(entry.sizes[0])]
    options = {"backend": "irc", "dynamic": False}
    with torch.no_grad():
        eager = floats(model(*inputs))
        forward = output_error(floats(torch.compile(model, **options)(*inputs)), eager)
    torch._dynamo.reset()
    wanted = gradients(model, model, inputs)
    found = gradients(model, torch.compile(model, **options), inputs)
    largest = max(float(g.double().norm()) for g in wanted if g is not None)
    off = [
        float((a.double() - b.double()).norm()) / largest
        for a, b in zip(found, wanted, strict=True)
        if b is not None
    ]
    return forward, max(off)


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="models whose name contains this")
    parser.add_argument("--shard", type=parse_shard, default=(0, 1), metavar="I/N")
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    names = [n for n in sorted(ZOO) if options.only in n]
    for name in names[options.shard[0] :: options.shard[1]]:
        torch._dynamo.reset()
        try:
            forward, backward = errors(ZOO[name], options.device)
        except Exception as error:
            text = " ".join(str(error).split())[:300]
            print(f"{name} FAILED {type(error).__name__}: {text}", flush=True)
            continue
        verdict = "ok" if max(forward, backward) < LIMIT else "OFF"
        print(f"{name} {verdict} {forward:.1e} {backward:.1e}", flush=True)


if __name__ == "__main__":
    main()
