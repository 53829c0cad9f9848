"""Rows on products under max-autotune: TUNE-02, 03, 04, 07, 09, 10, 11, 13, 14 and 15, with kernels
of irc's own only, so that nothing is measured; on a GPU also as measured."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
import torch
import torch._dynamo

import irc
from tests.backends import BACKEND, needs_backend
from tests.conformance.gpu_programs import interpreted
from tests.conformance.seed_support import assert_equal, options

pytestmark = needs_backend
seed = pytest.mark.seed
GENERATED = {
    "max_autotune": True, "max_autotune_gemm_backends": "CPP,Triton",
    "max_autotune_conv_backends": "IRC", "fx_graph_cache": False, "max_autotune_budget": 0,
}  # fmt: skip
MEASURED = {"max_autotune": True, "autotune_in_subproc": True}
INTERPRETED = {**GENERATED, "target": "triton"}
on_gpu = pytest.mark.gpu
#: Where and how a row is shown: the device, and the options.
PLACES = [
    pytest.param("cpu", GENERATED, id="cpu"),
    pytest.param("cpu", INTERPRETED, id="interpreted"),
    pytest.param("cuda", GENERATED, id="cuda", marks=on_gpu),
    pytest.param("cuda", MEASURED, id="cuda-measured", marks=on_gpu),
]


def compiled(
    function: Any, args: tuple[Any, ...], asked: dict[str, Any], dynamic: bool = False
) -> Any:
    """The results of a compiled function, which without a library's products calls none."""
    irc.metrics.reset()
    run = torch.compile(
        function, backend=BACKEND, fullgraph=True, dynamic=dynamic, options=options(**asked)
    )
    context = interpreted() if asked is INTERPRETED else contextlib.nullcontext()
    with context:
        results = run(*args)
    if asked is not MEASURED:
        assert irc.metrics.aten_calls == 0
    return results


def randn(*shapes: tuple[int, ...], device: str, dtype: torch.dtype = torch.float32) -> Any:
    torch.manual_seed(0)
    return tuple(torch.randn(shape, device=device).to(dtype) for shape in shapes)


def two_products(a: Any, b: Any, c: Any, d: Any) -> Any:
    return a @ b + c @ d


@seed("TUNE-02")
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("device, asked", PLACES)
def test_a_sum_of_two_products(device: str, asked: dict[str, Any], dynamic: bool) -> None:
    m, n, k = (48, 32, 16) if asked is INTERPRETED else (2048, 1536, 64)
    args = randn((m, k), (k, n), (m, k), (k, n), device=device)
    assert_equal(compiled(two_products, args, asked, dynamic), two_products(*args), 1e-2)
    args = randn((0, k), (k, n), (0, k), (k, n), device=device)
    assert_equal(compiled(two_products, args, asked, dynamic), two_products(*args), 1e-2)


def product_of_sines(a: Any, b: Any) -> Any:
    return torch.sin(a) @ b


@seed("TUNE-03")
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("device, asked", PLACES)
def test_a_product_with_a_prologue(device: str, asked: dict[str, Any], dynamic: bool) -> None:
    for m in (100, 0):
        args = randn((m, 10), (10, 100), device=device)
        got = compiled(product_of_sines, args, asked, dynamic)
        assert_equal(got, product_of_sines(*args), 1e-2)


@seed("TUNE-04")
@pytest.mark.parametrize("device, asked", PLACES)
def test_addmm_without_reduced_precision(device: str, asked: dict[str, Any]) -> None:
    allowed = torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    try:
        for m in (100, 0):
            args = randn((100,), (m, 10), (10, 100), device=device)
            assert_equal(compiled(torch.addmm, args, asked), torch.addmm(*args), 1e-2)
    finally:
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = allowed


@seed("TUNE-07")
@pytest.mark.parametrize("device, asked", PLACES[:3])
def test_a_convolution_of_single_pixels_calls_no_library(
    device: str, asked: dict[str, Any]
) -> None:
    torch.manual_seed(0)
    size = 8 if asked is INTERPRETED else 32
    layer = torch.nn.Conv2d(3, 16, 1).to(device, memory_format=torch.channels_last)
    image = torch.randn(4, 3, size, size, device=device).to(memory_format=torch.channels_last)
    with torch.no_grad():
        result = compiled(layer, (image,), asked)
        torch.testing.assert_close(result, layer(image), atol=1e-2, rtol=0)
    assert result.is_contiguous(memory_format=torch.channels_last)


def parts_with_a_number(x: Any, number: Any) -> Any:
    return x + x, number.item(), x * x, x @ x, x**2


@seed("TUNE-09")
def test_what_is_compiled_ahead_of_time_is_fused_as_just_in_time() -> None:
    args = (torch.rand(64, 64), torch.tensor(3))
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        just_in_time = compiled(parts_with_a_number, args, {**GENERATED})
    launched = irc.metrics.kernels, irc.metrics.launches
    program = torch.export.export(_Module(), args)
    irc.metrics.reset()
    ahead = irc.compile(program, args, options=GENERATED)
    assert (irc.metrics.kernels, irc.metrics.launches) == launched
    for results in (just_in_time, ahead(*args)):
        for mine, eager in zip(results, parts_with_a_number(*args), strict=True):
            torch.testing.assert_close(mine, eager)


class _Module(torch.nn.Module):
    def forward(self, x: Any, number: Any) -> Any:
        return parts_with_a_number(x, number)


