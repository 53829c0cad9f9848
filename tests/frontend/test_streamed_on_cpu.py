"""Attention whose scores a function changes, on a CPU: blocks of rows walk over the stream, and
values are as near to float64 as eager mode's."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from irc.dialects import host, kernel, loop
from irc.passes.graph import stream_softmaxes
from tests.frontend.test_streamed_attention import (
    CASES,
    LOOPS,
    PROGRAMS,
    Attention,
    arrays_of,
    causal,
    compare,
    run,
    window,
)
from tests.passes.frozen.frozen_convolutions import threads

SHAPES = {
    "whole": (2, 2, 64, 64, 32), "odd": (1, 4, 70, 45, 24), "long": (1, 2, 200, 700, 40),
}  # fmt: skip
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # Small scores, too.
    monkeypatch.setattr(stream_softmaxes, "near", lambda shape, target: "")
    LOOPS.clear()
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


def compiled(function: Attention, dynamic: bool = False, sizes: str = "") -> Attention:
    passes = {"after:expand-streams": "test-keep-loops"}
    if sizes:
        passes["before:expand-streams"] = f"expand-streams{{{sizes}}}"
    options = {"passes": passes, "pattern_matcher": False}
    return torch.compile(function, backend="irc", dynamic=dynamic, options=options)


def walks() -> list[loop.GroupOp]:
    """The groups that are walked along an axis."""
    return [op for program in LOOPS for op in program.walk()
            if isinstance(op, loop.GroupOp) and op.carried]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("name", CASES)
def test_rows_walk_over_the_stream(name: str, shape: tuple[int, ...], dtype: Any) -> None:
    arrays = arrays_of(shape, name, dtype)
    got = run(compiled(CASES[name], sizes="rows=32 columns=64"), arrays)
    compare(CASES[name], got, arrays, times=4)
    # Blocks that are whole come before those whose mask is asked, steps before a row's end, too.
    ends = name in ("causal", "window", "late", "ahead") or name == "hidden" and shape[2] > 100
    assert len(walks()) == (2 if ends else 1)
    assert sum(walk.limit is not None for walk in walks()) in (0, len(walks()))


@pytest.mark.parametrize("size", [128, 256])
@pytest.mark.parametrize("name", ["causal", "window"])
def test_blocks_of_several_steps(name: str, size: int) -> None:
    """Blocks of more columns than a step has, in rows and columns that are no whole blocks."""
    function = {"causal": causal, "window": window}[name]

    def attend(q: Any, k: Any, v: Any) -> Any:
        mask = create_block_mask(function, None, None, 333, 333, device="cpu", BLOCK_SIZE=size)
        return flex_attention(q, k, v, block_mask=mask)

    arrays = [torch.randn(1, 2, 333, 16) for _ in range(3)]
    got = run(compiled(attend, sizes="rows=64 columns=64"), arrays)
    compare(attend, got, arrays, times=4)
    assert len(walks()) == 2 and all(walk.limit is not None for walk in walks())
    assert [walk.axis_list[-1].extent for walk in walks()] == [-(-333 // size) * size // 64] * 2


def test_threads_have_memory_of_their_own() -> None:
    """More points than parts, by one thread and by several."""
    arrays = [torch.randn(2, 8, 256, 32) for _ in range(3)]
    call = compiled(CASES["slopes"], sizes="rows=16 columns=64")
    got = run(call, arrays)
    compare(CASES["slopes"], got, arrays, times=4)
    with threads(3):
        for _ in range(5):
            assert torch.equal(call(*arrays), got[0])


@pytest.mark.parametrize("name", ["slopes", "causal", "biased"])
def test_symbolic_sizes(name: str) -> None:
    call = compiled(CASES[name], dynamic=True)
    for rows in (64, 100, 37):
        arrays = arrays_of((1, 2, rows, rows + 3, 16), name, torch.float32)
        compare(CASES[name], run(call, arrays), arrays, times=4)


def test_numbers_that_are_none() -> None:
    """A row of infinities is what eager mode makes of it, and others are as they were."""
    arrays = arrays_of((1, 2, 100, 100, 16), "slopes", torch.float32)
    arrays[0][0, 0, 3] = math.inf
    arrays[0][0, 1, 70] = math.nan
    for name in ("causal", "slopes", "plain"):
        torch._dynamo.reset()
        got = run(compiled(CASES[name], sizes="rows=32 columns=64"), arrays)[0]
        eager = CASES[name](*arrays)
        assert torch.equal(got.isnan(), eager.isnan())
        torch.testing.assert_close(got, eager, equal_nan=True, rtol=1e-4, atol=1e-5)
        arrays[2][0, 0, 99] = math.inf  # of blocks that are not looked at nothing is known


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_what_a_function_captures(dtype: Any) -> None:
    """Biases of places, of heads, and documents of different lengths."""
    bias, slope = torch.randn(90, 130), torch.rand(4)
    documents = torch.arange(130) // 50

    def score(s: Any, b: Any, h: Any, q: Any, k: Any) -> Any:
        return torch.where(documents[q] == documents[k], s * slope[h] + bias[q, k], -math.inf)

    def attend(q: Any, k: Any, v: Any) -> Any:
        return flex_attention(q, k, v, score_mod=score)

    arrays = arrays_of((1, 4, 90, 130, 32), "slopes", dtype)
    compare(attend, run(compiled(attend, sizes="rows=32 columns=64"), arrays), arrays, times=4)
    assert len(walks()) == 1


def test_small_scores_stay_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    arrays = arrays_of((1, 2, 64, 64, 16), "slopes", torch.float32)
    compare(CASES["slopes"], run(compiled(CASES["slopes"]), arrays), arrays, times=4)
    assert not walks()
    torch._dynamo.reset()
    arrays = arrays_of((1, 8, 512, 512, 16), "slopes", torch.float32)
    compare(CASES["slopes"], run(compiled(CASES["slopes"]), arrays), arrays, times=4)
    assert len(walks()) == 1


def test_a_target_says_how_large() -> None:
    """Rows of a block, columns of a step, and parts of memory of a kernel's own."""
    PROGRAMS.clear()
    figures = "#irc.target<avx2, walk_rows = 32, walk_columns = 64, own_parts = 3>"
    passes = {"after:expand-streams": "test-keep-loops", "after:form-kernels": "test-keep-program"}
    options = {"passes": passes, "pattern_matcher": False, "target": figures}
    arrays = arrays_of((1, 2, 128, 192, 16), "slopes", torch.float32)
    call = torch.compile(CASES["slopes"], backend="irc", dynamic=False, options=options)
    compare(CASES["slopes"], run(call, arrays), arrays, times=4)
    (walk,) = walks()
    assert [axis.extent for axis in walk.axis_list] == [1, 2, 4, 3]
    (launch,) = [op for op in PROGRAMS[0].walk() if isinstance(op, host.LaunchOp)]
    (callee,) = [op for op in PROGRAMS[0].walk() if isinstance(op, kernel.KernelFuncOp)]
    own = [launch.results[n - len(launch.inputs)].type for n in callee.private]
    assert len(own) > 3 and all(type_.shape[0] == 3 for type_ in own)


