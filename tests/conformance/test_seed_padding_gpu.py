"""Rows on padding that need a GPU to run for real: what is compiled for one at full size (layouts,
Triton source, sm_90 code), and values in Triton's interpreter at a small size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch._dynamo
from torch import nn

import irc
from irc.dialects import graph
from tests.backends import needs_backend
from tests.conformance.gpu_programs import Program, interpreted, lowered
from tests.conformance.seed_support import assert_equal

pytestmark = needs_backend
seed = pytest.mark.seed


class LinearAndLoss(nn.Module):
    """A projection to a vocabulary, and cross entropy."""

    def __init__(self, width: int, vocabulary: int, bias: bool) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.linear = nn.Linear(width, vocabulary, bias=bias)
        self.loss = nn.CrossEntropyLoss()

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        logits = self.linear(x).view(-1, self.vocabulary)
        return self.loss(logits, labels.view(-1))  # type: ignore[no-any-return]


def products(program: Program) -> list[Any]:
    """The matrix products on the layout level."""
    return [op for op in program.layouts.walk() if isinstance(op, graph.CallAten)]


def row_strides(value: Any) -> list[int]:
    """The row strides of what is reduced along rows."""
    return [
        op.operands[0].type.strides[0]
        for op in value.walk()
        if isinstance(op, graph.Reduce) and tuple(op.dims) == (1,)
    ]


def train_linear(bias: bool, vocabulary: int = 30523, **options: Any) -> list[Program]:
    def run(compile_it: Callable[..., Any]) -> None:
        model = LinearAndLoss(768, vocabulary, bias)
        labels = torch.empty(16, 512, dtype=torch.int64)
        compile_it(model)(torch.randn(16, 512, 768), labels).backward()

    return lowered(run, options)


@seed("PAD-05")
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape_padding", [True, False])
def test_the_softmax_reads_aligned_rows_of_logits(bias: bool, shape_padding: bool) -> None:
    programs = train_linear(bias, shape_padding=shape_padding)
    assert [p.stage for p in programs] == ["forward", "backward"]
    forward = programs[0]
    assert set(row_strides(forward.layouts)) == {30528}
    reading = [s for s in forward.sources().values() if "30528" in s]
    assert reading and "30523" in reading[0]
    padded = forward.context.statistics["pad-strides", "padded"]
    assert padded > 0 and forward.context.statistics["bufferize", "padding bytes"] > 0


@seed("PAD-05")
@pytest.mark.slow
@pytest.mark.parametrize("bias", [True, False])
def test_linear_and_loss_compile_for_sm_90(bias: bool) -> None:
    for program in train_linear(bias):
        program.compile_for_sm_90()


@seed("PAD-05", "PAD-12")
@pytest.mark.parametrize("bias", [True, False])
def test_linear_and_loss_have_eagers_gradients(bias: bool) -> None:
    model = LinearAndLoss(6, 1031, bias)
    x, labels = torch.randn(2, 4, 6), torch.randint(0, 1031, (2, 4))
    expected = model(x, labels)
    wanted = torch.autograd.grad(expected, list(model.parameters()))
    irc.metrics.reset()
    options = {"target": "triton", "force_shape_pad": True}
    with interpreted():
        loss = torch.compile(model, backend="irc", fullgraph=True, options=options)(x, labels)
        found = torch.autograd.grad(loss, list(model.parameters()))
    assert_equal(loss, expected, tolerance=1e-5)
    assert_equal(found, wanted, tolerance=1e-5)
    assert irc.metrics.compiles == 2
    assert irc.metrics.num_comprehensive_padding > 0


# -- products


def multiply(m: int, k: int, n: int, dtype: torch.dtype, **options: Any) -> Program:
    """The program of one product at full size."""

    def run(compile_it: Callable[..., Any]) -> None:
        a, b = torch.empty(m, k, dtype=dtype), torch.empty(k, n, dtype=dtype)
        compile_it(torch.mm)(a, b)

    (program,) = lowered(run, options)
    return program


def sizes(program: Program) -> list[tuple[tuple[int, ...], ...]]:
    """The sizes of each product's operands."""
    return [tuple(v.type.shape for v in op.operands) for op in products(program)]


@seed("PAD-11")
@pytest.mark.parametrize(
    ("m", "k", "n", "dtype", "padded"),
    [
        (8192, 768, 30523, torch.float32, (8192, 768, 30524)),
        (30523, 8192, 768, torch.float32, (30524, 8192, 768)),
        (8192, 768, 30523, torch.bfloat16, (8192, 768, 30528)),
        (8192, 30522, 768, torch.float16, (8192, 30528, 768)),
        (8192, 768, 30528, torch.float32, (8192, 768, 30528)),
    ],
)
def test_sizes_of_large_products_are_aligned(
    m: int, k: int, n: int, dtype: torch.dtype, padded: tuple[int, int, int]
) -> None:
    rows, inner, columns = padded
    # As parts of bf16 two of f32 are irc's own, which reads rows that begin anywhere.
    program = multiply(m, k, n, dtype, split_products=False)
    assert sizes(program) == [((rows, inner), (inner, columns))]
    program.compile_for_sm_90()
    plain = {"shape_padding": False, "split_products": False, "max_autotune_gemm_backends": "ATEN"}
    assert sizes(multiply(m, k, n, dtype, **plain)) == [((m, k), (k, n))]


