"""Activations that only the backward program reads may be padded; all that others see stays."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import fx

import irc
from irc.frontend.backend import Compiled, recording
from irc.frontend.fx.saved_activations import take_strides

PADDED = {"comprehensive_padding": True}
ROW = 1056  # 1031 rounded up to 128 bytes of f32


def trained(
    function: Callable[..., Any], args: tuple[torch.Tensor, ...], **options: Any
) -> list[Compiled]:
    """The programs of a step, whose outputs and gradients are compared with eager's."""
    torch._dynamo.reset()

    def step(call: Callable[..., Any]) -> list[torch.Tensor]:
        given = [a.clone().requires_grad_(a.is_floating_point()) for a in args]
        found = call(*given)
        outputs = list(found) if isinstance(found, tuple) else [found]
        total = sum(o.square().sum() for o in outputs if o.requires_grad)
        wanted = [g for g in given if g.requires_grad]
        return [*outputs, *torch.autograd.grad(total, wanted)]

    expected = step(function)
    with recording() as made:
        got = step(torch.compile(function, backend="irc", options={**PADDED, **options}))
    for a, b in zip(expected, got, strict=True):
        torch.testing.assert_close(b, a, rtol=1e-4, atol=1e-4)
        assert b.stride() == a.stride()
    return made


def strides(made: list[Compiled], stage: str, part: str) -> list[tuple[int, ...]]:
    """The strides of the results (or arguments) of the program of a stage."""
    (program,) = [m for m in made if m.stage == stage]
    return [tuple(e.strides or ()) for e in getattr(program.executable.info, part)]


def hidden(x: torch.Tensor, w: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Two products with something between them that the backward wants."""
    h = torch.sigmoid(x @ w)
    return (h * torch.exp(-h)) @ v


def returned_too(x: torch.Tensor, w: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """What is saved is also a result."""
    h = torch.sigmoid(x @ w)
    return h, (h * 2) @ v


def seen_as_a_view(x: torch.Tensor, w: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """A view of what is saved is a result."""
    h = torch.sigmoid(x @ w)
    return h[:2], (h * 2) @ v


def by_place(x: torch.Tensor, w: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Elements read by their places in the storage."""
    h = torch.sigmoid(x @ w)
    return h.as_strided((4, 1031), (1031, 1), 1031).exp() @ v


def in_three_dimensions(x: torch.Tensor, w: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Saved through views."""
    h = torch.tanh(x @ w).view(2, 4, 1031)
    return (torch.softmax(h, -1).transpose(0, 1) * h.transpose(0, 1)).sum(1) @ v


ARGS = (torch.randn(8, 33), torch.randn(33, 1031) / 6, torch.randn(1031, 17) / 32)


def test_saved_rows_keep_their_padding() -> None:
    made = trained(hidden, ARGS)
    assert (ROW, 1) in strides(made, "forward", "results")
    assert (ROW, 1) in strides(made, "backward", "arguments")
    assert strides(made, "forward", "results")[0] == (17, 1)


@pytest.mark.parametrize("function", [returned_too, seen_as_a_view, by_place, in_three_dimensions])
def test_results_and_gradients_are_eagers(function: Callable[..., Any]) -> None:
    made = trained(function, ARGS)
    forward = strides(made, "forward", "results")
    assert sorted(f for f in forward if ROW in f) == sorted(
        a for a in strides(made, "backward", "arguments") if ROW in a
    )


def test_what_is_returned_is_not_padded() -> None:
    assert (ROW, 1) not in strides(trained(returned_too, ARGS), "forward", "results")


def test_without_padding_all_is_dense() -> None:
    made = trained(hidden, ARGS, comprehensive_padding=False)
    assert not any(ROW in s for s in strides(made, "forward", "results"))


def test_stored_programs_agree() -> None:
    for _ in range(2):
        assert (ROW, 1) in strides(trained(hidden, ARGS), "backward", "arguments")


def test_symbolic_sizes_stay_dense() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(hidden, backend="irc", dynamic=True, options=PADDED)
    for rows in (8, 5):
        given = (torch.randn(rows, 33), *ARGS[1:])
        torch.testing.assert_close(compiled(*given), hidden(*given), rtol=1e-4, atol=1e-4)


def test_two_backward_passes_through_one_graph() -> None:
    torch._dynamo.reset()
    given = [a.clone().requires_grad_() for a in ARGS]
    out = torch.compile(hidden, backend="irc", options=PADDED)(*given)
    first = torch.autograd.grad(out.sum(), given, retain_graph=True)
    second = torch.autograd.grad(out.sum(), given)
    for a, b in zip(first, second, strict=True):
        assert torch.equal(a, b)


def test_a_graph_that_reads_by_place_gets_the_old_strides() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.as_strided(x, (3, 5), (5, 1), 5).clone()

    traced = torch.empty(4, 5)
    graph = fx.Graph()
    x = graph.placeholder("x")
    x.meta["val"] = traced
    read = graph.call_function(torch.ops.aten.as_strided.default, (x, [3, 5], [5, 1], 5))
    graph.output((read,))
    module = fx.GraphModule({}, graph)
    given = torch.arange(32.0).reshape(4, 8)[:, :5]
    take_strides(module, [given])
    module.recompile()
    assert module.graph.find_nodes(op="placeholder")[0].meta["val"] is given
    assert torch.equal(module(given)[0], function(given.contiguous()))


def test_the_pass_says_what_saved_results_have() -> None:
    text = """
func.func @main(%x: tensor<[4, 1031] x f32, strides [1031, 1]>) -> (tensor<[4, 1031] x f32, strides [1031, 1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1031, 1]>}, tensor<[4, 1031] x f32, strides [1031, 1]> {irc.offset = #sym<0>, irc.saved, irc.strides = #sym.dims<[1031, 1]>}) attributes {level = "layout"} {
  %a = graph.exp %x : (tensor<[4, 1031] x f32, strides [1031, 1]>) -> tensor<[4, 1031] x f32, strides [1031, 1]>
  %b = graph.neg %a : (tensor<[4, 1031] x f32, strides [1031, 1]>) -> tensor<[4, 1031] x f32, strides [1031, 1]>
  func.return %a, %b : tensor<[4, 1031] x f32, strides [1031, 1]>, tensor<[4, 1031] x f32, strides [1031, 1]>
}
"""  # noqa: E501
    module = irc.parse(text)
    irc.PassManager.parse("pad-strides", verify="each").run(module)
    function = module.lookup("main")
    assert [v.type.strides for v in function.return_op.operands] == [(1031, 1), (ROW, 1)]
    assert tuple(function.result_info[1].get("strides")) == (ROW, 1)


def test_a_backward_that_another_thread_compiles_is_recorded():
    """A GPU's autograd runs, and so compiles, backwards on a thread of its own."""
    x = torch.randn(4, requires_grad=True)
    torch._dynamo.reset()
    with recording() as compiled:
        made = torch.compile(lambda x: (x.sin() * x).sum(), backend="irc")(x)
        thread = threading.Thread(target=made.backward)
        thread.start()
        thread.join()
    assert [entry.stage for entry in compiled] == ["forward", "backward"]
