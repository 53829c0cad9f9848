"""`func.call`: its verifier, its meaning, and that no host program has one."""

from __future__ import annotations

import pytest
import torch

import irc
from irc.ir.diagnostics import InvalidIR
from irc.pipeline import stages
from tests.dialects.verifying import check

pytestmark = pytest.mark.fault("V14")
T = "tensor<2xf32>"
CALLED = f"""
func.func @g(%a: {T}) -> {T} attributes {{level = "graph"}} {{
  %b = graph.abs %a : ({T}) -> {T}
  func.return %b : {T}
}}
"""


def program(call: str, before: str = "") -> str:
    return f"""{CALLED}
func.func @main(%x: {T}, %w: {T}) -> {T} attributes {{level = "graph"}} {{
  {before}
  {call}
  func.return %z : {T}
}}"""


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (f"%z = func.call @g(%w) : ({T}) -> {T}", None),
        (f"%z = func.call @h(%w) : ({T}) -> {T}", "there is no function @h"),
        (f"%z = func.call @g(%w, %w) : ({T}, {T}) -> {T}", "@g has 1 arguments, not 2"),
        (f"%z = func.call @main(%w, %w) : ({T}, {T}) -> {T}", "there is no recursion"),
        (f"%c = graph.cast %w : ({T}) -> tensor<2xf64>\n"
         f"%z = func.call @g(%c) : (tensor<2xf64>) -> {T}", "argument 0 of @g is"),
        (f"%c = func.call @g(%w) : ({T}) -> tensor<2xf64>\n"
         f"%z = graph.cast %c : (tensor<2xf64>) -> {T}", "result 0 of @g is"),
    ],
)  # fmt: skip
def test_the_function_exists_and_fits(call: str, error: str | None) -> None:
    check(program(call), error)


def test_the_callee_keeps_its_arguments_from_the_callers_updates() -> None:
    update = f"%y = graph.neg %x : ({T}) -> {T}\n"
    update += f"graph.update_input %y {{argument = 0 : i64}} : ({T})"
    module = irc.parse(program(f"%z = func.call @g(%w) : ({T}) -> {T}", update))
    x, w = torch.tensor([1.0, 2.0]), torch.tensor([-5.0, 6.0])
    (z,) = irc.run(module, x, w)
    assert z.tolist() == [5.0, 6.0] and w.tolist() == [-5.0, 6.0] and x.tolist() == [-1.0, -2.0]


def test_a_host_program_has_no_calls() -> None:
    module = irc.parse(program(f"%z = func.call @g(%w) : ({T}) -> {T}"))
    with pytest.raises(InvalidIR, match="func.call.*it has no place in a host program"):
        for stage in stages():
            irc.PassManager.parse(stage).run(module)