@seed("PAD-11")
@pytest.mark.parametrize(("m", "k", "n", "padded"), [
    (8192, 768, 30523, True), (30523, 8192, 768, False), (8192, 768, 30528, False),
])  # fmt: skip
def test_parts_of_f32_are_padded_where_that_is_surely_faster(
    m: int, k: int, n: int, padded: bool
) -> None:
    """irc multiplies all of these; rows of 30523 f32 begin anywhere, those of 30524 don't."""
    program = multiply(m, k, n, torch.float32)
    assert not sizes(program)
    assert any("tl.dot(" in text for text in program.sources().values())
    assert program.context.statistics["pad-matmul", "padded"] == padded


@seed("PAD-11")
def test_rows_of_an_odd_vocabulary_are_written_as_they_are() -> None:
    """Those that the caller sees, of factors whose rows are aligned: nothing is padded or cut."""

    def run(compile_it: Callable[..., Any]) -> None:
        x, w = (torch.empty(size, 768, dtype=torch.bfloat16) for size in (8192, 30523))
        compile_it(nn.functional.linear)(x, w)

    (program,) = lowered(run)
    assert not products(program) and not program.context.statistics["pad-matmul", "padded"]
    assert [text.count("tl.dot(") for text in program.sources().values()] == [1]
    program.compile_for_sm_90()


def with_helper(a: torch.Tensor, b: torch.Tensor, align: int = 16) -> torch.Tensor:
    m, k, n = (-size % align for size in (a.size(0), a.size(1), b.size(1)))
    return irc.pad_mm(a, b, m, k, n)  # type: ignore[no-any-return]


@seed("PAD-11")
def test_the_helper_pads_m_k_and_n() -> None:
    def run(compile_it: Callable[..., Any]) -> None:
        compile_it(with_helper)(torch.empty(8190, 767), torch.empty(767, 30523))

    (program,) = lowered(run, {"split_products": False})
    assert sizes(program) == [((8192, 768), (768, 30528))]
    program.compile_for_sm_90()
    a, b = torch.randn(13, 21), torch.randn(21, 37)
    with interpreted():
        compiled = torch.compile(with_helper, backend="irc", options={"target": "triton"})
        assert_equal(compiled(a, b), with_helper(a, b), tolerance=1e-5)


@seed("PAD-11")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_padded_products_have_eagers_values(dtype: torch.dtype) -> None:
    a, b = torch.randn(13, 21).to(dtype), torch.randn(21, 37).to(dtype)
    options = {"target": "triton", "force_shape_pad": True}
    with interpreted():
        compiled = torch.compile(torch.mm, backend="irc", fullgraph=True, options=options)
        assert_equal(compiled(a, b), a @ b)


@seed("PAD-14")
def test_a_concatenation_is_one_kernel() -> None:
    def append_columns(x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, x.new_zeros(x.size(0), 6)], dim=1)

    def run(compile_it: Callable[..., Any]) -> None:
        compile_it(append_columns)(torch.empty(8192, 30522, dtype=torch.float16))

    (program,) = lowered(run)
    assert len(program.kernels) == 1 and not products(program)
    program.compile_for_sm_90()
    x = torch.randn(9, 1018, dtype=torch.float16)
    irc.metrics.reset()
    with interpreted():
        compiled = torch.compile(append_columns, backend="irc", options={"target": "triton"})
        assert_equal(compiled(x), append_columns(x))
    assert (irc.metrics.kernels, irc.metrics.aten_calls) == (1, 0)


# -- whole models


@seed("PAD-12")
@pytest.mark.parametrize("vocabulary", [30522, 30528])
def test_bert_reads_aligned_rows_of_logits(vocabulary: int) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(num_hidden_layers=1, vocab_size=vocabulary)

    def run(compile_it: Callable[..., Any]) -> None:
        model = transformers.BertForMaskedLM(config)
        ids = torch.zeros(16, 512, dtype=torch.int64)

        def loss(ids: torch.Tensor) -> torch.Tensor:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return model(input_ids=ids, labels=ids)[0]  # type: ignore[no-any-return]

        compile_it(loss)(ids).backward()

    programs = lowered(run)
    assert [p.stage for p in programs] == ["forward", "backward"]
    long = [s for s in row_strides(programs[0].layouts) if s > 30000]
    assert set(long) == {30528}
    wide = [s for p in programs for pair in sizes(p) for t in pair for s in t if s > 30000]
    assert wide and all(size % 8 == 0 for size in wide)
