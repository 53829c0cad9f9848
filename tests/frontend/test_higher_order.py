"""Higher-order operators that are plain graphs in the end: values, gradients and strides."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn.attention import flex_attention as flex

import irc
from tests.accuracy import inaccurate
from tests.backends import needs_backend

pytestmark = needs_backend
attend = flex.flex_attention


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    """torch has the gradients of flex_attention for the CPU, too, and forbids to ask for them."""
    monkeypatch.setattr(flex, "_validate_device", lambda *tensors: None)


def leaves(*shapes: tuple[int, ...]) -> list[torch.Tensor]:
    """Tensors that want gradients."""
    return [torch.randn(*shape, requires_grad=True) for shape in shapes]


def run(function: Any, inputs: list[torch.Tensor], wide: bool) -> list[torch.Tensor]:
    """Results, then gradients of their weighted sum, of f64 copies of the inputs if `wide`."""
    mine = []
    for given in inputs:
        floating = wide and given.is_floating_point()
        copy = given.detach().to(torch.float64 if floating else given.dtype).clone()
        mine.append(copy.requires_grad_(given.requires_grad))
    made = function(*mine)
    results = list(made) if isinstance(made, tuple) else [made]
    wanted = [r for r in results if r.requires_grad]
    if wanted:
        weights = [torch.arange(r.numel()).reshape(r.shape).cos() for r in wanted]
        sum((r * w).sum() for r, w in zip(wanted, weights, strict=True)).backward()
    return [*results, *(m.grad for m in mine if m.requires_grad)]


def compared(function: Any, *calls: list[torch.Tensor], dynamic: bool | None = None) -> str:
    """The compiled function is as accurate as eager mode; gives the text that was compiled."""
    torch._dynamo.reset()
    compiled = torch.compile(function, backend="irc", fullgraph=True, dynamic=dynamic)
    with irc.frontend.backend.recording() as made:
        for inputs in calls:
            mine, eager = run(compiled, inputs, False), run(function, inputs, False)
            exact = run(function, inputs, True)
            assert not inaccurate(mine, eager, exact)
            assert [t.stride() for t in mine] == [t.stride() for t in eager]
    return "\n".join(str(each.imported.module) for each in made)


def causal(score, batch, head, row, column):
    return torch.where(row >= column, score, -float("inf"))


def test_attention_with_a_changed_score():
    torch.manual_seed(0)
    shape = (2, 2, 33, 8)
    text = compared(lambda q, k, v: attend(q, k, v, score_mod=causal), leaves(shape, shape, shape))
    assert "aten.bmm" in text


def test_attention_reads_a_captured_tensor():
    torch.manual_seed(0)
    shape = (2, 2, 21, 8)

    def biased(q, k, v, bias):
        return attend(q, k, v, score_mod=lambda s, b, h, i, j: s * bias[h, i] + bias[h, j])

    compared(biased, leaves(shape, shape, shape, (2, 21)))


def test_attention_of_grouped_heads_with_its_normalizers():
    torch.manual_seed(0)

    def grouped(q, k, v):
        return attend(q, k, v, score_mod=causal, enable_gqa=True, return_lse=True)

    compared(grouped, leaves((2, 4, 17, 8), (2, 2, 17, 8), (2, 2, 17, 8)))


def test_attention_over_blocks():
    torch.manual_seed(0)
    shape = (1, 2, 160, 8)

    def packed(q, k, v, document):
        def same(batch, head, row, column):
            return (row >= column) & (document[row] == document[column])

        mask = flex.create_block_mask(same, None, None, 160, 160, device="cpu")
        return attend(q, k, v, block_mask=mask)

    compared(packed, [*leaves(shape, shape, shape), torch.arange(160) // 50])


def test_attention_of_any_length():
    torch.manual_seed(0)

    def transposed(q, k, v):
        return attend(q.mT, k.mT, v.mT, score_mod=causal) * 2

    calls = [leaves(*[(2, 4, 8, length)] * 3) for length in (17, 19)]
    compared(transposed, *calls, dynamic=True)


@torch.compiler.nested_compile_region
def region(x, weight):
    return (x @ weight).relu(), x.sum(0)


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_region_that_is_called_again(dynamic):
    torch.manual_seed(0)

    def model(x, y, weight):
        first, total = region(x, weight)
        second, other = region(y, weight)
        third, _ = region(first, weight)
        return third + total, second, other

    compared(model, leaves((5, 4), (7, 4), (4, 4)), dynamic=dynamic)


def test_views_of_the_results_of_a_region_are_apart():
    torch.manual_seed(0)

    def model(x, y, weight):
        first, second = region(x, weight)[0], region(y, weight)[0]
        return first.t(), second.t(), first.view(-1)

    compared(model, leaves((5, 4), (5, 4), (4, 4)))


def test_a_region_with_sizes_from_data():
    @torch.compiler.nested_compile_region
    def positions(x):
        return x.nonzero().sum() + x[x > 0].sum()

    torch.manual_seed(0)
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        compared(lambda x: positions(x) + positions(-x), [torch.randn(7)])


def test_a_region_with_an_attention():
    @torch.compiler.nested_compile_region
    def layer(q, k, v):
        return attend(q, k, v, score_mod=lambda s, b, h, i, j: s * 2)

    torch.manual_seed(0)
    shape = (1, 2, 9, 4)
    compared(lambda q, k, v: layer(layer(q, k, v), k, v), leaves(shape, shape, shape))


def test_traced_without_dynamo():
    def mod(score, batch, head, row, column):
        return score + (row - column)

    torch.manual_seed(0)
    given = [torch.randn(1, 2, 6, 4) for _ in range(3)]
    module = irc.trace(lambda q, k, v: attend(q, k, v, score_mod=mod), given)
    (made,) = irc.run(module, *given)
    torch.testing.assert_close(made, attend(*given, score_mod=mod))


def test_a_region_that_says_how_it_was_quantized():
    """Its graph; TorchInductor reads the rest."""
    from torch._higher_order_ops._invoke_quant import InvokeQuant

    def region(x, y):
        return (x * y,)

    def function(x):
        return InvokeQuant(codegen_low_precision=False)(region, x, x, scheme="nf4")[0] + 1

    x = torch.randn(5, 3)
    torch._dynamo.reset()
    got = torch.compile(function, backend="irc", fullgraph=True)(x)
    torch.testing.assert_close(got, x * x + 1)
