"""The tool that finds the pass which changes what a program computes."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import irc
from bench.bisect_passes import Bisector
from irc import pipeline
from irc.dialects import graph
from irc.ir.builder import Builder
from irc.ir.core import Operation
from irc.ir.passes import Pass, PassContext, register_pass


@register_pass
class SineToCosine(Pass):
    """A pass that is wrong."""

    name = "test-sine-to-cosine"
    summary = "wrong on purpose"
    spends: bool = False

    def run(self, op: Operation, context: PassContext) -> None:
        for inner in list(op.walk()):
            sine = isinstance(inner, graph.POINTWISE["sin"])
            if sine and (not self.spends or context.spend("sine", inner)):
                wrong = Builder.before(inner).value(graph.POINTWISE["cos"], *inner.operands)
                inner.replace_with([wrong])


def lines(
    monkeypatch: pytest.MonkeyPatch, text: str, results: Any = None, said: list[str] | None = None
) -> list[str]:
    """What is said of sin(x) + x under a pipeline."""
    monkeypatch.setattr(pipeline, "pipeline_text", lambda target: text)
    x = torch.randn(5)
    module = irc.trace(lambda x: x.sin() + x, (x,))
    bisector = Bisector(report=lambda line: None if said is None else said.append(line))
    bisector.check("graph 0", module, "llvm", [x], [x.sin() + x if results is None else results])
    return bisector.failures


def test_the_first_pass_that_changes_a_result_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "convert-aten-to-graph,cse,test-sine-to-cosine,assign-layouts"
    (line,) = lines(monkeypatch, text)
    assert line.startswith("graph 0: after test-sine-to-cosine: 1 results differ, most result 0:")


@pytest.mark.parametrize("spends", [False, True])
def test_its_rewrite_is_named(monkeypatch: pytest.MonkeyPatch, spends: bool) -> None:
    said: list[str] = []
    flag = "{spends=true}" if spends else ""
    lines(monkeypatch, f"convert-aten-to-graph,test-sine-to-cosine{flag}", said=said)
    assert said[1].startswith(
        "  rewrite 1: test-sine-to-cosine: sine of 'graph.sin' at "
        if spends else "  no single rewrite of it: the pass itself"
    )  # fmt: skip


def test_stages_are_taken_apart_and_right_passes_are_not_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not lines(monkeypatch, "aten-to-graph,graph-to-layout")


def test_a_wrong_executable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    (line,) = lines(monkeypatch, "aten-to-graph", torch.zeros(5))
    assert line.startswith("graph 0: executable: 1 results differ")
