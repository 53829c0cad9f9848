"""The pass freeze: which arguments become constants, and how the others are numbered."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import irc
from irc.dialects import graph
from irc.interp.core import run
from irc.ir.passes import PassContext, PassManager
from irc.passes.frozen.freeze import freeze_arguments, known_values
from tests.passes.frozen.freezing_support import frozen_program, known_program, of_class


class Sharing(nn.Module):
    """Writes `count`, returns a view of `seen`, reads `weight`."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(4, 3))
        self.seen = nn.Parameter(torch.rand(5))
        self.register_buffer("count", torch.zeros(3))

    def forward(self, x: torch.Tensor) -> Any:
        self.count.view(3, 1)[1:].add_(1)
        return x @ self.weight.t(), self.seen[1:]


def test_what_is_read_alone_becomes_a_constant() -> None:
    model, x = nn.Linear(3, 4), torch.rand(2, 3)
    module, context = frozen_program(model, x)
    function: Any = module.lookup("main")
    assert [a.type.shape for a in function.block.arguments] == [(2, 3)]
    assert list(function.attributes["frozen"]) == [0, 1]
    assert len(function.arg_info) == 1 and function.arg_info[0].get("name").value == "arg0"
    assert context.statistics["freeze", "frozen"] == 2
    (got,) = run(module, x)
    torch.testing.assert_close(got, model(x).detach())


@pytest.mark.parametrize("functional", [False, True])
def test_what_is_written_or_returned_stays(functional: bool) -> None:
    model, x = Sharing(), torch.rand(2, 3)
    module = known_program(model, x)
    context = PassContext()
    passes = "functionalize,freeze" if functional else "freeze"
    PassManager.parse(passes, verify="each").run(module, context)
    function: Any = module.lookup("main")
    assert list(function.attributes["frozen"]) == [0]
    remarks = [r.message for r in context.remarks]
    assert sum("stays an argument" in text for text in remarks) == 2
    names = [entry.get("name").value for entry in function.arg_info]
    assert names == ["seen", "count", "arg0"]
    count = torch.zeros(3)
    got = run(module, model.seen.detach(), count, x)
    torch.testing.assert_close(got[0], (x @ model.weight.t()).detach())
    assert count.tolist() == [0.0, 1.0, 1.0]


def test_references_by_position_are_renumbered() -> None:
    text = """
    func.func @main(%w: tensor<2xf32> {irc.value = dense<[1.0, 2.0]> : tensor<2xf32>},
        %x: tensor<2xf32>, %v: tensor<2xf32>)
        -> (tensor<2xf32> {irc.alias_of = 2 : i64}) attributes {level = "graph"} {
      %y = graph.add %x, %w : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      graph.update_input %y {argument = 1 : i64} : (tensor<2xf32>)
      func.return %v : tensor<2xf32>
    }
    """
    module = irc.parse(text)
    function: Any = module.lookup("main")
    freeze_arguments(function, known_values(function))
    (update,) = of_class(module, graph.UpdateInput)
    assert update.argument == 0
    assert function.result_info[0].get("alias_of").value == 1
    x = torch.zeros(2)
    run(module, x, torch.ones(2))
    assert x.tolist() == [1.0, 2.0]


def test_an_argument_in_a_group_of_a_written_one_stays() -> None:
    text = """
    func.func @main(%w: tensor<2xf32> {irc.value = dense<[1.0, 2.0]> : tensor<2xf32>},
        %x: tensor<2xf32>) -> tensor<2xf32>
        attributes {level = "graph", aliases = [[0 : i64, 1 : i64]]} {
      %y = graph.add %x, %w : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      graph.update_input %y {argument = 1 : i64} : (tensor<2xf32>)
      func.return %y : tensor<2xf32>
    }
    """
    module = irc.parse(text)
    PassManager.parse("freeze").run(module)
    assert not of_class(module, graph.Constant)


def test_sizes_that_are_symbols_stay_symbols() -> None:
    model = nn.Linear(3, 4)
    module, _ = frozen_program(model, torch.rand(2, 3), dynamic=True)
    for rows in (2, 7):
        x = torch.rand(rows, 3)
        torch.testing.assert_close(run(module, x)[0], model(x).detach())
