"""A rule that holds, a rule that doesn't, and a pass that doesn't: written, run, told.

Each part is the source of this file as it stands here, and what irc says to it.
"""

from __future__ import annotations

import ast
import time
from pathlib import Path
from typing import Any

import irc
from irc.dialects import graph as ops
from irc.rules import Rule, floating, graph, rule

CASES = 200


@rule(canonical=False)
def and_of_inverses(x, y):
    return graph.and_(graph.not_(x), graph.not_(y)), graph.not_(graph.or_(x, y))


@rule(where=floating, preserves="real", canonical=False)
def factored_out(x, y, z):
    return graph.add(graph.mul(x, y), graph.mul(x, z)), graph.mul(x, graph.add(y, z))


# permute(permute(x, p), p) -> x: true where p swaps two dimensions, not where it turns three.
@irc.pattern(ops.Permute, name="demo.two_transposes_cancel")
def two_transposes_cancel(op, rw):
    before = op.source.owner
    if not isinstance(before, ops.Permute) or before.permutation != op.permutation:
        return rw.no_match("not the same transpose twice")
    rw.replace(op, before.source)


@irc.register_pass
class DropDoubleTransposes(irc.Pass):
    """Takes a transpose of the same transpose for what was there before."""

    name = "demo-drop-double-transposes"
    summary = "the same transpose twice as nothing"
    preserves = "bits"

    def run(self, op: Any, context: Any) -> None:
        irc.apply_patterns_greedily(op, [two_transposes_cancel])


TURNED = """
func.func @main(%x: tensor<[n, n, n] x f32>) -> tensor<[n, n, n] x f32> {
  %n = sym.bind_size %x {dim = 0 : i64, symbol = "n"} : (tensor<[n, n, n] x f32>) -> index
  %y = graph.permute %x {permutation = array<i64: 1, 2, 0>} : (tensor<[n, n, n] x f32>) -> tensor<[n, n, n] x f32>
  %z = graph.permute %y {permutation = array<i64: 1, 2, 0>} : (tensor<[n, n, n] x f32>) -> tensor<[n, n, n] x f32>
  return %z : tensor<[n, n, n] x f32>
}
"""  # noqa: E501


def source(name: str) -> str:
    """A function of this file as it stands here, with its decorator."""
    text = Path(__file__).read_text(encoding="utf-8")
    found = next(node for node in ast.parse(text).body if getattr(node, "name", "") == name)
    assert isinstance(found, ast.FunctionDef)
    return "\n".join(text.splitlines()[found.decorator_list[0].lineno - 1 : found.end_lineno])


def of_rule(subject: Rule) -> tuple[str, bool]:
    """What the checker of rules says to one, and whether it holds."""
    from irc.validation.rules import check_rule, element_types

    start = time.perf_counter()
    failure = check_rule(subject, CASES)
    taken = time.perf_counter() - start
    if failure is not None:
        return str(failure).partition("\n  builtin.module")[0], False
    types = len(list(element_types(subject)))
    return (
        f"rule '{subject.name}' holds: {CASES} random cases of {types} element types, ranks 0 to "
        f"4, {taken:.1f} s"
    ), True


def every_pair() -> tuple[str, bool]:
    """The rule that holds on all pairs of 8-bit integers, which proves it for that type."""
    import torch

    from irc.ir.types import i8
    from irc.validation.rules import run_case

    every = torch.arange(-128, 128).to(torch.int8)
    x, y = every.repeat_interleave(256), every.repeat(256)
    holds = run_case(and_of_inverses, (i8, i8), (x, y)) is True
    said = "proved for int8" if holds else "wrong for int8"
    return f"all {x.numel():,} pairs of 8-bit integers: {said}", holds


def of_pass() -> tuple[str, bool]:
    """What the interpreter says to the wrong pass, and whether it held."""
    from irc.validation.semantics import SemanticsChanged

    module = irc.parse(TURNED, filename="turned.mlir")
    passes = irc.PassManager.parse("demo-drop-double-transposes")
    try:
        passes.run(module, check_semantics="each")
    except SemanticsChanged as error:
        return str(error), False
    return "nothing", True
