"""Saved tensors that are joined: values, what autograd sees, and what is left alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch._dynamo import compiled_autograd
from torch._subclasses.fake_tensor import FakeTensorMode

from irc.frontend import backend
from irc.frontend.fx import joined_saves
from irc.frontend.fx.joined_saves import JoinLimits
from irc.frontend.fx.saved_activations import JoinedParts
from irc.frontend.importing.importer import Given, Imported


def limit_to(monkeypatch: pytest.MonkeyPatch, limits: JoinLimits) -> None:
    monkeypatch.setattr(backend, "joined_limits", lambda *_: limits)


@pytest.fixture(autouse=True)
def counts(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many tensors each partition joins, which happens on the CPU here."""
    found: list[int] = []
    join = joined_saves.join_saved

    def counted(*arguments: Any) -> int:
        found.append(join(*arguments))
        return found[-1]

    monkeypatch.setattr(joined_saves, "join_saved", counted)
    limit_to(monkeypatch, JoinLimits(1 << 10))
    torch._dynamo.reset()
    yield found
    compiled_autograd.reset()
    torch._dynamo.reset()


def model(dtype: torch.dtype = torch.float32) -> nn.Module:
    torch.manual_seed(0)
    layers = nn.Linear(6, 9), nn.LayerNorm(9), nn.GELU(), nn.Linear(9, 5), nn.Tanh()
    return nn.Sequential(*layers).to(dtype)