def joined_products(a: Any, b: Any, c: Any) -> Any:
    return torch.cat([torch.addmm(a, b, c), torch.addmm(b, c, a)], 1)


@seed("TUNE-10")
@pytest.mark.parametrize("device, asked", PLACES[:3])
def test_a_join_of_products(device: str, asked: dict[str, Any]) -> None:
    args = randn((4, 4), (4, 4), (4, 4), device=device)
    assert_equal(compiled(joined_products, args, asked), joined_products(*args), 1e-2)


def with_epilogue(x: Any, w: Any, bias: Any, mul: Any) -> Any:
    return torch.relu(x.mT @ w.mT + bias) * mul


@seed("TUNE-11")
@pytest.mark.parametrize("device, asked", PLACES[:3])
def test_an_epilogue_is_in_the_kernel_of_every_size(device: str, asked: dict[str, Any]) -> None:
    irc.metrics.reset()
    run = torch.compile(
        with_epilogue, backend=BACKEND, fullgraph=True, dynamic=True, options=options(**asked)
    )
    w, bias = randn((3, 4), (3,), device=device, dtype=torch.half)
    with interpreted() if asked is INTERPRETED else contextlib.nullcontext():
        for m in (5, 8):
            x, mul = randn((4, m), (m, 3), device=device, dtype=torch.half)
            torch.testing.assert_close(run(x, w, bias, mul), with_epilogue(x, w, bias, mul))
    assert (irc.metrics.compiles, irc.metrics.kernels, irc.metrics.launches) == (1, 1, 1)


@seed("TUNE-13")
@pytest.mark.gpu
@pytest.mark.parametrize("workers", ["here", "one", "each"])
def test_tensors_on_the_second_gpu_are_tuned_and_run_there(
    workers: str, request: pytest.FixtureRequest
) -> None:
    """`irc.tuning` measures there: the first GPU has no memory taken in this process."""
    if torch.cuda.device_count() < 2:
        pytest.skip("there is one GPU")
    taken = torch.cuda.memory_stats(0).get("allocation.all.allocated", 0)
    asked = {
        **MEASURED, "max_autotune_gemm_backends": "ATEN,Triton", "autotune_local_cache": False,
        "autotune_in_subproc": workers != "here", "autotune_multi_device": workers == "each",
        "fx_graph_cache": False,
    }  # fmt: skip
    args = randn((33, 64), (64, 200), device="cuda:1", dtype=torch.half)
    torch.cuda.memory._record_memory_history(stacks="python")  # tells who takes it
    request.addfinalizer(lambda: torch.cuda.memory._record_memory_history(enabled=None))
    irc.metrics.reset()
    run = torch.compile(product_of_sines, backend=BACKEND, fullgraph=True, options=options(**asked))
    found = run(*args)
    assert found.device == torch.device("cuda:1")
    assert_equal(found, product_of_sines(*args), 1e-2)
    assert irc.metrics.select_algorithm_precompile == 1
    now = torch.cuda.memory_stats(0).get("allocation.all.allocated", 0)
    assert now == taken, torch.cuda.memory._snapshot()["device_traces"][0]


def strided(shape: tuple[int, ...], strides: tuple[int, ...], **how: Any) -> torch.Tensor:
    extent = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    memory = torch.randn(extent, device=how["device"], dtype=torch.float32).to(how["dtype"])
    return (memory / shape[-1] ** 0.5).as_strided(shape, strides)


@seed("TUNE-14")
@pytest.mark.parametrize("device, asked", PLACES)
def test_factors_have_any_strides(device: str, asked: dict[str, Any]) -> None:
    small = asked is INTERPRETED
    m, k, n = (50257, 32768, 768) if device == "cuda" else (33, 16, 18) if small else (515, 130, 66)
    wide = m + 47 if device == "cuda" else m + 5
    torch.manual_seed(0)
    how: dict[str, Any] = {"device": device, "dtype": torch.bfloat16}
    x, y = strided((m, k), (1, wide), **how), strided((k, n), (n, 1), **how)
    (bias,) = randn((n,), device=device, dtype=torch.bfloat16)
    assert_equal(compiled(torch.mm, (x, y), asked), x @ y, 1e-2)
    assert_equal(compiled(torch.addmm, (bias, x, y), asked), torch.addmm(bias, x, y), 1e-2)
    a, b = (t.as_strided((1, *t.shape), (0, *t.stride())) for t in (x, y))
    assert_equal(compiled(torch.bmm, (a, b), asked), torch.bmm(a, b), 1e-2)
    how["dtype"] = torch.float32
    args = tuple(
        strided(*form, **how) for form in 2 * [((m, k), (1, wide)), ((k, n), (n, 1))]
    )
    assert_equal(compiled(two_products, args, asked), two_products(*args), 1e-2)


@seed("TUNE-15")
@pytest.mark.parametrize("words", ["CUTLASS", "TRITON,CK"])
def test_without_any_choice_the_error_says_what_to_allow(words: str) -> None:
    asked = {**GENERATED, "max_autotune_gemm_backends": words}
    run = torch.compile(torch.matmul, backend=BACKEND, options=options(**asked))
    with pytest.raises(Exception, match="NoValidChoicesError: mm f32 2x2, 2x2") as caught:
        run(torch.zeros(2, 2), torch.zeros(2, 2))
    text = str(caught.value)
    assert "irc: the options allow no kernel" in text and "aten: it is not in" in text
    assert 'max_autotune_gemm_backends ("ATEN,IRC" takes all)' in text