def seen_until(score: Any, b: Any, h: Any, q: Any, k: Any) -> Any:
    return torch.where(k <= q + 5, score, -math.inf)


def seen_between(score: Any, b: Any, h: Any, q: Any, k: Any) -> Any:
    return torch.where((q - k < 30) & (k < q + 3), 20 * torch.tanh(score / 20), -math.inf)


def seen_below(score: Any, b: Any, h: Any, q: Any, k: Any) -> Any:
    return torch.where((k < 77) & (q >= k), score, -math.inf)


def seen_behind(score: Any, b: Any, h: Any, q: Any, k: Any) -> Any:
    """The last rows see nothing."""
    return torch.where(k > q + 20, score, -math.inf)


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "symbolic"])
@pytest.mark.parametrize("rows", [150, 192])
@pytest.mark.parametrize("function", [seen_until, seen_between, seen_below, seen_behind])
def test_places_say_where_a_stream_ends(function: Any, rows: int, dynamic: bool) -> None:
    """Without lists of blocks: steps that nobody sees aren't taken."""

    def attend(q: Any, k: Any, v: Any) -> Any:
        return flex_attention(q, k, v, score_mod=function)

    arrays = [torch.randn(1, 2, n, 16) for n in (rows, 170, 170)]
    if dynamic:
        for array in arrays:
            torch._dynamo.mark_dynamic(array, 2)
    got = run(compiled(attend, dynamic, "rows=32 columns=32"), arrays)
    compare(attend, got, arrays, times=4)
    begins = function in (seen_between, seen_behind)
    assert len(walks()) == (1 if begins else 2)
    assert all(walk.limit is not None for walk in walks())
