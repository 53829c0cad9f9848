"""What is tuned, as a problem of its own."""

from __future__ import annotations

import irc
from irc.target import Target
from irc.tuning.problem import main_of, problem_of

PROGRAM = """func.func @main(%x: tensor<[s0, s1] x f32>) -> tensor<[s0, s1] x f32>
    attributes {level = "graph"} {
  %0 = sym.bind_size %x {dim = 0, symbol = "s0", hint = 100} : (tensor<[s0, s1] x f32>) -> index
  %1 = sym.bind_size %x {dim = 1, symbol = "s1"} : (tensor<[s0, s1] x f32>) -> index
  %y = graph.neg %x : (tensor<[s0, s1] x f32>) -> tensor<[s0, s1] x f32>
  return %y : tensor<[s0, s1] x f32>
}"""


def test_symbols_are_measured_near_what_they_were_when_the_program_was_traced() -> None:
    module = irc.parse(PROGRAM)
    negation = next(op for op in main_of(module).block.ops if op.name == "graph.neg")
    problem = problem_of(negation, Target.host(), "", "negation", "graph")
    assert problem.sizes == (("s0", 128), ("s1", 64))
    assert "hint" not in problem.text, "what a key holds says nothing of it"


def test_arguments_of_a_large_program_come_from_memory() -> None:
    for rows, cold in ((100, ()), (1 << 20, (0,))):
        text = PROGRAM.replace("s0, s1", f"{rows}, 64").replace("%0 = sym", "//").replace(
            "%1 = sym", "//")  # fmt: skip
        module = irc.parse(text)
        negation = next(op for op in main_of(module).block.ops if op.name == "graph.neg")
        assert problem_of(negation, Target.host(), "", "negation", "graph").cold == cold
