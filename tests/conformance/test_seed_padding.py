"""Rows on padding: the rule, programs with padded values, and operands with strides of their own.

Rows marked G are shown in test_seed_padding_gpu.py.
"""

from __future__ import annotations

import itertools
import math

import pytest
import torch
import torch._dynamo
from torch import nn

import irc
from irc.ir.types import f32
from irc.passes.layout.pad_strides import padded_strides
from tests.backends import BACKEND, needs_backend
from tests.conformance.seed_support import assert_equal, options

pytestmark = needs_backend
seed = pytest.mark.seed


def pad(shape: tuple[int, ...], strides: tuple[int, ...]) -> list[int]:
    return list(padded_strides(shape, strides, f32))  # type: ignore[arg-type]


@seed("PAD-01")
def test_a_stride_inside_takes_an_aligned_outer_one_along() -> None:
    assert pad((2, 16, 2047), (2047 * 16, 2047, 1)) == [2048 * 16, 2048, 1]


@seed("PAD-02")
def test_short_rows_stay() -> None:
    assert pad((2, 32, 127), (4064, 127, 1)) == [4064, 127, 1]


@seed("PAD-03")
def test_images_are_padded_unless_channels_are_last() -> None:
    image = torch.empty(2, 3, 5, 1025)
    assert pad(image.shape, image.stride()) == [15840, 5280, 1056, 1]
    last = image.to(memory_format=torch.channels_last)
    assert pad(last.shape, last.stride()) == list(last.stride())


