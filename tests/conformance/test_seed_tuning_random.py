"""Row TUNE-12: random numbers as eager mode draws them, where asked for."""

from __future__ import annotations

import pytest
import torch
import torch._dynamo

from tests.backends import BACKEND, needs_backend
from tests.conformance.seed_support import options

pytestmark = needs_backend


@pytest.mark.seed("TUNE-12")
@pytest.mark.parametrize("inside", [False, True], ids=["autograd", "backward-in-graph"])
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_a_gradient_through_dropout_equals_that_of_eager_mode(device: str, inside: bool) -> None:
    def loss(a, b):
        return torch.nn.functional.dropout(a @ b, 0.1).sum()

    def gradient(a, b):
        loss(a, b).backward()
        return a.grad

    run = torch.compile(
        gradient if inside else loss, backend=BACKEND, options=options(fallback_random=True)
    )
    b = torch.randn(128, 128, device=device)
    source = torch.randn(128, 128, device=device)

    def draw(fn):
        a = source.clone().requires_grad_()
        torch.manual_seed(1337)
        if fn in (run, gradient) and inside:
            return fn(a, b).clone(), torch.rand(4, device=device)
        fn(a, b).backward()
        return a.grad, torch.rand(4, device=device)

    for _ in range(2):
        torch.testing.assert_close(draw(run), draw(gradient if inside else loss))