def check(own: nn.Module, call: Any, expected: nn.Module, rows: int = 4, **close: float) -> None:
    dtype = next(own.parameters()).dtype
    xs = [torch.randn(rows, 6, generator=torch.manual_seed(rows)).to(dtype) for _ in range(2)]
    xs = [xs[0].clone().requires_grad_() for _ in xs]
    for x, run in zip(xs, (call, expected), strict=True):
        run(x).float().square().sum().backward()
    torch.testing.assert_close(xs[0].grad, xs[1].grad, **close)
    for p, q in zip(own.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(p.grad, q.grad, **close)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gradients_are_eagers(dtype, counts):
    own, expected = model(dtype), model(dtype)
    call = torch.compile(own, backend="irc")
    close = {} if dtype is torch.float32 else dict(rtol=3e-2, atol=3e-2)
    for _ in range(2):
        check(own, call, expected, **close)
    assert len(counts) == 1 and counts[0] >= 3


def test_autograd_keeps_one_tensor_and_hooks_see_it():
    own, expected = model(), model()
    call, packed = torch.compile(own, backend="irc"), []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        packed.append(tensor)
        return tensor.clone()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        check(own, call, expected)
    blocks = [t for t in packed if t.dtype is torch.uint8]
    assert len(blocks) == 1 and blocks[0].dim() == 1


class Deep(nn.Module):
    """Layers whose activations the backward reads one after another, the last one's first."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x).sin() * x.cos()
        return x


@pytest.mark.parametrize("most", [1, 2, 3, 8])
def test_what_is_read_at_one_time_is_in_one_array(most, monkeypatch):
    limit_to(monkeypatch, JoinLimits(1 << 10, most, 1024))
    own, expected = Deep(), Deep()
    call, packed = torch.compile(own, backend="irc"), []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        packed.append(tensor)
        return tensor.clone()

    for _ in range(2):
        packed.clear()
        own.zero_grad(), expected.zero_grad()
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            check(own, call, expected)
        blocks = [t for t in packed if t.dtype is torch.uint8]
        total = sum(map(torch.numel, blocks))
        assert len(blocks) == min(most, total // 1024) and total // 1024 > 3
        assert all(t.numel() <= total / len(blocks) + 512 for t in blocks)


def test_blocks_follow_the_last_use():
    """Not the order in which the forward makes them; a view's use is one of what it views."""
    with FakeTensorMode() as mode:
        graph = torch.fx.Graph()
        taken = [graph.placeholder(name) for name in "abcdef"]
        for node in taken:
            node.meta["val"] = mode.from_tensor(torch.empty(256))
        viewed = graph.call_function(torch.ops.aten.view.default, (taken[0], [16, 16]))
        for number in (4, 2, 5, 1, 3):
            graph.call_function(torch.ops.aten.sin.default, (taken[number],))
        graph.call_function(torch.ops.aten.sin.default, (viewed,))
    names = {node.name: node for node in taken}
    limits = JoinLimits(1 << 10, 3, 1024)
    blocks = joined_saves._blocks(taken, names, graph, limits)
    assert ["".join(node.name for node in block) for block in blocks] == ["ce", "bf", "ad"]
    one = joined_saves._blocks(taken, names, graph, JoinLimits(1 << 10, 3, 1 << 20))
    assert [len(block) for block in one] == [6]


def test_positions_are_the_callers():
    places = {"a": (0, 0, 9), "b": (0, 0, 9), "c": (1, 0, 9), "d": (1, 0, 9), "e": (1, 0, 9)}
    parts = JoinedParts(((1, 2), (3, 3)), arguments=places)
    held = parts.held(Imported(None, (Given(3), 0, Given(7), Given(0)), (3, 7)))  # type: ignore[arg-type]
    assert held.outputs == (Given(2), 0, Given(4), Given(0)) and held.absent == (2, 4)
    results = JoinedParts(((1, 2), (3, 3)), dict.fromkeys((1, 2, 4, 5, 6), (0, 0)))
    assert results.shifted(frozenset({0, 1, 2, 3, 4})) == {0, 3, 7}
    entries = (0, 1, 2, Given(8), 3, 4, 5, 6)
    held = results.held(Imported(None, entries))  # type: ignore[arg-type]
    assert held.outputs == (0, 1, Given(8), 2, 3)


def test_arrays_go_when_they_have_been_read(monkeypatch):
    """As the native program drops what it was given: after the step that reads it last."""
    limit_to(monkeypatch, JoinLimits(1 << 10, 3, 512))
    with backend.recording() as compiled:
        torch.compile(Deep(), backend="irc")(torch.randn(4, 6)).sum().backward()
    (backward,) = [each for each in compiled if each.stage == "backward"]
    function = backward.imported.module.lookup("main")
    operations = list(function.block.ops)
    blocks: dict[int, list[Any]] = {}
    for argument, entry in zip(function.block.arguments, function.arg_info, strict=True):
        if entry.get("block") is not None:
            blocks.setdefault(entry.get("block").value, []).append(argument)
    last = {
        number: max(operations.index(user) for argument in members for user in argument.users)
        for number, members in blocks.items()
    }
    assert len(last) == 3 and len(set(last.values())) == 3
    assert min(last.values()) < len(operations) / 2


def test_a_graph_may_be_walked_twice():
    own, expected = model(), model()
    x = torch.randn(4, 6)
    with torch._functorch.config.patch(donated_buffer=False):
        loss = torch.compile(own, backend="irc")(x).square().sum()
        for _ in range(2):
            loss.backward(retain_graph=True)
    for _ in range(2):
        expected(x).square().sum().backward()
    for p, q in zip(own.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(p.grad, q.grad)


def test_compiled_autograd_traces_the_parts():
    own, expected = model(), model()
    call = torch.compile(own, backend="irc")
    with compiled_autograd._enable(torch.compile(backend="irc", fullgraph=True)):
        check(own, call, expected)


def test_changing_sizes_and_large_tensors_stay_apart(counts):
    own, expected = model(), model()
    call = torch.compile(own, backend="irc", dynamic=True)
    for rows in (4, 7, 4):
        check(own, call, expected, rows)
    torch._dynamo.reset()
    check(own, torch.compile(own, backend="irc"), expected, 300)
    assert counts == [0, 0]


def test_what_a_program_lays_out_itself_stays_apart(counts):
    def images(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.conv2d(x.sin(), w).tanh().sum()

    x, w = torch.randn(1, 2, 5, 5, requires_grad=True), torch.randn(3, 2, 3, 3, requires_grad=True)
    torch.compile(images, backend="irc")(x, w).backward()
    value = torch.empty(2, 1025)
    assert counts == [0] and joined_saves._is_long_and_odd(value)
    assert not joined_saves._is_long_and_odd(torch.empty(2, 1056))
    assert not joined_saves._is_long_and_odd(torch.empty(2, 1023))


def test_what_backward_returns_is_a_copy_or_apart():
    def f(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x.sin() * y).sum() + (x.cos() * y.exp()).sum()

    xs = [torch.randn(3, 4, generator=torch.manual_seed(1)).requires_grad_() for _ in range(2)]
    ys = [torch.randn(3, 4, generator=torch.manual_seed(2)).requires_grad_() for _ in range(2)]
    torch.compile(f, backend="irc")(xs[0], ys[0]).backward()
    f(xs[1], ys[1]).backward()
    torch.testing.assert_close(xs[0].grad, xs[1].grad)
    torch.testing.assert_close(ys[0].grad, ys[1].grad)


def test_graphs_of_cuda_make_no_tensors_anyway(monkeypatch):
    from irc.options.options import parse_options

    monkeypatch.undo()
    graph = torch.fx.symbolic_trace(lambda x: x)
    plain, graphs = parse_options(None, {"target": "triton"}), {"cuda_graphs": True}
    graphed = parse_options(None, {"target": "triton", **graphs})
    assert backend.joined_limits(plain, graph).bytes > 0
    for nothing in (graphed, parse_options(None, None)):
        assert backend.joined_limits(nothing, graph) == joined_saves.NOTHING
    told = "joined_bytes = 1000, joined_blocks = 5, joined_least = 7"
    chosen = parse_options(None, {"target": f"#irc.target<sm_90, {told}>"})
    assert backend.joined_limits(chosen, graph) == JoinLimits(1000, 5, 7)


class Block(nn.Module):
    """Attention, dropout and a linear layer with its activation."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.over = nn.LayerNorm(64), nn.LayerNorm(64)
        self.qkv, self.out = nn.Linear(64, 192), nn.Linear(64, 64)
        self.up, self.down = nn.Linear(64, 128), nn.Linear(128, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (
            t.view(*t.shape[:2], 2, 32).transpose(1, 2) for t in self.qkv(self.norm(x)).chunk(3, -1)
        )
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + nn.functional.dropout(self.out(y.transpose(1, 2).reshape(x.shape)), 0.2)
        return x + self.down(nn.functional.gelu(self.up(self.over(x))))


@pytest.mark.gpu
@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_on_a_gpu(dtype, slow, counts, monkeypatch):
    limit_to(monkeypatch, JoinLimits(4 << 20))
    if slow:
        monkeypatch.setenv("IRC_FORCE_SLOW_HOST", "1")
    torch.manual_seed(0)
    own = nn.Sequential(Block(), Block()).cuda().to(dtype)
    expected = nn.Sequential(Block(), Block()).cuda().to(dtype)
    expected.load_state_dict(own.state_dict())
    call = torch.compile(own, backend="irc")
    xs = [torch.randn(2, 40, 64, device="cuda", dtype=dtype).requires_grad_()]
    xs.append(xs[0].detach().clone().requires_grad_())
    packed: list[torch.Tensor] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        packed.append(tensor)
        return tensor

    for turn in range(3):
        for x, module, run in zip(xs, (own, expected), (call, expected), strict=True):
            module.zero_grad()
            x.grad = None
            torch.manual_seed(turn)
            with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
                y = run(x)
            y.float().square().mean().backward()
        close = dict(rtol=1e-3, atol=1e-4) if dtype is torch.float32 else dict(rtol=5e-2, atol=5e-3)
        torch.testing.assert_close(xs[0].grad, xs[1].grad, **close)
        for p, q in zip(own.parameters(), expected.parameters(), strict=True):
            torch.testing.assert_close(p.grad, q.grad, **close)
    assert counts == [counts[0]] and counts[0] >= 10
    assert sum(t.dtype is torch.uint8 and t.dim() == 1 for t in packed) == 3
