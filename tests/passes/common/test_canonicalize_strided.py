"""`canonicalize` where types have strides: results are laid out as before, views stay views."""

from __future__ import annotations

import pytest
import torch

import irc
from irc.ir.types import TensorType

pytestmark = pytest.mark.fault("V15")
ROWS, COLUMNS = "tensor<[4, 2] x f32, strides [2, 1]>", "tensor<[4, 2] x f32, strides [1, 4]>"
TURNED = "tensor<[2, 4] x f32, strides [4, 1]>"
FLAT = "tensor<[8] x f32, strides [1]>"


def canonical(body: str, argument: str, made: str, level: str = "layout"):
    """The function after `canonicalize`, which is verified and gives the same numbers."""
    text = f"""func.func @main(%x: {argument}) -> {made} attributes {{level = "{level}"}} {{
{body}
func.return %y : {made}
}}"""
    module = irc.parse(text)
    irc.verify(module)
    kind = module.lookup("main").block.arguments[0].type
    assert isinstance(kind, TensorType) and kind.strides is not None
    torch.manual_seed(5)
    x = torch.empty_strided(kind.shape, kind.strides).copy_(torch.randn(kind.shape))
    (before,) = irc.run(module, x)
    irc.PassManager.parse("canonicalize", verify="each").run(module)
    (after,) = irc.run(module, x)
    assert torch.equal(before, after) and before.stride() == after.stride()
    return module.lookup("main")


FULL = "%z = graph.full {{value = {} : f32}} : {}"


@pytest.mark.parametrize("kind", [ROWS, COLUMNS])
@pytest.mark.parametrize(("op", "number"), [("add", "-0.0"), ("mul", "1.0"), ("div", "2.0")])
def test_neutral_elements(op: str, number: str, kind: str) -> None:
    body = f"""{FULL.format(number, kind)}
%y = graph.{op} %x, %z : (COLUMNS, {kind}) -> ROWS"""
    canonical(body.replace("COLUMNS", COLUMNS).replace("ROWS", ROWS), COLUMNS, ROWS)


@pytest.mark.parametrize(
    ("body", "argument", "made"),
    [
        # What is left would have other strides than the result: it is copied.
        (f"%a = graph.permute %x {{permutation = array<i64: 1, 0>}} : ({COLUMNS}) -> {TURNED}\n"
         f"%y = graph.permute %a {{permutation = array<i64: 1, 0>}} : ({TURNED}) -> {ROWS}",
         COLUMNS, ROWS),
        (f"%a = graph.reshape %x : ({ROWS}) -> {FLAT}\n"
         f"%y = graph.reshape %a : ({FLAT}) -> {TURNED}", ROWS, TURNED),
        (f"%a = graph.neg %x : ({COLUMNS}) -> {ROWS}\n"
         f"%y = graph.neg %a : ({ROWS}) -> {ROWS}", COLUMNS, ROWS),
        (f"%a = graph.cast %x : ({COLUMNS}) -> tensor<[4, 2] x f64, strides [1, 4]>\n"
         f"%y = graph.cast %a : (tensor<[4, 2] x f64, strides [1, 4]>) -> {ROWS}", COLUMNS, ROWS),
        (f"%a = graph.slice %x {{dim = 1 : i64, start = #sym<0>, step = 1 : i64}} : ({COLUMNS}) -> "
         f"{ROWS}\n%y = graph.add %a, %a : ({ROWS}, {ROWS}) -> {COLUMNS}", COLUMNS, COLUMNS),
        (f"{FULL.format('3.0', FLAT)}\n"
         f"%y = graph.reshape %z : ({FLAT}) -> {COLUMNS}", ROWS, COLUMNS),
        (f"{FULL.format('3.0', ROWS)}\n%c = graph.add %x, %z : ({ROWS}, {ROWS}) -> {COLUMNS}\n"
         f"{FULL.format('4.0', COLUMNS).replace('%z', '%w')}\n"
         f"%y = graph.mul %c, %w : ({COLUMNS}, {COLUMNS}) -> {ROWS}", ROWS, ROWS),
    ],
)  # fmt: skip
def test_strides_stay(body: str, argument: str, made: str) -> None:
    canonical(body, argument, made)


def test_what_shares_memory_goes_on_to_share_it() -> None:
    turn = "graph.permute {} {{permutation = array<i64: 1, 0>{}}} : ({}) -> {}"
    both = canonical(
        f"%a = {turn.format('%x', ', view', ROWS, 'tensor<[2, 4] x f32, strides [1, 2]>')}\n"
        f"%y = {turn.format('%a', ', view', 'tensor<[2, 4] x f32, strides [1, 2]>', ROWS)}",
        ROWS, ROWS,
    )  # fmt: skip
    assert both.return_op.operands[0] is both.block.arguments[0] or (
        "view" in both.return_op.operands[0].defining_op.attributes
    )
    one = canonical(
        f"%a = {turn.format('%x', '', ROWS, TURNED)}\n"
        f"%y = {turn.format('%a', ', view', TURNED, COLUMNS)}",
        ROWS, COLUMNS,
    )  # fmt: skip
    last = one.return_op.operands[0].defining_op
    assert last.name == "graph.permute" and "view" in last.attributes, "a view of fresh memory"


def test_a_view_of_a_number_stays_a_view() -> None:
    full = canonical(
        f"{FULL.format('3.0', FLAT)}\n"
        f"%y = graph.reshape %z {{view}} : ({FLAT}) -> {ROWS}", ROWS, ROWS,
    )  # fmt: skip
    assert "view" in full.return_op.operands[0].defining_op.attributes
