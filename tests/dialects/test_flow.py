"""The flow dialect: each rule of its verifier by a program that breaks it, and its meaning on
every level."""

from __future__ import annotations

import pytest
import torch

import irc
from irc.ir.diagnostics import InvalidIR
from irc.ir.passes import PassManager
from irc.pipeline import stages
from irc.runtime import build
from tests.backends import needs_backend
from tests.dialects.verifying import check

T, XS = "tensor<4xf32>", "tensor<6x4xf32>"
FUNCTIONS = f"""
func.func @exp(%x: {T}) -> {T} attributes {{level = "graph"}} {{
  %y = graph.exp %x : ({T}) -> {T}
  func.return %y : {T}
}}
func.func @same(%x: {T}) -> {T} attributes {{level = "graph"}} {{
  func.return %x : {T}
}}
func.func @wide(%x: {T}) -> tensor<4xf64> attributes {{level = "graph"}} {{
  %y = graph.cast %x : ({T}) -> tensor<4xf64>
  func.return %y : tensor<4xf64>
}}
func.func @step(%c: {T}, %x: {T}) -> ({T}, {T}) attributes {{level = "graph"}} {{
  %y = graph.add %x, %c : ({T}, {T}) -> {T}
  func.return %y, %c : {T}, {T}
}}
func.func @small(%x: {T}) -> tensor<i1> attributes {{level = "graph"}} {{
  %m = graph.reduce %x {{combiner = "max", dims = array<i64: 0>}} : ({T}) -> tensor<f32>
  %l = graph.full {{value = 3.0 : f32}} : tensor<f32>
  %t = graph.lt %m, %l : (tensor<f32>, tensor<f32>) -> tensor<i1>
  func.return %t : tensor<i1>
}}
func.func @twice(%x: {T}) -> {T} attributes {{level = "graph"}} {{
  %y = graph.add %x, %x : ({T}, {T}) -> {T}
  func.return %y : {T}
}}
"""
COND = f"%y = flow.cond %c, %x {{otherwise = @same, then = @exp}} : (i1, {T}) -> {T}"
WHILE = (
    f"%y = flow.while %x {{body = @twice, carried = 1 : i64, condition = @small}} : ({T}) -> {T}"
)
SCAN = (
    "%y, %z = flow.scan %x, %xs {carried = 1 : i64, combine = @step, scanned = 1 : i64} : "
    f"({T}, {XS}) -> ({T}, {XS})"
)


def program(body: str, result: str = "%y", kind: str = T) -> str:
    return (
        f"func.func @main(%c: i1, %x: {T}, %xs: {XS}) -> {kind} "
        f'attributes {{level = "graph"}} {{\n{body}\nfunc.return {result} : {kind}\n}}\n{FUNCTIONS}'
    )


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (COND, None),
        (COND.replace("@exp", "@none"), "there is no function @none in the module, but nothing"),
        (COND.replace("@exp", "@wide"), "result 0 of @wide is tensor<4xf64>, not tensor<4xf32>"),
        (COND.replace("@exp", "@step"), "@step has 2 arguments, not 1"),
        (COND.replace("@exp", "@main"), "@main calls the function that this stands in"),
        (WHILE, None),
        (WHILE.replace("@small", "@same"), "@same gives .*, not one i1 or tensor of one"),
        (WHILE.replace("@twice", "@wide"), "result 0 of @wide is tensor<4xf64>"),
        (WHILE.replace("carried = 1", "carried = 2"), "2 do not fit 1 operands"),
        (WHILE.replace("carried = 1", "carried = 0"), "@twice has 1 results, not 0"),
        (WHILE.replace("carried", "stacked, carried"), "result 0 is tensor<f32>, not"),
        (SCAN, None),
        (SCAN.replace("@step", "@exp"), "@exp has 1 arguments, not 2"),
        (SCAN.replace("scanned = 1", "scanned = 0"), "there is no array to scan"),
        (SCAN.replace("carried = 1", "carried = 2"), "2 and 1 do not fit 2 operands"),
        (SCAN.replace(f"-> ({T}, {XS})", f"-> ({T}, tensor<5x4xf32>)"), "of another length"),
        (SCAN.replace(f"-> ({T}, {XS})", f"-> ({T}, tensor<f32>)"), "has no first dimension"),
    ],
)  # fmt: skip
def test_rules(body, error):
    check(program(body), error)


def test_a_condition_is_a_truth_value():
    text = program(COND).replace("%c: i1", "%c: i64").replace("(i1, ", "(i64, ")
    check(text, "the condition is i64, not i1")


@pytest.mark.parametrize("body", [COND, WHILE, SCAN])
def test_text_round_trip(body):
    module = irc.parse(program(body))
    assert str(irc.parse(str(module))) == str(module)


def test_an_unused_operation_goes_unless_it_has_effects():
    for flag, left in (("", 0), ("effects, ", 1)):
        body = COND.replace("otherwise", f"{flag}otherwise")
        module = irc.parse(program(body, "%x"))
        PassManager.parse("dce").run(module)
        assert sum(op.name == "flow.cond" for op in module.walk()) == left


def expected(body: str, condition: bool, x: torch.Tensor, xs: torch.Tensor) -> torch.Tensor:
    if body is COND:
        return x.exp() if condition else x
    if body is WHILE:
        while x.max() < 3:
            x = x + x
        return x
    return torch.cat([x[None], x + xs.cumsum(0)[:-1]])


@needs_backend
@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("body", [COND, WHILE, SCAN], ids=["cond", "while", "scan"])
def test_every_level_means_the_same(body, native):
    torch.manual_seed(0)
    result, kind = ("%z", XS) if body is SCAN else ("%y", T)
    module = irc.parse(program(body, result, kind))
    x, xs = torch.rand(4) + 0.1, torch.rand(6, 4)
    calls = [(True, x, xs), (False, x, xs), (False, x + 5, xs)]
    wanted = [expected(body, *call) for call in calls]
    for name in list(stages())[1:]:
        for call, value in zip(calls, wanted, strict=True):
            torch.testing.assert_close(irc.run(module, *call)[0], value)
        if name != "aten-to-graph":
            PassManager.parse(name, verify="each").run(module)
    executable = build(module, options={"native": native, "cache": False})
    for call, value in zip(calls, wanted, strict=True):
        (made,) = executable(*call)
        torch.testing.assert_close(made, value)
        assert made.data_ptr() != call[1].data_ptr()


@needs_backend
def test_building_refuses_recursion():
    body = "flow.cond %c, %c {otherwise = @f, then = @f} : (i1, i1) -> ()\n host.return"
    loop = "".join(f"host.func @{name}(%c: i1) {{\n {body}\n}}\n" for name in ("main", "f"))
    with pytest.raises(InvalidIR, match="recursion"):
        build(irc.parse(loop), options={"cache": False})
