"""Rows LAY-01 to LAY-09: layouts across graph breaks, of views, under mutation, for kernels."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch._dynamo
from torch import distributed, nn
from torch._dynamo.testing import CompileCounterWithBackend

from tests.accuracy import inaccurate
from tests.backends import BACKEND, needs_backend
from tests.conformance.seed_support import assert_equal, options, same

pytestmark = needs_backend
seed = pytest.mark.seed


@pytest.fixture(scope="module")
def one_rank(tmp_path_factory) -> Iterator[None]:
    """A process group of this process alone."""
    meeting = tmp_path_factory.mktemp("ranks") / "store"
    store = distributed.FileStore(str(meeting), 1)
    distributed.init_process_group("gloo", store=store, world_size=1, rank=0)
    yield
    distributed.destroy_process_group()


class TwoConvolutions(nn.Module):
    """Two convolutions, with a graph break between them where asked for."""

    def __init__(self, breaks: bool = False, channels: int = 512) -> None:
        super().__init__()
        self.breaks = breaks
        self.first = nn.Conv2d(3, channels, kernel_size=3, stride=2, bias=False)
        self.second = nn.Conv2d(channels, channels, kernel_size=3, stride=2, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        if self.breaks:
            torch._dynamo.graph_break()
        return self.second(x)


class ThreeConvolutions(nn.Module):
    """Patches, a depthwise convolution that keeps the size, and one of single pixels."""

    def __init__(self, breaks: bool = False, channels: int = 512) -> None:
        super().__init__()
        self.breaks = breaks
        self.patches = nn.Conv2d(3, channels, kernel_size=7, stride=7, bias=False)
        self.depthwise = nn.Conv2d(
            channels, channels, 7, groups=channels, padding="same", bias=False
        )
        self.pixels = nn.Conv2d(channels, channels, kernel_size=1, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.depthwise(self.patches(x))
        if self.breaks:
            torch._dynamo.graph_break()
        return self.pixels(x)


class ScaledFlat(nn.Module):
    """A convolution whose output, or a flat view of it, is doubled in place; gives the other."""

    def __init__(self, base: bool) -> None:
        super().__init__()
        self.base = base
        self.conv = nn.Conv2d(3, 512, kernel_size=3, stride=2, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.conv(x)
        flat = x.view(-1)
        (x if self.base else flat).mul_(2)
        return flat if self.base else x


def outputs(model: nn.Module, call: Callable[..., Any], x: torch.Tensor, train: bool) -> list[Any]:
    """What a call gives; for training the gradients of its sum."""
    if not train:
        return [call(x).detach()]
    model.zero_grad()
    call(x).sum().backward()
    return [p.grad.clone() for p in model.parameters()]


def check_accurate(model: nn.Module, x: torch.Tensor, train: bool = False, ddp: bool = False):
    """The compiled model is accurate against a float64 run."""
    eager = outputs(model, model, x, train)
    precise = copy.deepcopy(model).double()
    exact = outputs(precise, precise, x.double(), train)
    wrapped = nn.parallel.DistributedDataParallel(model) if ddp else model
    mine = outputs(model, torch.compile(wrapped, backend=BACKEND), x, train)
    assert inaccurate(mine, eager, exact) == []
    assert [m.stride() for m in mine] == [e.stride() for e in eager]


@pytest.mark.parametrize("ddp", [False, True], ids=["manual", "ddp"])
@pytest.mark.parametrize(
    ("model", "train"),
    [
        pytest.param(TwoConvolutions, False, marks=seed("LAY-01")),
        pytest.param(ThreeConvolutions, False, marks=seed("LAY-02")),
        pytest.param(TwoConvolutions, True, marks=seed("LAY-04")),
    ],
    ids=["two", "three", "gradients"],
)
def test_convolutions_around_a_graph_break(one_rank, model, train: bool, ddp: bool) -> None:
    check_accurate(model(breaks=not ddp), torch.rand(2, 3, 16, 16), train, ddp)


@seed("LAY-03")
@pytest.mark.parametrize("freezing", [False, True])
@torch.no_grad()
def test_the_output_of_a_convolution_can_be_viewed(freezing: bool) -> None:
    conv = nn.Conv2d(3, 128, kernel_size=3, padding=1, stride=1, bias=False)
    x = torch.randn(2, 3, 5, 5)
    run = torch.compile(conv, backend=BACKEND, options=options(freezing=freezing))
    result = run(x)
    assert_equal(result, conv(x), tolerance=1e-5)
    assert result.view(5, -1).shape == (5, 1280)


@seed("LAY-05")
def test_a_write_through_a_view_reaches_the_argument() -> None:
    @torch.compile(backend=BACKEND)
    def fn(x):
        y = x.view(3, 2)
        y.mul_(2)

    x = torch.ones(2, 3)
    assert fn(x) is None
    assert torch.equal(x, torch.full((2, 3), 2.0))


@seed("LAY-06")
def test_a_view_sees_a_write_to_its_base() -> None:
    @torch.compile(backend=BACKEND)
    def fn(x):
        y = x.view(3, 2)
        x.mul_(2)
        return y

    x = torch.ones(2, 3)
    y = fn(x)
    assert torch.equal(y, torch.full((3, 2), 2.0))
    assert torch.equal(x, torch.full((2, 3), 2.0))
    assert y.data_ptr() == x.data_ptr()


@seed("LAY-07")
@pytest.mark.parametrize("base", [False, True])
def test_writes_to_a_convolution_and_its_flat_view(base: bool) -> None:
    check_accurate(ScaledFlat(base), torch.rand(2, 3, 16, 16))


@seed("LAY-08")
def test_the_backward_of_a_dynamic_graph_does_not_specialize() -> None:
    import irc

    def fn(a, b):
        return a.sin() + b.cos()

    counter = CompileCounterWithBackend(BACKEND)
    compiled = torch.compile(fn, backend=counter, dynamic=True)
    irc.metrics.reset()
    for size in (4, 8, 16):
        a, b = torch.randn(2, size, requires_grad=True), torch.randn(2, size)
        same(compiled, fn, a, b).sum().backward()
        torch.testing.assert_close(a.grad, a.detach().cos())
    assert counter.frame_count == 1
    if BACKEND == "irc":
        assert irc.metrics.compiles == 2


class PixelClassifier(nn.Module):
    """A convolution, a linear layer over channels and one axis, and a loss of every position."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, classes, 3, 1, padding="same")
        self.out = nn.Linear(width * classes, classes)

    def forward(self, x: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        x = self.conv(x)
        batch, channels, length, width = x.size()
        x = self.out(x.reshape(batch, length, channels * width))
        logits = x.reshape(x.size(0), x.size(2), x.size(1))
        return nn.functional.cross_entropy(logits, targets)


@seed("LAY-09")
@pytest.mark.slow
def test_kernels_that_need_contiguous_inputs_get_them_at_full_size() -> None:
    check_pixel_classifier(batch=48, length=144, width=39, classes=111)


@seed("LAY-09")
def test_kernels_that_need_contiguous_inputs_get_them() -> None:
    check_pixel_classifier(batch=4, length=18, width=7, classes=11)


def check_pixel_classifier(batch: int, length: int, width: int, classes: int) -> None:
    model = PixelClassifier(width, classes)
    x = torch.ones(batch, 1, length, width)
    targets = torch.randint(0, classes - 1, (batch, length))

    def step(run, model, x):
        model.zero_grad()
        loss = run(x, targets)
        loss.backward()
        return [loss.detach(), *(p.grad.clone() for p in model.parameters())]

    eager = step(model, model, x)
    precise = copy.deepcopy(model).double()
    exact = step(precise, precise, x.double())
    mine = step(torch.compile(model, backend=BACKEND), model, x)
    torch.testing.assert_close(mine[0], eager[0])
    assert inaccurate(mine, eager, exact) == []
