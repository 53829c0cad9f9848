"""Copies are placed where few bytes move, and what the caller sees stays as it was."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
import torch

import irc.interp
from irc.analysis.strides import same_layout
from irc.dialects import layout
from irc.ir import attributes as A
from irc.ir.passes import PassContext, PassManager
from irc.ir.types import contiguous_strides
from tests.passes.layout.test_propagate_channels_last import TYPES, convolution
from tests.passes.loop.programs import program, tensor

PIPELINE = "propagate-channels-last,assign-layouts,insert-layout-copies,elide-layout-copies"


def lowered(module: Any, pipeline: str = PIPELINE) -> PassContext:
    context = PassContext()
    PassManager.parse(pipeline, verify="each").run(module, context)
    return context


def copies(module: Any) -> list[layout.CopyOp]:
    return [op for op in module.walk() if isinstance(op, layout.CopyOp)]


def moved(module: Any) -> int:
    """Elements read in another order than written, copies counted twice."""
    total = 0
    for op in module.walk():
        if isinstance(op, layout.CopyOp):
            total += 2 * math.prod(op.copy.type.shape)
        elif op.name.startswith("graph.") and op.name != "graph.call_aten":
            made = op.results[0].type if op.results else None
            for value in op.operands:
                kind = value.type
                if made is not None and kind.shape == made.shape:
                    if not same_layout(kind.shape, kind.strides, made.strides):
                        total += math.prod(kind.shape)
    return total


def test_a_result_that_a_convolution_reads_is_copied_once() -> None:
    def body(g: Any, x: Any, w: Any) -> Any:
        y = g.op("tanh", convolution(g, x, w))
        z = convolution(g, g.op("exp", convolution(g, y, w)), w)
        return y, g.op("sin", z)

    module = program(TYPES, body)
    x, w = torch.randn(2, 8, 5, 6), torch.randn(8, 8, 3, 3)
    expected = irc.interp.run(module, x, w)
    context = lowered(module)
    # The argument, and the result that the second convolution reads, too.
    found = copies(module)
    assert [c.reason for c in found] == ["operand 0 of aten.convolution.default",
                                         "result 0 of the function"]  # fmt: skip
    assert context.statistics["elide-layout-copies", "copies"] == 2
    assert context.statistics["elide-layout-copies", "copies inside"] == 0
    assert sum("1920 bytes are copied" in r.message for r in context.remarks) == 2
    got = irc.interp.run(module, x, w)
    for a, b in zip(got, expected, strict=True):
        torch.testing.assert_close(a, b)
        assert a.stride() == contiguous_strides((2, 8, 5, 6))


def random_body(seed: int) -> Any:
    """A program of convolutions, pointwise ops, joins, pads and views, with some results."""

    def body(g: Any, x: Any, w: Any) -> Any:
        choose = random.Random(seed)
        values = [x]
        for _ in range(choose.randint(3, 9)):
            source = choose.choice(values[-3:])
            kind = choose.choice(("conv", "conv", "tanh", "exp", "add", "mul"))
            if kind == "conv":
                made = convolution(g, source, w)
            elif kind in ("add", "mul"):
                made = g.op(kind, source, choose.choice(values))
            else:
                made = g.op(kind, source)
            values.append(made)
        results = choose.sample(values[1:], choose.randint(1, min(3, len(values) - 1)))
        return tuple(results)

    return body


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_keep_their_meaning_and_move_no_more(seed: int) -> None:
    types = [tensor(2, 4, 5, 3), tensor(4, 4, 3, 3)]
    module = program(types, random_body(seed))
    x, w = torch.randn(2, 4, 5, 3), torch.randn(4, 4, 3, 3)
    expected = irc.interp.run(module, x, w)
    before = program(types, random_body(seed))
    lowered(before, PIPELINE.removesuffix(",elide-layout-copies"))
    lowered(module)
    assert moved(module) <= moved(before)
    got = irc.interp.run(module, x, w)
    for a, b in zip(got, expected, strict=True):
        torch.testing.assert_close(a, b, equal_nan=True)
        assert a.stride() == contiguous_strides((2, 4, 5, 3))
    pointers = [a.untyped_storage().data_ptr() for a in got]
    assert len(set(pointers)) == len(pointers)


def test_layout_optimization_can_be_switched_off() -> None:
    from irc.frontend.options import from_mapping
    from irc.pipeline import pipeline_text

    text = pipeline_text(options=from_mapping({"layout_optimization": False, "freezing": True}))
    assert "propagate-channels-last" not in text
    assert "pack-weights{convolutions=false}" in text
    assert "propagate-channels-last" in pipeline_text()


def test_copies_of_one_value_for_two_calls_become_one() -> None:
    def body(g: Any, x: Any, w: Any) -> Any:
        y = convolution(g, x, w)
        return g.op("add", g.op("tanh", y), g.op("exp", convolution(g, x, w)))

    module = program(TYPES, body)
    lowered(module)
    assert len(copies(module)) == 1
    assert isinstance(copies(module)[0].attributes["reason"], A.StringAttr)
