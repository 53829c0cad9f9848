"""Values written one after the other to where a mask holds: eager mode's results, errors and
gradients, in kernels alone."""

from __future__ import annotations

import pytest
import torch

from irc.frontend.backend import recording
from tests.backends import needs_backend

pytestmark = needs_backend


def compiled(function, dynamic=False):
    torch._dynamo.reset()
    return torch.compile(function, backend="irc", dynamic=dynamic, fullgraph=True)


def scattered(x, mask, source):
    return x.masked_scatter(mask, source) * 1


def put(x, mask, values):
    return x.index_put((mask,), values) * 1


@pytest.mark.parametrize(
    ("dtype", "dynamic"),
    [
        (torch.float32, False),
        (torch.float32, True),
        (torch.int64, False),
        (torch.bool, False),
        (torch.bfloat16, True),
        pytest.param(torch.int64, True, marks=pytest.mark.slow),
        pytest.param(torch.bool, True, marks=pytest.mark.slow),
        pytest.param(torch.bfloat16, False, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize(
    ("shape", "mask_shape", "source_shape"),
    [((3, 5), (3, 5), (15,)), ((5,), (3, 5), (4, 4)), ((3, 5), (3, 1), (17,)), ((), (), (1,))],
)
def test_values(shape, mask_shape, source_shape, dtype, dynamic):
    torch.manual_seed(1)
    x, source = (torch.randn(s).to(dtype) for s in (shape, source_shape))
    call = compiled(lambda *a: a[0].masked_scatter(*a[1:]), dynamic)
    for mask in (torch.rand(mask_shape) > 0.4, torch.zeros(mask_shape, dtype=torch.bool)):
        expected = x.masked_scatter(mask, source)
        torch.testing.assert_close(call(x, mask, source), expected, rtol=0, atol=0)
        assert call(x, mask, source).stride() == expected.stride()


def test_strides_are_row_major_and_nothing_is_called():
    x, mask, source = torch.randn(5, 3).t(), torch.rand(3, 5) > 0.5, torch.randn(15)
    call = compiled(scattered)
    with recording() as made:
        mine = call(x, mask, source)
    torch.testing.assert_close(mine, scattered(x, mask, source), rtol=0, atol=0)
    assert mine.stride() == scattered(x, mask, source).stride()
    assert [each.executable.info.metrics["aten_calls"] for each in made] == [0]


def test_no_source_is_fine_where_the_mask_holds_nowhere():
    x, none = torch.randn(3), torch.zeros(3, dtype=torch.bool)
    assert torch.equal(compiled(scattered)(x, none, torch.zeros(0)), x)


@pytest.mark.parametrize("dynamic", [False, True])
def test_too_few_values_raise(dynamic):
    mask = torch.tensor([True, False, True, True])
    call = compiled(scattered, dynamic)
    assert torch.equal(call(torch.zeros(4), mask, torch.ones(3)), mask.float())
    with pytest.raises(RuntimeError, match="source < number of ones in mask"):
        call(torch.zeros(4), mask, torch.ones(2))


@pytest.mark.parametrize("function", [scattered, put])
def test_gradients(function):
    torch.manual_seed(0)
    mask = torch.rand(4, 6) > 0.5
    count = int(mask.sum()) + (3 if function is scattered else 0)
    runs = []
    for call in (function, compiled(function)):
        x, values = torch.ones(4, 6, requires_grad=True), torch.ones(count, requires_grad=True)
        weights = torch.arange(24.0).view(4, 6)
        with recording() as made:
            (call(x, mask, values) * weights).sum().backward()
        runs.append((x.grad, values.grad))
    for mine, theirs in zip(runs[1], runs[0], strict=True):
        torch.testing.assert_close(mine, theirs)
    if function is scattered:
        assert [each.executable.info.metrics["aten_calls"] for each in made] == [0, 0]


def test_as_many_values_as_places():
    """`x[mask] = values`."""
    x, mask = torch.zeros(2, 3), torch.tensor([[True, False, True], [False, True, False]])
    call = compiled(put)
    assert torch.equal(call(x, mask, torch.arange(3.0)), put(x, mask, torch.arange(3.0)))
    with pytest.raises((RuntimeError, IndexError)):
        call(x, ~mask | mask, torch.arange(3.0))


def test_masks_of_some_dimensions_and_single_values_are_as_before():
    x, mask = torch.zeros(3, 2), torch.tensor([True, False, True])
    for values in (torch.ones(2, 2), torch.ones(1), torch.ones(2)):
        assert torch.equal(compiled(put)(x, mask, values), put(x, mask, values))
