"""Calls with arguments that torch refuses, which only a text can hold: they stay as they are, and
raise torch's error when the program runs."""

from __future__ import annotations

import re

import pytest
import torch

import irc
from irc.dialects import aten
from irc.ir.diagnostics import InternalError, UserError
from irc.ir.passes import PassManager
from irc.passes.graph.convert_aten import nn
from irc.passes.graph.result_types import refusal

LARGEST = 2**63 - 1
X = torch.arange(24.0).reshape(1, 4, 6)
IMAGES = torch.arange(144.0).reshape(1, 4, 6, 6)

#: An operator with an argument that torch takes, its name, and others that torch refuses.
CALLS = {
    "transpose": (lambda x: torch.ops.aten.transpose_copy.int(x, 0, 2), X, "dim1", (2**32, -7)),
    "squeeze": (lambda x: torch.ops.aten.squeeze_copy.dim(x, 0), X, "dim", (LARGEST, -7)),
    "unsqueeze": (lambda x: torch.ops.aten.unsqueeze_copy.default(x, 0), X, "dim", (4, -5)),
    "shuffle": (lambda x: torch.ops.aten.pixel_shuffle.default(x, 2), IMAGES, "upscale_factor",
                (0, -7)),
    "resize": (lambda x: torch.ops.aten.upsample_nearest1d.default(x, [3]), X, "output_size", (0,)),
    "groups": (lambda x: torch.ops.aten.native_group_norm.default(x, None, None, 1, 4, 6, 2, 1e-5),
               X, "group", (0, -7, LARGEST)),
}  # fmt: skip
CASES = [(name, number) for name, (*_, numbers) in CALLS.items() for number in numbers]


def edited(name: str, number: int) -> str:
    """A text of the call with this argument."""
    function, x, argument, _ = CALLS[name]
    text = irc.print_op(irc.trace(function, (x,)))
    wrong, count = re.subn(rf"(?<=\b{argument} = )(\[?)-?\d+", rf"\g<1>{number}", text)
    assert count == 1, text
    return wrong


@pytest.mark.parametrize(("name", "number"), CASES)
def test_a_call_that_torch_refuses_raises_when_the_program_runs(name: str, number: int) -> None:
    module = irc.parse(edited(name, number))
    (op,) = [o for o in module.lookup("main").block.ops if isinstance(o, aten.AtenOp)]
    assert refusal(op) is not None
    x = CALLS[name][1]
    refused = (RuntimeError, IndexError)
    with pytest.raises(refused):
        irc.run(module, x)
    PassManager.parse("lower-to-cpu", verify="each").run(module)
    with pytest.raises(refused):
        irc.build(module, options={"cache": False})(x)


def test_a_converter_that_fails_for_what_torch_takes_is_at_fault(monkeypatch) -> None:
    function, x, *_ = CALLS["groups"]
    monkeypatch.setattr(nn, "float_tensor", lambda *_: 1 // 0)
    with pytest.raises(InternalError, match="converter 'group_norm': ZeroDivisionError"):
        PassManager.parse("convert-aten-to-graph").run(irc.trace(function, (x,)))


def test_assertions_of_torch_s_definitions_are_refusals() -> None:
    expanded = torch.ops.prims.broadcast_in_dim.default
    text = irc.print_op(irc.trace(lambda x: expanded(x, [4, 6], [0, 1]), (X[0],)))
    text, count = re.subn(r"(broadcast_dimensions = \[)0", r"\g<1>7", text)
    assert count == 1, text
    with pytest.raises(UserError, match="gives a view can't be told") as caught:
        PassManager.parse("lower-to-cpu", verify="each").run(irc.parse(text))
    assert not isinstance(caught.value, InternalError)
