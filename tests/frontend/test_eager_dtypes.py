"""What eager refuses of two dtypes is refused, and where torch's shape function has another dtype
than ATen gives, the result is ATen's. Found by tests/fuzz/test_numbers.py."""

from __future__ import annotations

import pytest
import torch

from tests.fuzz.harness import compiled, observe, same

NARROW = (torch.float16, torch.bfloat16)


def tensor(value: float, dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    return torch.full(shape, value).to(dtype)


@pytest.mark.fault("V2")
@pytest.mark.parametrize("shape", [(), (1,), (2, 1), (0,)])
@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.float32, torch.float64])
@pytest.mark.parametrize("exponent", [*NARROW, torch.int64])
def test_ldexp_of_a_number(dtype, exponent, shape):
    arguments = [tensor(3, dtype, shape), tensor(5, exponent, ())]
    expected = observe(torch.ldexp, arguments)
    same(expected, compiled(torch.ldexp, arguments), exact=False)


@pytest.mark.fault("C8")
@pytest.mark.parametrize(
    ("function", "first", "second"),
    [(torch.heaviside, torch.int32, torch.float32), (torch.heaviside, torch.float64, torch.float32),
     (torch.heaviside, torch.float16, torch.bool), (torch.logaddexp, torch.int64, torch.uint8),
     (torch.logaddexp2, torch.uint8, torch.uint8),
     (torch.logaddexp2, torch.int64, torch.int64)],
)  # fmt: skip
@pytest.mark.parametrize("shape", [(), (3,)])
def test_what_eager_refuses_is_refused(function, first, second, shape):
    arguments = [tensor(1, first, shape), tensor(2, second, shape)]
    with pytest.raises(Exception) as eager:
        function(*arguments)
    with pytest.raises(Exception, match="implemented") as ours:
        compiled(function, arguments)
    assert isinstance(ours.value, type(eager.value))
