"""Freezing through torch.compile and irc.compile: changes of parameters, discarding, the cache."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch._dynamo
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef

import irc
from irc.cache import store as cache
from irc.frontend import backend
from irc.frontend.freezing import LIMIT, ErasedTensor, erase
from irc.ir.passes import PassManager

MESSAGE = "Trying to run Pytorch Eager Module after Dynamo Freezing"


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


def compiled(model: Any, **more: Any) -> Any:
    return torch.compile(model, backend="irc", options={"freezing": True, **more})


class Plain(nn.Module):
    """A linear, a batch norm, and a tensor that is no parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(20, 30)
        self.norm = nn.BatchNorm1d(30)
        self.shift = torch.rand(30, 1)[:, 0]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.linear(x)) + self.shift


def same(run: Any, model: nn.Module, x: torch.Tensor) -> None:
    torch.testing.assert_close(run(x), model(x), atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_changes_of_tensors_are_seen() -> None:
    model, x = Plain().eval(), torch.rand(4, 20)
    run = compiled(model)
    same(run, model, x)
    model.linear.weight.mul_(2)  # written
    same(run, model, x)
    model.linear.weight = nn.Parameter(torch.rand(30, 20))  # another object
    same(run, model, x)
    model.shift = torch.rand(30)
    same(run, model, x)
    model.load_state_dict(Plain().state_dict())
    same(run, model, x)


@torch.no_grad()
def test_tensors_that_change_all_the_time_are_not_frozen() -> None:
    model, x = Plain().eval(), torch.rand(4, 20)
    run = compiled(model)
    same(run, model, x)
    irc.metrics.reset()
    with pytest.warns(UserWarning, match="no longer frozen"):
        for _ in range(LIMIT + 3):
            model.norm.bias.add_(1)
            same(run, model, x)
    assert irc.metrics.compiles == LIMIT + 1


def test_nothing_is_frozen_with_gradients() -> None:
    model, x = Plain().eval(), torch.rand(4, 20)
    with backend.recording() as made:
        run = compiled(model)
        run(x).sum().backward()
    assert model.linear.weight.grad is not None
    assert len(made[0].imported.module.lookup("main").block.arguments) > 5
    with torch.no_grad(), backend.recording() as made:
        same(run, model, x)
    assert len(made[0].imported.module.lookup("main").block.arguments) == 1


@torch.no_grad()
def test_training_statistics_stay_arguments() -> None:
    model, other = Plain(), Plain()
    other.load_state_dict(model.state_dict())
    other.shift = model.shift
    run = compiled(model)
    for seed in range(3):
        x = torch.rand(4, 20, generator=torch.Generator().manual_seed(seed))
        torch.testing.assert_close(run(x), other(x), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(model.norm.running_mean, other.norm.running_mean)
    assert model.norm.num_batches_tracked == 3


@torch.no_grad()
def test_one_program_for_all_sizes() -> None:
    model = Plain().eval()
    irc.metrics.reset()
    run = torch.compile(model, backend="irc", options={"freezing": True}, dynamic=True)
    for rows in (4, 7, 9):
        same(run, model, torch.rand(rows, 20))
    assert irc.metrics.compiles == 1


# -- discarding


@torch.no_grad()
def test_discarded_tensors_are_freed_and_refused() -> None:
    model, x = Plain().eval(), torch.rand(4, 20)
    expected = model(x)
    tensors = (*model.parameters(), model.shift, model.norm.running_var)
    references = [weakref.ref(t) for t in tensors]
    del tensors
    run = compiled(model, freezing_discard_parameters=True)
    for _ in range(3):
        torch.testing.assert_close(run(x), expected, atol=1e-5, rtol=1e-5)
    assert all(r() is None for r in references)
    assert isinstance(model.linear.weight, nn.Parameter)
    assert model.linear.weight.shape == (30, 20) and model.linear.weight.dtype == torch.float32
    assert "ErasedTensor([30, 20]" in repr(model.linear.weight)
    for use in (lambda: model(x), lambda: model.linear.weight + 1, model.state_dict):
        with pytest.raises(RuntimeError, match=MESSAGE):
            use()


@torch.no_grad()
def test_discarded_tensors_may_be_given_again() -> None:
    model, x = nn.Linear(20, 30), torch.rand(4, 20)
    run = compiled(model, freezing_discard_parameters=True)
    run(x)
    model.weight = nn.Parameter(torch.rand(30, 20))
    with pytest.raises(RuntimeError, match="all have to be"):
        run(x)
    model.bias = nn.Parameter(torch.rand(30))
    expected = model(x)
    torch.testing.assert_close(run(x), expected)
    with pytest.raises(RuntimeError, match=MESSAGE):
        model(x)


@torch.no_grad()
def test_a_tied_parameter_is_freed_in_all_its_modules() -> None:
    first, second = nn.Linear(20, 20), nn.Linear(20, 20)
    second.weight = first.weight
    model, x = nn.Sequential(first, second), torch.rand(4, 20)
    expected = model(x)
    reference = weakref.ref(first.weight)
    run = compiled(model, freezing_discard_parameters=True)
    torch.testing.assert_close(run(x), expected)
    torch.testing.assert_close(run(x), expected)
    assert reference() is None
    assert first.weight is second.weight


def test_erasing_leaves_what_no_module_has() -> None:
    alone = torch.rand(3)
    assert erase([alone, None]) == [alone, None]
    module = nn.Linear(2, 2)
    weight = module.weight
    (stand_in,) = erase([weight])
    assert module.weight is stand_in and isinstance(stand_in, ErasedTensor)
    assert torch.isfinite(weight).all()  # the tensor itself is as it was


@torch.no_grad()
@pytest.mark.parametrize("discard", [False, True])
def test_parameters_that_dynamo_lifts_into_the_graph(discard: bool) -> None:
    model, x = Plain().eval(), torch.rand(4, 20)
    expected = model(x)
    with torch._dynamo.config.patch(prepare_freezing=True), backend.recording() as made:
        run = compiled(model, freezing_discard_parameters=discard)
        for _ in range(3):
            torch.testing.assert_close(run(x), expected, atol=1e-5, rtol=1e-5)
    assert len(made) == 1
    assert len(made[0].imported.module.lookup("main").block.arguments) == 1
    if discard:
        with pytest.raises(RuntimeError, match=MESSAGE):
            model(x)


# -- irc.compile


@pytest.mark.parametrize("discard", [False, True])
def test_ahead_of_time(discard: bool) -> None:
    model, x = Plain().eval(), torch.rand(4, 20)
    expected = model(x).detach()
    chosen = irc.Options(freezing=True, freezing_discard_parameters=discard)
    run = irc.compile(model, (x,), options=chosen)
    torch.testing.assert_close(run(x), expected, atol=1e-5, rtol=1e-5)
    assert [a.type.shape for a in run.module.lookup("main").block.arguments] == [(4, 20)]
    if discard:
        with pytest.raises(RuntimeError, match=MESSAGE):
            model(x)
        torch.testing.assert_close(run(x), expected, atol=1e-5, rtol=1e-5)
    else:
        with torch.no_grad():
            model.linear.weight.mul_(2)
        torch.testing.assert_close(run(x), model(x).detach(), atol=1e-5, rtol=1e-5)


# -- the cache


@torch.no_grad()
def test_a_hit_runs_no_pass_and_holds_no_weight(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = cache.DiskCache(tmp_path)
    monkeypatch.setattr("irc.runtime.program_cache.shared_cache", lambda: store)
    model, x = Plain().eval(), torch.rand(4, 20)
    model.norm.running_mean.uniform_()
    weights = [model.linear.weight.numpy().tobytes(), (model.linear.weight * 3).numpy().tobytes()]
    irc.metrics.reset()
    same(compiled(model), model, x)
    assert irc.metrics.cache_puts == 1
    entries = b"".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())
    assert entries and not any(w[100:164] in entries for w in weights)

    def refuse(*_: Any) -> None:
        raise AssertionError("a pass ran")

    torch._dynamo.reset()
    with monkeypatch.context() as patch:
        patch.setattr(PassManager, "_run_pass", refuse)
        same(compiled(model), model, x)
    assert irc.metrics.cache_hits == 1
    # Other weights are another program.
    model.linear.weight.add_(1)
    torch._dynamo.reset()
    same(compiled(model), model, x)
    assert irc.metrics.cache_hits == 1


@torch.no_grad()
def test_a_write_that_torch_does_not_count_is_seen_by_the_next_compile() -> None:
    model, x = Plain().eval(), torch.rand(4, 20)
    same(compiled(model), model, x)
    model.norm.bias.data.add_(1.0)
    model.linear.weight.data.mul_(2.0)
    torch._dynamo.reset()
    same(compiled(model), model, x)


@pytest.mark.fault("V11")
@torch.no_grad()
def test_other_memory_is_seen() -> None:
    """`.data` of a parameter is another tensor's memory, perhaps at an address that was its own."""
    model, x = Plain().eval(), torch.rand(4, 20)
    run = compiled(model)
    same(run, model, x)
    irc.metrics.reset()
    vector = nn.utils.parameters_to_vector(model.parameters())
    nn.utils.vector_to_parameters(vector * 0.5, model.parameters())
    same(run, model, x)
    same(run, model, x)
    assert irc.metrics.compiles == 1
    for _ in range(3):
        model.linear.weight.data = torch.rand(30, 20)
        model.linear.weight.data = torch.rand(30, 20)
        same(run, model, x)
    # The same memory from another element on.
    wide = torch.rand(31, 20)
    model.linear.weight.data = wide[:30]
    same(run, model, x)
    model.linear.weight.data = wide[1:]
    same(run, model, x)


@pytest.mark.fault("V11")
def test_memory_of_dead_parameters_is_not_held() -> None:
    model, x = Plain().eval(), torch.rand(4, 20)
    run = compiled(model)
    with torch.no_grad():
        same(run, model, x)
        memory = StorageWeakRef(model.linear.weight.untyped_storage())
        model.linear.weight = nn.Parameter(torch.rand(30, 20))
        same(run, model, x)
    assert memory.expired()


@pytest.mark.fault("V11")
@pytest.mark.parametrize("ahead", [False, True])
def test_tensors_without_a_counter_are_not_frozen(ahead: bool) -> None:
    with torch.inference_mode():
        model, x = Plain().eval(), torch.rand(4, 20)
        with pytest.warns(UserWarning, match="made under torch.inference_mode"):
            if ahead:
                run: Any = irc.compile(model, (x,), options=irc.Options(freezing=True))
            else:
                run = compiled(model)
            same(run, model, x)
        model.linear.weight.mul_(2)
        same(run, model, x)
        model.norm.running_mean.add_(1)  # type: ignore[operator, union-attr]
        same(run, model, x)
