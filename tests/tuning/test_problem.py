"""What is tuned, as a problem of its own."""

from __future__ import annotations

import irc
from irc.target import Target
from irc.tuning.problem import Problem, main_of, problem_of

PROGRAM = """func.func @main(%x: tensor<[s0, s1] x f32>) -> tensor<[s0, s1] x f32>
    attributes {level = "graph"} {
  %0 = sym.bind_size %x {dim = 0, symbol = "s0", hint = 100} : (tensor<[s0, s1] x f32>) -> index
  %1 = sym.bind_size %x {dim = 1, symbol = "s1"} : (tensor<[s0, s1] x f32>) -> index
  %y = graph.neg %x : (tensor<[s0, s1] x f32>) -> tensor<[s0, s1] x f32>
  return %y : tensor<[s0, s1] x f32>
}"""


def negation(target: Target) -> Problem:
    module = irc.parse(PROGRAM)
    op = next(op for op in main_of(module).block.ops if op.name == "graph.neg")
    return problem_of(op, target, "", "negation", "graph")


def test_symbols_are_measured_near_what_they_were_when_the_program_was_traced() -> None:
    problem = negation(Target.named("avx2"))
    assert problem.sizes == (("s0", 128), ("s1", 64))
    assert "hint" not in problem.text, "what a key holds says nothing of it"


def test_arguments_of_programs_that_no_cache_holds_come_from_memory() -> None:
    """There are two numbers before the argument of 100 x 64 elements."""
    assert negation(Target.named("#irc.target<avx2, cached_bytes = 25600>")).cold == ()
    assert negation(Target.named("#irc.target<avx2, cached_bytes = 25599>")).cold == (2,)


VIEWS = """func.func @main(%b: tensor<[16] x f32>, %x: tensor<[8, 16] x f32>)
    -> (tensor<[8, 16] x f32>, tensor<[8, 16] x f32>, tensor<[16, 8] x f32>)
    attributes {level = "graph"} {
  %e = graph.broadcast %b {dims = array<i64: 1>} : (tensor<[16] x f32>) -> tensor<[8, 16] x f32>
  %y = graph.add %x, %e : (tensor<[8, 16] x f32>, tensor<[8, 16] x f32>) -> tensor<[8, 16] x f32>
  %z = graph.neg %y : (tensor<[8, 16] x f32>) -> tensor<[8, 16] x f32>
  %t = graph.permute %y {permutation = array<i64: 1, 0>} : (tensor<[8, 16] x f32>) -> tensor<[16, 8] x f32>
  %n = graph.neg %e : (tensor<[8, 16] x f32>) -> tensor<[8, 16] x f32>
  return %z, %n, %t : tensor<[8, 16] x f32>, tensor<[8, 16] x f32>, tensor<[16, 8] x f32>
}"""  # noqa: E501


def test_of_views_what_they_show_is_a_result() -> None:
    """One that others read is memory of its own for nobody: of a broadcast argument all rows are
    one, which nothing can write."""
    module = irc.parse(VIEWS)
    ops = [op for op in main_of(module).block.ops if op.name.startswith("graph.")][:4]
    problem = problem_of(ops[1], Target.named("avx2"), "", "views", "graph", ops)
    made = main_of(problem.module())
    returned = list(made.block.ops)[-1].operands
    assert [value.defining_op.name for value in returned] == ["graph.add", "graph.neg"]
