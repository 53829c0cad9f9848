"""What eager refuses of two dtypes is refused. Found by tests/fuzz/test_numbers.py."""

from __future__ import annotations

import pytest
import torch

from tests.fuzz.harness import compiled


def tensor(value: float, dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    return torch.full(shape, value).to(dtype)


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
