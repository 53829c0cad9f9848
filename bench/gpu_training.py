"""Training steps on a GPU, irc against Inductor in one process, in turns.

    python -m bench.gpu_training [--model resnet-50] [--autocast] [--profile 12] [--plain]

A step is zero_grad, forward, backward. A line a model and side: milliseconds of a step until the
GPU is done (wall), until it returns with the GPU idle before it (host), of the GPU alone, launches,
milliseconds of these in kernels that only convert between layouts (cuDNN's own and copies of
ATen's), and the error of all gradients together against eager's in the same dtype. bf16; medians
over interleaved rounds. Dropout is off, so that gradients compare. --autocast: f32 weights under
bf16 autocast. --profile N: the N kernels with most time.
"""

from __future__ import annotations

import argparse
import copy
import re
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

import irc  # noqa: F401  # so that an uninstalled checkout is found too
from bench import builders

ROUNDS, WARM, PROFILED = 25, 5, 5
#: Kernels that only convert: cuDNN's, and ATen's strided copies.
CONVERTS = re.compile(r"nchwToNhwc|nhwcToNchw|nchwAddPadding|convertTensor|direct_copy_kernel",
                      re.IGNORECASE)  # fmt: skip


class Loss(nn.Module):
    """A model with a loss: the mean square of what it gives."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        """The loss of one batch."""
        found = self.model(*inputs)
        found = getattr(found, "logits", found)
        found = found[0] if isinstance(found, tuple) else found
        return found.float().square().mean()


def without_dropout(model: nn.Module) -> nn.Module:
    """The model in training mode, its dropouts off."""
    model.train()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        for name in ("attn_dropout", "dropout", "dropout_prob"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)
    configured = getattr(getattr(model, "model", None), "config", None)
    for name in ("attention_probs_dropout_prob", "hidden_dropout_prob", "attn_pdrop"):
        if hasattr(configured, name):
            setattr(configured, name, 0.0)
    return model


class Side:
    """One backend's step of one model."""

    def __init__(self, name: str, model: nn.Module, inputs: Any, autocast: bool) -> None:
        self.name, self.model, self.inputs, self.autocast = name, model, inputs, autocast
        backend, _, plain = name.partition(" ")
        options = {"layout_optimization": False} if plain else None
        self.call = model
        if name != "eager":
            self.call = torch.compile(model, backend=backend, options=options)
        start = time.perf_counter()
        self.step()
        torch.cuda.synchronize()
        self.first = time.perf_counter() - start
        self.walls: list[float] = []
        self.hosts: list[float] = []

    def step(self) -> None:
        """Forward and backward."""
        self.model.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16, enabled=self.autocast):
            loss = self.call(*self.inputs)
        loss.backward()

    def timed(self, wait: bool) -> float:
        """Milliseconds of a step."""
        torch.cuda.synchronize()
        start = time.perf_counter()
        self.step()
        if wait:
            torch.cuda.synchronize()
        return (time.perf_counter() - start) * 1e3

    def round(self) -> None:
        """One measurement of each kind."""
        self.walls.append(self.timed(True))
        self.hosts.append(self.timed(False))
        torch.cuda.synchronize()

    def kernels(self) -> dict[str, tuple[float, float]]:
        """Milliseconds and launches a step, by the kernel's name."""
        from torch.profiler import ProfilerActivity, profile

        with profile(activities=[ProfilerActivity.CUDA]) as record:
            for _ in range(PROFILED):
                self.step()
            torch.cuda.synchronize()
        return {
            e.key: (e.self_device_time_total / PROFILED / 1e3, e.count / PROFILED)
            for e in record.key_averages()
            if e.self_device_time_total
        }

    def gradients(self) -> Iterator[torch.Tensor]:
        """Those of the last step, in double."""
        for parameter in self.model.parameters():
            if parameter.grad is not None:
                yield parameter.grad.double()


def error(mine: Side, eager: Side) -> float:
    """The norm of the error of all gradients over that of eager's."""
    off = total = 0.0
    for a, b in zip(mine.gradients(), eager.gradients(), strict=True):
        off += float((a - b).square().sum())
        total += float(b.square().sum())
    return (off / max(total, 1e-300)) ** 0.5


def wrong_strides(mine: Side, eager: Side) -> int:
    """Of how many parameters the gradients' strides are not eager's."""
    pairs = zip(mine.model.parameters(), eager.model.parameters(), strict=True)
    return sum(a.grad is not None and b.grad is not None and a.grad.stride() != b.grad.stride()
               for a, b in pairs)  # fmt: skip


def tell(side: Side, model: str, eager: Side, most: int) -> None:
    """A side's line, and its kernels."""
    kernels = side.kernels()
    side.step()
    eager.step()
    gpu, launches = (sum(pair[k] for pair in kernels.values()) for k in (0, 1))
    converting = sum(pair[0] for name, pair in kernels.items() if CONVERTS.search(name))
    print(f"{model} {side.name}: wall {statistics.median(side.walls):.3f} "
          f"host {statistics.median(side.hosts):.3f} gpu {gpu:.3f} ms, {launches:.0f} launches, "
          f"converting {converting:.3f} ms, first step {side.first:.1f} s, "
          f"error {error(side, eager):.1e}, other strides {wrong_strides(side, eager)}",
          flush=True)  # fmt: skip
    ranked = sorted(kernels.items(), key=lambda pair: -pair[1][0])
    for name, (taken, count) in ranked[:most]:
        print(f"    {taken * 1e3:8.1f} us {count:6.1f}  {name[:120]}", flush=True)


def measure(name: str, options: argparse.Namespace) -> None:
    """The lines of one model."""
    torch._dynamo.reset()
    entry = builders.find(name)
    base = without_dropout(entry.make()).cuda()
    given = [t.cuda() for t in entry.inputs()]
    if options.batch:
        given = [torch.cat([t] * options.batch)[: options.batch] for t in given]
    if not options.autocast:
        base = base.to(torch.bfloat16)
        given = [t.to(torch.bfloat16) if t.is_floating_point() else t for t in given]
    loss = Loss(base)
    make: Callable[[str], Side] = lambda backend: Side(  # noqa: E731
        backend, copy.deepcopy(loss), given, options.autocast
    )
    eager = make("eager")
    sides = []
    for backend in ("irc", *(["irc plain"] if options.plain else []), *options.peer):
        try:
            sides.append(make(backend))
        except Exception as failure:
            print(f"{name} {backend} FAILED {type(failure).__name__}: "
                  f"{' '.join(str(failure).split())[:600]}", flush=True)  # fmt: skip
    for _ in range(WARM):
        for side in sides:
            side.step()
    for number in range(options.rounds):
        for side in sides if number % 2 else reversed(sides):
            side.round()
    for side in sides:
        tell(side, name, eager, options.profile)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", action="append", default=[])
    parser.add_argument("--autocast", action="store_true")
    parser.add_argument("--batch", type=int, default=0, help="another batch than the model's own")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--profile", type=int, default=0, metavar="N")
    parser.add_argument("--plain", action="store_true", help="irc without layout_optimization, too")
    parser.add_argument("--peer", action="append", default=[])
    options = parser.parse_args()
    options.peer = options.peer or ["inductor"]
    print(f"# {torch.cuda.get_device_name()}, torch {torch.__version__}, "
          f"{'bf16 autocast' if options.autocast else 'bf16'}", flush=True)  # fmt: skip
    for name in options.model or ("resnet-50", "bert-base", "gpt2-small"):
        measure(name, options)


if __name__ == "__main__":
    main()
