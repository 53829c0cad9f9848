"""Dropouts of a GPU that a program draws itself: which, with what numbers, and by what state."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from irc.boundary.cuda_generator import Draws, dropout_draws
from irc.dialects.math.philox import philox_number
from irc.frontend.fx.drawn_dropouts import draw_dropouts
from irc.ir.types import contiguous_strides

aten = torch.ops.aten
part = aten.slice.Tensor  # torch's own x[...] needs a GPU
DRAWS = Draws(2048)
STATE, BITS = torch.ops.irc.philox_state.default, torch.ops.irc.philox_bits.default


def dropout(x: torch.Tensor, p: float = 0.25, train: bool | None = True) -> Any:
    return aten.native_dropout.default(x, p, train)


def graph_of(function: Callable[..., Any], *shapes: Any, dtype: Any = torch.float32) -> Any:
    """The graph of a function of tensors of a GPU, which need not be there."""
    with FakeTensorMode():
        layouts = [s if isinstance(s[0], tuple) else (s, contiguous_strides(s)) for s in shapes]
        inputs = [torch.empty_strided(*s, device="cuda", dtype=dtype) for s in layouts]
        return make_fx(function)(*inputs)


def calls(module: fx.GraphModule, target: Any) -> list[fx.Node]:
    return [node for node in module.graph.nodes if node.target is target]


def drawn(function: Callable[..., Any], *shapes: Any, **keywords: Any) -> fx.GraphModule:
    module = graph_of(function, *shapes, **keywords)
    draw_dropouts(module, lambda: DRAWS)
    return module


def test_dropouts_in_a_row_share_a_state() -> None:
    def function(x):
        first, _ = dropout(x + 1)
        second, mask = dropout(first * 2, 0.5)
        return second, mask

    module = drawn(function, (40, 100))
    assert not calls(module, aten.native_dropout.default)
    (state,) = calls(module, STATE)
    assert state.args[0] == 8 and DRAWS.increment(4000) == 4
    assert [node.args[1] for node in calls(module, BITS)] == [0, 4]
    drawn_so = [node.args[2:] for node in calls(module, BITS)]
    assert drawn_so == [([40, 100], [100, 1], 2048, 4, 4)] * 2


def test_what_draws_between_them_has_its_place() -> None:
    def function(x):
        first, _ = dropout(x + 1)
        noise = torch.rand_like(first)
        return dropout(first + noise)[0]

    module = drawn(function, (8, 100))
    order = [n.target for n in module.graph.nodes if n.target in (STATE, aten.rand_like.default)]
    assert order == [STATE, aten.rand_like.default, STATE]
    assert [node.args[0] for node in calls(module, STATE)] == [4, 4]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: dropout(x)[0],  # memory of the caller's, which may begin anywhere
        lambda x: dropout(x.view(-1))[0],
        lambda x: dropout(part(x + 1, 0, 1, 8))[0],  # begins somewhere in an allocation
        lambda x: dropout(part(x + 1, 1, 0, 50))[0],  # with gaps
        lambda x: dropout(part(x + 1, 0, 0, 1).expand(3, 100))[0],  # elements that share places
        lambda x: dropout(x + 1, 0.0)[0],
        lambda x: dropout(x + 1, 1.0)[0],
        lambda x: dropout(x + 1, 0.5, False)[0],
        lambda x: dropout(x.double() + 1)[0],
        lambda x: dropout(part(x, 0, 0, 0) + 1)[0],
    ],
)
def test_what_is_not_known_is_torchs(function: Callable[..., Any]) -> None:
    module = drawn(function, (8, 100))
    assert not calls(module, STATE) and len(calls(module, aten.native_dropout.default)) == 1


def test_without_known_numbers_nothing_is_drawn() -> None:
    module = graph_of(lambda x: dropout(x + 1)[0], (8, 100))
    assert draw_dropouts(module, lambda: None) == 0
    assert calls(module, aten.native_dropout.default)
    if not torch.cuda.is_available():
        assert dropout_draws() is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(
    "shape",
    [((6, 4, 10), (1, 60, 6)), ((3001,), (1,)), ((2, 2501), (2501, 1)), ((7, 5, 3), (1, 7, 35))],
)
def test_values_are_those_of_the_numbers(shape: Any, dtype: torch.dtype) -> None:
    """The rewritten graph, run on the CPU with a seed and an offset, against numbers by hand."""
    module = drawn(lambda x: dropout(x.clone(), 0.25), shape, dtype=dtype)
    seed, offset = 2**62 + 9, 400
    x = torch.empty_strided(*shape, dtype=dtype)
    x.copy_(torch.arange(x.numel()).reshape(x.shape) / 7 - 3)
    state = torch.tensor([seed, offset])
    values: dict[fx.Node, Any] = {}
    for node in module.graph.nodes:
        args = fx.map_arg(node.args, lambda n: values[n])
        if node.op == "placeholder":
            values[node] = x
        elif node.target is STATE:
            values[node] = state
        elif node.target is BITS:
            values[node] = bits_by_hand(*args)
        elif node.op == "output":
            result, kept = args[0]
        else:
            values[node] = node.target(*args, **node.kwargs)
    turns = DRAWS.turns(x.numel(), dtype.itemsize)
    order = [x, result, kept]
    if turns.vector > 1:  # by the places in memory
        order = [torch.as_strided(t, (x.numel(),), (1,)) for t in order]
    for place in range(0, x.numel(), 7):
        turn, lane = divmod(place, turns.vector)
        number = offset + turn // turns.threads * turns.numbers + lane
        bits = philox_number(seed, turn % turns.threads, number)
        uniform = torch.tensor(bits).float() * 2.0**-32 + 2.0**-33
        source, value, was = (t.flatten()[place] for t in order)
        assert was.item() == (uniform < 0.75).item()
        scaled = source.float() * was * torch.tensor(1 / 0.75).float()
        assert value == scaled.to(dtype) and value.dtype == dtype


@pytest.mark.parametrize(
    ("count", "size", "vector", "numbers"),
    [(24, 2, 8, 8), (24, 4, 4, 4), (12, 2, 4, 4), (6, 2, 2, 4), (6, 4, 2, 4), (7, 4, 1, 1)],
)
def test_turns_are_of_the_widest_loads(count: int, size: int, vector: int, numbers: int) -> None:
    turns = DRAWS.turns(count, size)
    assert (turns.threads, turns.vector, turns.numbers) == (256, vector, numbers)


def bits_by_hand(state: Any, base: int, size: Any, stride: Any, *turns: int) -> Any:
    (seed, offset), (threads, vector, numbers) = state.tolist(), turns
    dense = torch.empty(torch.Size(size).numel(), dtype=torch.int64)
    for place in range(len(dense)):
        turn, lane = divmod(place, vector)
        number = offset + base + turn // threads * numbers + lane
        dense[place] = philox_number(seed, turn % threads, number)
    return torch.as_strided(dense, size, stride)


def test_results_that_nobody_reads_are_gone() -> None:
    module = drawn(lambda x: dropout(x + 1)[0], (8, 100))
    assert not [n for n in module.graph.nodes if n.target is operator.getitem]


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("mode", [None, "reduce-overhead"])
def test_on_a_gpu_numbers_are_eagers(dtype: torch.dtype, mode: str | None) -> None:
    """Values, gradients, what is dropped of both, and the generator's state, over several calls.

    No value is near 0, so that a 0 is one that was dropped.
    """
    assert dropout_draws() is not None
    near = {torch.float32: 1e-5, torch.float16: 1e-2, torch.bfloat16: 5e-2}[dtype]

    def function(x, w):
        y = torch.nn.functional.dropout(x * w, 0.1)
        z = torch.nn.functional.dropout(y.transpose(0, 1).contiguous() + 1, 0.5)
        return torch.nn.functional.dropout(z * z, 0.3), torch.rand(3, device="cuda")

    compiled = torch.compile(function, backend="irc", mode=mode, dynamic=False)
    for shape in ((128, 768), (7, 333), (3000, 1001)):
        for turn in range(3):
            torch.manual_seed(turn)
            x = (torch.rand(shape, device="cuda") + 0.5).to(dtype).requires_grad_()
            w = (torch.rand(shape, device="cuda") + 0.5).to(dtype)
            seen = []
            for run in (function, compiled):
                torch.cuda.manual_seed(100 + turn)
                torch.rand(5, device="cuda")
                result, noise = run(x, w)
                (gradient,) = torch.autograd.grad(result.float().sum(), x)
                seen.append((result, gradient, noise, torch.cuda.get_rng_state()))
            (result, gradient, *drawn), (eager, slope, *expected) = seen[1], seen[0]
            for mine, theirs in zip(drawn, expected, strict=True):
                assert torch.equal(mine, theirs)
            for mine, theirs in ((result, eager), (gradient, slope)):
                assert torch.equal(mine == 0, theirs == 0)
                torch.testing.assert_close(mine, theirs, rtol=near, atol=near)
