"""Hugging Face models compiled: inference, gradients, and one program for two sizes."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
import torch
from torch import nn
from torch._dynamo.utils import counters

from tests.accuracy import inaccurate
from tests.backends import BACKEND, needs_backend
from tests.models.zoo import SMALL, ZOO, Entry

pytestmark = needs_backend
WHOLE = [pytest.param(entry, id=name, marks=pytest.mark.slow) for name, entry in ZOO.items()]


def small(*names: str) -> list[Any]:
    """Every model, and on every change those named, smaller."""
    return [*(pytest.param(SMALL[name], id=f"{name}-small") for name in names), *WHOLE]


@pytest.fixture(autouse=True)
def fresh_dynamo():
    """No compiled code of an earlier test."""
    torch._dynamo.reset()
    counters.clear()
    yield
    torch._dynamo.reset()


def compiled(model: nn.Module, entry: Entry, dynamic: bool | None) -> nn.Module:
    return torch.compile(model, backend=BACKEND, dynamic=dynamic, fullgraph=entry.fullgraph)


def doubled(tensors: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    return tuple(t.double() if t.is_floating_point() else t for t in tensors)


def check_inference(entry: Entry, model: nn.Module, size: int, mark: bool = False) -> None:
    """Compare with eager mode; `mark`: the inputs' first dimensions are dynamic."""
    inputs = entry.make_inputs(size)
    for tensor in inputs if mark else ():
        torch._dynamo.mark_dynamic(tensor, 0)
    with torch.no_grad():
        mine = model(*inputs)
        eager = entry.make_model()(*inputs)
        exact = entry.make_model().double()(*doubled(inputs))
    wrong = inaccurate(mine, eager, exact)
    assert not wrong, "\n".join([f"size {size}", *wrong])
    for index, (a, b) in enumerate(zip(mine, eager, strict=True)):
        assert a.stride() == b.stride(), f"output {index} at size {size}"


@pytest.mark.parametrize("entry", small("bert", "llama", "resnet", "univnet"))
def test_inference(entry: Entry) -> None:
    for size in entry.sizes[:1] if entry is SMALL.get(entry.name) else entry.sizes:
        torch._dynamo.reset()
        check_inference(entry, compiled(entry.make_model(), entry, dynamic=False), size)


@pytest.mark.parametrize("entry", small("bert", "llama", "resnet", "univnet"))
def test_one_program_for_two_sizes(entry: Entry) -> None:
    model = compiled(entry.make_model(), entry, dynamic=None if entry.batch_only else True)
    for size in entry.sizes:
        check_inference(entry, model, size, mark=entry.batch_only)
    assert counters["stats"]["unique_graphs"] == entry.dynamic_graphs


def with_batch_statistics(model: nn.Module) -> nn.Module:
    """Batch norms in training mode; the rest stays as for evaluation, so that nothing is random."""
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.train()
    return model


def gradients(
    model: nn.Module, call: nn.Module, inputs: tuple[torch.Tensor, ...]
) -> tuple[list[str], list[torch.Tensor | None]]:
    """Names and values of the loss, the gradients of all parameters and the buffers afterwards."""
    generator = torch.Generator().manual_seed(3)
    loss = torch.zeros((), dtype=inputs[0].dtype if inputs[0].is_floating_point() else None)
    for output in call(*inputs):
        weights = torch.randn(output.shape, generator=generator, dtype=torch.float32)
        loss = loss + (output * weights.to(output.dtype)).mean()
    loss.backward()
    named = [("loss", loss.detach())]
    named += [(name, parameter.grad) for name, parameter in model.named_parameters()]
    named += list(model.named_buffers())
    return [name for name, _ in named], [value for _, value in named]


@pytest.mark.parametrize("entry", small("bert", "llama", "resnet", "univnet"))
def test_training(entry: Entry) -> None:
    inputs = entry.make_inputs(entry.sizes[0])
    runs = []
    for kind in ("compiled", "eager", "float64"):
        model = with_batch_statistics(entry.make_model())
        if kind == "float64":
            model = model.double()
        call = compiled(model, entry, dynamic=False) if kind == "compiled" else model
        runs.append(gradients(model, call, doubled(inputs) if kind == "float64" else inputs))
    wrong = inaccurate(*(values for _, values in runs), names=runs[0][0])
    assert not wrong, "\n".join(wrong)


# What whole models may leave to ATen: products, convolutions, attention, sorting, fft, random.
LEFT_TO_ATEN = re.compile(
    r"aten\.(mm|bmm|addmm|convolution|convolution_backward|_scaled_dot_product\w*|_flash_attention\w*"
    r"|sort|_?fft_\w+|rand\w*|bernoulli\w*|normal\w*|uniform\w*|native_dropout)\b"
)


@pytest.mark.skipif(BACKEND != "irc", reason="looks at irc's own programs")
@pytest.mark.parametrize("entry", small(*SMALL))
def test_only_heavy_ops_are_left_to_aten(entry: Entry) -> None:
    import irc
    from irc import pipeline

    with torch.no_grad():
        module = irc.trace(entry.make_model(), entry.make_inputs(entry.sizes[0]))
    irc.PassManager.parse("functional").run(module)
    pipeline.lower(module)
    calls = Counter(op.callee for op in module.walk() if op.name == "host.call_aten")
    others = {callee: n for callee, n in calls.items() if not LEFT_TO_ATEN.match(callee)}
    assert not others
