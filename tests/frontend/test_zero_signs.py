"""Signs of zeros where eager mode gives one sign for every place of an array: what a number bounds.

Of two tensors eager's larger zero depends on where in the array it lies (its vector loop takes the
one, what is left over the other), so there is no sign to agree with."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from tests.backends import BACKEND, needs_backend

pytestmark = [needs_backend, pytest.mark.fault("V21")]

BOUNDED = {
    "relu": torch.relu,
    "relu_": lambda x: x.clone().relu_(),
    "relu6": F.relu6,
    "hardtanh": lambda x: F.hardtanh(x, 0.0, 6.0),
    "hardtanh of a negative zero": lambda x: F.hardtanh(x, -0.0, 6.0),
    "clamp": lambda x: x.clamp(0, 1),
    "clamp_min": lambda x: x.clamp_min(0),
    "clamp_min of a negative zero": lambda x: x.clamp_min(-0.0),
    "clamp_max": lambda x: x.clamp_max(0.0),
    "clamp_max of a negative zero": lambda x: x.clamp_max(-0.0),
    "threshold": lambda x: F.threshold(x, 0.0, 0.0),
    "a sum": lambda x: torch.relu(x + -0.0),
}
SPECIAL = [0.0, -0.0, 1.5, -1.5, float("inf"), -float("inf"), float("nan"), 1e-7, -1e-7, -0.0, 7.0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", BOUNDED)
def test_a_number_as_a_bound_keeps_a_zeros_sign(name, dtype) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(BOUNDED[name], backend=BACKEND)
    contiguous = torch.tensor(SPECIAL * 7, dtype=dtype)
    for x in (contiguous, contiguous[::3], contiguous[:1], contiguous.view(7, 11).t()):
        ours, eager = compiled(x), BOUNDED[name](x)
        torch.testing.assert_close(ours, eager, rtol=0, atol=0, equal_nan=True)
        number = ~eager.isnan()
        assert torch.equal(ours.signbit()[number], eager.signbit()[number])


def test_a_bound_that_changes_keeps_a_zeros_sign() -> None:
    torch._dynamo.reset()

    def clamped(x: torch.Tensor, low: float) -> torch.Tensor:
        return x.clamp_min(low)

    compiled = torch.compile(clamped, backend=BACKEND, dynamic=True)
    x = torch.tensor(SPECIAL * 3)
    for low in (1.0, 0.0, -2.0):
        ours, eager = compiled(x, low), clamped(x, low)
        number = ~eager.isnan()
        assert torch.equal(ours.isnan(), eager.isnan())
        assert torch.equal(ours[number].view(torch.int32), eager[number].view(torch.int32))
