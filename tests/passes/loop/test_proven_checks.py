"""Which assertions are dropped because they hold at every point, and what goes with them."""

from __future__ import annotations

import pytest

from irc.ir.verifier import verify
from irc.passes.loop.proven_checks import drop_proven_checks
from tests.passes.loop.texts import parsed

ARGUMENTS = "%k: i64[8], %b: i1, %f: i1[]"
TRUE = "%c = arith.constant true\n"
DATA = """%a = loop.read %k[i0] : i64
  %n = arith.constant 40 : i64
  %c = arith.cmpi slt, %a, %n : i64\n"""


def check(body: str, out: str = "reduce(all, i1)", type_: str = "i1[]", name: str = "%ok",
          yields: str = "%c") -> str:  # fmt: skip
    return f"{name} = loop.compute red(i0: 8) -> {out} {{ {body} loop.yield {yields} }} : {type_}\n"


ITEM = "%t = graph.item %ok : (i1[]) -> i1\n"
ASSERT = 'sym.assert_value %t {error = "IndexError", message = "wrong"} : (i1)\n'
ALL = ["loop.compute", "graph.item", "sym.assert_value"]
CASES = {
    "proven": (check(TRUE) + ITEM + ASSERT, 1, []),
    "proven, asserted twice": (check(TRUE) + ITEM + ASSERT + ASSERT, 2, []),
    "proven, used by something else": (
        check(TRUE) + ITEM + ASSERT + "%u = graph.from_scalar %t : (i1) -> i1[]\n", 1,
        ["loop.compute", "graph.item", "graph.from_scalar"]),
    "proven, read twice": (
        check(TRUE) + ITEM + ASSERT + ITEM.replace("%t", "%u"), 1, ["loop.compute", "graph.item"]),
    "data": (check(DATA) + ITEM + ASSERT, 0, ALL),
    "never": (check(TRUE.replace("true", "false")) + ITEM + ASSERT, 0, ALL),
    "any": (check(TRUE, "reduce(any, i1)") + ITEM + ASSERT, 0, ALL),
    "beside a map": (check(TRUE, "reduce(all, i1), map", "i1[], i1[8]", "%ok, %m", "%c, %c")
                     + ITEM + ASSERT, 0, ALL),
    "an argument": (ASSERT.replace("%t", "%b"), 0, ["sym.assert_value"]),
    "computed by the host": ("%t = arith.andi %b, %b : i1\n" + ASSERT, 0,
                             ["arith.andi", "sym.assert_value"]),
    "an element of an argument": (ITEM.replace("%ok", "%f") + ASSERT, 0, ALL[1:]),
    "an element of what a call gives": (
        """%ok = graph.call_aten %f {arguments = {self = #aten.operand<0>},
          callee = "aten.logical_not.default", eager_strides = [#sym.dims<[]>]}
          : (i1[]) -> i1[]\n"""
        + ITEM + ASSERT, 0, ["graph.call_aten", *ALL[1:]]),
    "the second of two": (
        check(DATA) + ITEM + ASSERT + (check(TRUE, name="%ok2") + ITEM + ASSERT).replace(
            "%ok :", "%ok2 :").replace("%t", "%t2"), 1, ALL),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_checks_that_hold_at_every_point(name):
    text, count, left = CASES[name]
    module = parsed(ARGUMENTS, text)
    block = next(iter(module.ops)).block
    assert drop_proven_checks(block) == count
    assert [op.name for op in block.ops][:-1] == left
    verify(module, uses=True)