@seed("PAD-04")
def test_values_between_products_are_padded() -> None:
    def multiply_twice(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.matmul(torch.matmul(x, y) + 1, y)

    x, y = torch.randn(2, 16, 2047), torch.randn(2047, 2047)
    irc.metrics.reset()
    library = {"max_autotune_gemm_backends": "ATEN"}  # irc's own products read rows as they lie
    asked = options(comprehensive_padding=True, fx_graph_cache=False, **library)
    compiled = torch.compile(multiply_twice, backend=BACKEND, fullgraph=True, options=asked)
    before = x.stride(), y.stride()
    assert_equal(compiled(x, y), multiply_twice(x, y), tolerance=1e-2)
    assert (x.stride(), y.stride()) == before
    assert irc.metrics.num_comprehensive_padding > 0
    assert irc.metrics.padding_bytes >= 31 * 4  # the last row of an array needs none


class Attention(nn.Module):
    """Attention written out with views and permutations."""

    def __init__(self, batch: int, length: int, heads: int, width: int) -> None:
        super().__init__()
        self.batch, self.length, self.heads, self.width = batch, length, heads, width
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)

    def split(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(self.batch, self.length, self.heads, -1).permute(0, 2, 1, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = (self.split(f(x)) for f in (self.query, self.key, self.value))
        scores = torch.matmul(query, key.permute(0, 1, 3, 2))
        weights = (scores * (self.heads / self.width) ** 0.5).softmax(dim=-1)
        mixed = torch.matmul(weights, value)
        return mixed.permute(0, 2, 1, 3).view(self.batch, self.length, self.width)


@seed("PAD-06")
def test_attention_written_out() -> None:
    model = Attention(batch=1, length=4, heads=1, width=16)
    x = torch.randn(1, 4, 16)
    compiled = torch.compile(model, backend=BACKEND, options=options(pattern_matcher=False))
    actual, expected = compiled(x), model(x)
    assert_equal(actual, expected, tolerance=1e-3)
    wanted = torch.autograd.grad(expected.square().sum(), list(model.parameters()))
    mine = torch.autograd.grad(actual.square().sum(), list(model.parameters()))
    assert_equal(mine, wanted, tolerance=1e-3)


@seed("PAD-07")
def test_a_view_stays_a_view() -> None:
    x = torch.randn(3, 9)
    y = torch.compile(lambda x: x.view(3, 3, 3), backend=BACKEND, fullgraph=True)(x)
    assert_equal(y, x.view(3, 3, 3))
    assert y.data_ptr() == x.data_ptr()
    y.zero_()
    assert not x.any()


def convolve(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.convolution(x, weight, None, (1, 1), (1, 1), (1, 1), False, (0, 0), 1)


def check_padded_rows(channels: int, out: int, height: int, width: int, stride: int) -> None:
    dense = torch.randn(1, channels, height, width)
    plane = stride * height
    padded = torch.empty_strided(dense.shape, (plane * channels, plane, stride, 1)).copy_(dense)
    weight = torch.randn(out, channels, 3, 3)
    compiled = torch.compile(convolve, backend=BACKEND, fullgraph=True)
    expected = convolve(dense, weight)
    torch.testing.assert_close(compiled(padded, weight), expected, atol=1e-3, rtol=1e-3)


@seed("PAD-08")
def test_a_convolution_of_padded_rows() -> None:
    check_padded_rows(channels=8, out=6, height=20, width=31, stride=32)


@seed("PAD-08")
@pytest.mark.slow
def test_a_convolution_of_padded_rows_at_full_size() -> None:
    check_padded_rows(channels=128, out=64, height=640, width=959, stride=960)


@seed("PAD-13")
@pytest.mark.parametrize(
    ("inner", "stride"),
    [
        (768, 768),
        (762, 768),
        pytest.param(30528, 30528, marks=pytest.mark.slow),
        pytest.param(30522, 30528, marks=pytest.mark.slow),
    ],
)
def test_a_product_into_the_users_tensor(inner: int, stride: int) -> None:
    x = torch.empty_strided((64, inner), (stride, 1), dtype=torch.float16).normal_()
    weight = torch.randn(inner, 768, dtype=torch.float16)
    out = torch.randn(64, 768, dtype=torch.float16)

    def multiply(x, weight, out):
        torch.mm(x, weight, out=out)
        return out

    result = torch.compile(multiply, backend=BACKEND)(x, weight, out)
    assert result.data_ptr() == out.data_ptr()
    assert_equal(result, torch.mm(x, weight))


def wide_stack(sizes: tuple[int, ...]) -> nn.Sequential:
    """Linear and SELU layers, with dropout after the third."""
    layers: list[nn.Module] = []
    for number, (before, after) in enumerate(itertools.pairwise(sizes)):
        layers += [nn.Linear(before, after), nn.SELU()]
        if number == 2:
            layers.append(nn.Dropout(0.8))
    return nn.Sequential(*layers).eval()


@seed("PAD-09")
@pytest.mark.parametrize("width", [1951, pytest.param(197951, marks=pytest.mark.slow)])
def test_padding_is_switched_per_compile(width: int) -> None:
    model = wide_stack((width, 512, 512, 1024, 512, 512, width))
    x = torch.randn(4, width)
    expected = model(x)
    for padding in (True, False):
        torch._dynamo.reset()
        irc.metrics.reset()
        asked = options(comprehensive_padding=padding)
        with torch.no_grad():
            actual = torch.compile(model, backend=BACKEND, fullgraph=True, options=asked)(x)
        torch.testing.assert_close(actual, expected, atol=1e-3, rtol=1e-3)
        assert actual.stride() == expected.stride()
        assert (irc.metrics.num_comprehensive_padding > 0) == padding
    model.train()
    assert not torch.equal(model(x), expected)


def longformer(vocabulary: int, layers: int) -> nn.Module:
    """The default LongformerConfig written out, with smaller sizes."""
    transformers = pytest.importorskip("transformers")
    config = transformers.LongformerConfig(
        attention_window=16, sep_token_id=2, pad_token_id=1, bos_token_id=0, eos_token_id=2,
        vocab_size=vocabulary, hidden_size=48, num_hidden_layers=layers, num_attention_heads=3,
        intermediate_size=96, hidden_act="gelu", hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.1, max_position_embeddings=130, type_vocab_size=2,
        initializer_range=0.02, layer_norm_eps=1e-12, onnx_export=False,
    )  # fmt: skip
    return transformers.AutoModelForMaskedLM.from_config(config)  # type: ignore[no-any-return]


def tokens(vocabulary: int, batch: int) -> dict[str, torch.Tensor]:
    """Token numbers and labels of sequences of 64."""
    return {name: torch.randint(2, vocabulary, (batch, 64)) for name in ("input_ids", "labels")}


@seed("PAD-10")
@pytest.mark.parametrize(("batch", "layers"), [(2, 1), pytest.param(4, 2, marks=pytest.mark.slow)])
def test_longformer_in_eval_mode(batch: int, layers: int) -> None:
    model = longformer(1031, layers).eval()
    given = tokens(1031, batch)
    asked = options(comprehensive_padding=True)
    irc.metrics.reset()
    with torch.no_grad():
        actual = torch.compile(model, backend=BACKEND, options=asked)(**given)
        expected = model(**given)
    torch.testing.assert_close(actual.loss, expected.loss, atol=1e-3, rtol=1e-3)
    torch.testing.assert_close(actual.logits, expected.logits, atol=1e-3, rtol=1e-3)
    assert irc.metrics.num_comprehensive_padding > 0


@seed("PAD-10")
@pytest.mark.slow
@pytest.mark.parametrize(("batch", "layers"), [(2, 1), (4, 2)])
def test_longformer_learns(batch: int, layers: int) -> None:
    model = longformer(1031, layers).train()
    given = tokens(1031, batch)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, foreach=True)

    def step(**inputs: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad(True)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = model(**inputs)[0]
        loss.backward()
        optimizer.step()
        return loss.detach()  # type: ignore[no-any-return]

    asked = options(comprehensive_padding=True)
    compiled = torch.compile(step, backend=BACKEND, options=asked)
    losses = [float(compiled(**given)) for _ in range(4)]
    assert all(math.isfinite(loss) for loss in losses)
    assert losses[-1] < losses[0] - 0.1
