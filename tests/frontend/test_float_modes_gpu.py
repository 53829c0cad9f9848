"""The precision of products and convolutions on a GPU is eager's, as torch is set at the call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.nn import functional as F

import irc

pytestmark = [pytest.mark.gpu, pytest.mark.fault("G1")]
PRODUCTS, CUDNN = torch.backends.cuda.matmul, torch.backends.cudnn
USUAL = [(PRODUCTS, "allow_tf32"), (CUDNN, "allow_tf32"),
         (PRODUCTS, "allow_fp16_reduced_precision_reduction"),
         (PRODUCTS, "allow_bf16_reduced_precision_reduction")]  # fmt: skip


@pytest.fixture(autouse=True)
def _as_usual() -> Iterator[None]:
    before = [getattr(owner, name) for owner, name in USUAL]
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    for (owner, name), value in zip(USUAL, before, strict=True):
        setattr(owner, name, value)
    torch.use_deterministic_algorithms(False)
    torch._dynamo.reset()


def random(*shape: int, **how: Any) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", **how)


def errors(found: Any, exact: Any) -> list[float]:
    """Relative errors against results in float64."""
    pairs = zip(found, exact, strict=True)
    return [((a.double() - b).norm() / b.norm()).item() for a, b in pairs]


def same_class(found: list[float], eager: list[float]) -> None:
    """TF32 makes errors a thousand times as large; a choice among kernels some."""
    for ours, theirs in zip(found, eager, strict=True):
        assert theirs / 8 <= ours <= theirs * 8 or max(ours, theirs) < 1e-6, (ours, theirs)


def product(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return (torch.relu(a @ b), (a + 1) @ b[:, :-1], F.linear(a, b.t() * 2, b[0]))


def images(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Convolutions that channels last would suit."""
    y = x
    for _ in range(4):
        y = torch.relu(F.conv2d(y, w, padding=1)) * 0.1
    return (y.mean((2, 3)),)


@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.parametrize("sizes", [(128, 128, 128), (511, 1023, 513), (64, 30523, 65)])
def test_products(sizes: tuple[int, int, int], allowed: bool) -> None:
    """Padded or not, as they are aligned."""
    PRODUCTS.allow_tf32 = allowed
    m, k, n = sizes
    a, b = random(m, k), random(k, n)
    exact = product(a.double(), b.double())
    found = torch.compile(product, backend="irc", options={"force_shape_pad": True})(a, b)
    same_class(errors(found, exact), errors(product(a, b), exact))


@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.parametrize("groups", [1, 4])
def test_convolutions_and_their_gradients(groups: int, allowed: bool) -> None:
    CUDNN.allow_tf32 = allowed
    x, w = random(4, 128, 14, 14), random(128, 128 // groups, 3, 3) * 0.1

    def program(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return (torch.relu(F.conv2d(torch.relu(x), w, padding=1, groups=groups)) ** 2).sum()

    def gradients(run: Callable[..., Any], *given: torch.Tensor) -> Any:
        leaves = [t.detach().requires_grad_() for t in given]
        return torch.autograd.grad(run(*leaves), leaves)

    exact = gradients(program, x.double(), w.double())
    found = gradients(torch.compile(program, backend="irc"), x, w)
    same_class(errors(found, exact), errors(gradients(program, x, w), exact))


@pytest.mark.parametrize("graphs", [False, True])
@pytest.mark.parametrize("program, owner", [(product, PRODUCTS), (images, CUDNN)])
def test_settings_that_change_between_compile_and_call(
    program: Callable[..., Any], owner: Any, graphs: bool
) -> None:
    given = (random(512, 512), random(512, 512))
    if program is images:
        given = (random(2, 64, 28, 28), random(64, 64, 3, 3) * 0.1)
    exact = program(*(t.double() for t in given))
    options = {"cuda_graphs": graphs}
    owner.allow_tf32 = False
    calls = [torch.compile(program, backend="irc", options=options),
             irc.compile(program, given, options=options)]  # fmt: skip
    with torch.no_grad():
        for allowed in (False, True, False):
            owner.allow_tf32 = allowed
            eager = errors(program(*given), exact)
            assert (max(eager) > 1e-5) == allowed
            for call in calls:
                for _ in range(3):
                    found = call(*given)
                same_class(errors(found, exact), eager)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_reduced_precision_of_sums(dtype: torch.dtype) -> None:
    a, b = random(64, 16384, dtype=dtype), random(16384, 64, dtype=dtype)
    call = irc.compile(torch.mm, (a, b), options={"cuda_graphs": True})
    for allowed in (True, False, True):
        PRODUCTS.allow_fp16_reduced_precision_reduction = allowed
        PRODUCTS.allow_bf16_reduced_precision_reduction = allowed
        for _ in range(3):
            assert torch.equal(call(a, b), a @ b)


def test_deterministic_algorithms() -> None:
    """Sums by index come out the same each time, as eager's do."""
    index, source = torch.randint(0, 50, (200000,), device="cuda"), random(200000)
    programs = [
        lambda i, s: torch.zeros(50, device="cuda").index_add(0, i, s),
        lambda i, s: torch.zeros(50, device="cuda").scatter_add(0, i, s),
        lambda i, s: torch.zeros(50, device="cuda").index_put((i,), s, accumulate=True),
        lambda i, s: torch.zeros(50, device="cuda").scatter(0, i, s),
    ]
    torch.use_deterministic_algorithms(True)
    for program in programs:
        torch._dynamo.reset()
        call = torch.compile(program, backend="irc")
        expected = program(index, source)
        assert all(torch.equal(call(index, source), expected) for _ in range(8))
