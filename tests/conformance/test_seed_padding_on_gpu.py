"""Rows on padding, run on a GPU at full size: values and gradients are eager's.

What is compiled without one is in `test_seed_padding_gpu`, times are in `bench.gpu_padding`.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

import irc
from tests.conformance.seed_support import assert_equal
from tests.conformance.test_seed_padding_gpu import LinearAndLoss, with_helper

pytestmark = pytest.mark.gpu
seed = pytest.mark.seed
ODD = 30523


def compiled(function: Any, **options: Any) -> Any:
    torch._dynamo.reset()
    irc.metrics.reset()
    return torch.compile(function, backend="irc", fullgraph=True, options=options)


@seed("PAD-05", "PAD-12")
@pytest.mark.parametrize("bias", [True, False])
def test_linear_and_loss_of_an_odd_vocabulary_have_eagers_gradients(bias: bool) -> None:
    model = LinearAndLoss(768, ODD, bias).cuda()
    x = torch.randn(4, 128, 768, device="cuda")
    labels = torch.randint(0, ODD, (4, 128), device="cuda")
    expected = model(x, labels)
    wanted = torch.autograd.grad(expected, list(model.parameters()))
    loss = compiled(model)(x, labels)
    assert_equal(loss, expected, tolerance=1e-5)
    assert_equal(torch.autograd.grad(loss, list(model.parameters())), wanted, tolerance=1e-5)
    assert irc.metrics.compiles == 2 and irc.metrics.num_comprehensive_padding > 0


@seed("PAD-12")
def test_bert_of_an_odd_vocabulary_has_eagers_loss_and_gradients() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        num_hidden_layers=1, vocab_size=30522, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    model = transformers.BertForMaskedLM(config).cuda()
    ids = torch.randint(0, 30522, (4, 128), device="cuda")

    def loss(ids: torch.Tensor) -> torch.Tensor:
        return model(input_ids=ids, labels=ids)[0]  # type: ignore[no-any-return]

    results = []
    for run in (loss, compiled(loss)):
        value = run(ids)
        results.append((value, torch.autograd.grad(value, list(model.parameters()))))
    assert_equal(results[1], results[0], tolerance=1e-4)


@seed("PAD-11")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("sizes", [(13, 21, 37), (2048, 767, ODD)])
def test_padded_products_have_eagers_values(
    dtype: torch.dtype, sizes: tuple[int, int, int]
) -> None:
    m, k, n = sizes
    a = torch.randn(m, k, device="cuda").to(dtype)
    b = torch.randn(k, n, device="cuda").to(dtype)
    exact = a.double() @ b.double()
    limit = 2 * (a @ b - exact).abs().max() + 1e-6
    for function, options in ((torch.mm, {"force_shape_pad": True}), (with_helper, {})):
        result = compiled(function, **options)(a, b)
        assert result.dtype == dtype and (result - exact).abs().max() <= limit


@seed("PAD-14")
def test_a_concatenation_of_zero_columns_is_one_kernel() -> None:
    def append_columns(x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, x.new_zeros(x.size(0), 6)], dim=1)

    x = torch.randn(8192, 30522, dtype=torch.float16, device="cuda")
    assert_equal(compiled(append_columns)(x), append_columns(x))
    assert (irc.metrics.kernels, irc.metrics.aten_calls) == (1, 0)
