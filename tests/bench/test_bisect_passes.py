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

    def run(self, op: Operation, context: PassContext) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, graph.POINTWISE["sin"]):
                wrong = Builder.before(inner).value(graph.POINTWISE["cos"], *inner.operands)
                inner.replace_with([wrong])


def lines(monkeypatch: pytest.MonkeyPatch, text: str, results: Any = None) -> list[str]:
    """What is said of sin(x) + x under a pipeline."""
    monkeypatch.setattr(pipeline, "pipeline_text", lambda target: text)
    x = torch.randn(5)
    module = irc.trace(lambda x: x.sin() + x, (x,))
    bisector = Bisector(report=lambda line: None)
    bisector.check("graph 0", module, "llvm", [x], [x.sin() + x if results is None else results])
    return bisector.failures


def test_the_first_pass_that_changes_a_result_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "convert-aten-to-graph,cse,test-sine-to-cosine,assign-layouts"
    (line,) = lines(monkeypatch, text)
    assert line.startswith("graph 0: after test-sine-to-cosine: 1 results differ, most result 0:")


def test_stages_are_taken_apart_and_right_passes_are_not_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not lines(monkeypatch, "aten-to-graph,graph-to-layout")


def test_a_wrong_executable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    (line,) = lines(monkeypatch, "aten-to-graph", torch.zeros(5))
    assert line.startswith("graph 0: executable: 1 results differ")
