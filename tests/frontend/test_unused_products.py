"""Products times 0 and addends times 0: which NaN and infinities are in the result, as in eager
mode, whose libraries don't look at what they don't use."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from tests.backends import BACKEND, needs_backend

pytestmark = [needs_backend, pytest.mark.fault("V22")]

#: Ranks of what is added and of both factors.
OPERATORS = {
    "addmm": (2, 2, 2), "baddbmm": (3, 3, 3), "addbmm": (2, 3, 3), "addmv": (1, 2, 1),
    "addr": (2, 1, 1),
}  # fmt: skip
#: (alpha, beta)
SCALES = ((0, 1), (1, 0), (0, 0), (0.0, 2.0), (2, 0.5))


def shaped(rank: int, size: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.randn((3, size, size)[-rank:], dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.bfloat16])
@pytest.mark.parametrize("size", [2, 7, 8, 40])  # a batch of 7 is multiplied in ATen's own loops
@pytest.mark.parametrize("name", OPERATORS)
def test_what_is_multiplied_by_zero(name, size, dtype) -> None:
    torch.manual_seed(size)
    if dtype == torch.bfloat16 and name == "baddbmm" and size > 7:
        pytest.skip("eager mode's result is undefined where alpha is 0")
    torch._dynamo.reset()
    operator, ranks = getattr(torch, name), OPERATORS[name]

    def program(operands):
        return [operator(*operands, alpha=alpha, beta=beta) for alpha, beta in SCALES]

    compiled = torch.compile(program, backend=BACKEND)
    for place, bad in itertools.product(range(3), (math.nan, math.inf)):
        operands = [shaped(rank, size, dtype) for rank in ranks]
        if dtype.is_complex and math.isinf(bad):
            continue  # 1 times it is NaN in ATen's loops
        operands[place].view(-1)[0] = bad
        ours, eager = compiled(operands), program(operands)
        for scales, a, b in zip(SCALES, ours, eager, strict=True):
            message = f"{name} of {size}, {scales}, {bad} in operand {place}"
            tolerance = {} if dtype != torch.bfloat16 else {"rtol": 2e-2, "atol": 2e-2}
            torch.testing.assert_close(
                a, b, equal_nan=True, msg=lambda m, t=message: f"{t}: {m}", **tolerance
            )


def test_a_batch_that_grows_out_of_the_loops() -> None:
    torch._dynamo.reset()

    def program(x, a, b):
        return torch.baddbmm(x, a, b, alpha=0, beta=2)

    compiled = torch.compile(program, backend=BACKEND, dynamic=True)
    for size in (7, 6, 8, 40, 5, 0):
        x, a, b = (torch.randn(3, size, size) for _ in range(3))
        a[:, :1, :1] = math.inf
        ours, eager = compiled(x, a, b), program(x, a, b)
        torch.testing.assert_close(ours, eager, equal_nan=True)
    x = torch.randn(6)  # is broadcast
    a = torch.randn(2, 9, 8)
    torch.testing.assert_close(compiled(x, a, a[:, :8, :6]), program(x, a, a[:, :8, :6]))
