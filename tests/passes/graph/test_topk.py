"""topk of short rows becomes ranks: values, positions and strides are eager mode's."""

from __future__ import annotations

import pytest
import torch

import irc


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("shape", "k", "dim"),
    [((7, 8), 2, -1), ((3, 9, 5), 4, 1), ((4, 1), 1, -1), ((2, 3, 33), 33, 2)],
)
def test_values_and_positions(shape, k, dim, dtype, largest):
    torch.manual_seed(0)
    count = torch.Size(shape).numel()
    x = torch.randperm(count).reshape(shape).to(dtype)
    x.view(-1)[0], x.view(-1)[-1] = -float("inf"), float("nan")

    def f(x):
        return torch.topk(x, k, dim, largest)

    executable = irc.compile(f, (x,))
    (values, places), (expected, where) = executable(x), f(x)
    torch.testing.assert_close(values, expected, rtol=0, atol=0, equal_nan=True)
    assert torch.equal(places, where)
    assert (values.stride(), places.stride()) == (expected.stride(), where.stride())


def test_equal_elements_keep_their_order():
    nan, inf = float("nan"), float("inf")
    x = torch.tensor([[nan, 1, nan, inf, inf, -inf]])
    values, places = irc.compile(lambda x: torch.topk(x, 5), (x,))(x)
    assert places.tolist() == [[0, 2, 3, 4, 1]]
    assert irc.compile(lambda x: torch.topk(x, 3, sorted=True), (x.int(),))(x.int())


def test_rows_that_need_not_be_sorted_have_the_same_elements():
    """As the routers of mixtures of experts ask for them."""
    torch.manual_seed(1)
    x = torch.randn(5, 9)

    def f(x):
        return torch.topk(x, 4, dim=-1, sorted=False)

    values, places = irc.compile(f, (x,))(x)
    assert torch.equal(places.sort().values, f(x).indices.sort().values)
    assert torch.equal(values, x.gather(1, places))


def test_what_is_ranked_and_what_is_left_to_aten():
    def calls(f, x):
        module = irc.trace(f, (x,))
        irc.PassManager.parse("decompose-aten,convert-aten-to-graph").run(module)
        return [op.callee for op in module.walk() if op.name == "graph.call_aten"]

    assert calls(lambda x: torch.topk(x, 2), torch.randn(3, 64)) == []
    assert calls(lambda x: torch.topk(x, 2, sorted=False), torch.randn(3, 64)) == []
    for x, kwargs in ((torch.randn(3, 65), {}), (torch.arange(8), {}),
                      (torch.randn(3, 8).bfloat16(), {})):  # fmt: skip
        assert calls(lambda x, k=kwargs: torch.topk(x, 2, **k), x) == ["aten.topk.default"]
