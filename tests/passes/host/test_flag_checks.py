"""Which truth values become flags, and why others stay arrays."""

from __future__ import annotations

import pytest

import irc
from irc.dialects import host
from irc.ir.passes import PassContext, PassManager

BITS = "tensor<[8] x i1, strides [1]>"
KEYS = "tensor<[8] x i64, strides [1]>"
SEGMENTS = "operandSegmentSizes = array<i64: 1, 1>"
FIRST = f"""%ok = host.alloc : {BITS}
  host.launch %k, %ok {{callee = @k, {SEGMENTS}}} : ({KEYS}, {BITS})
"""
ITEM = f"%c = host.item %ok {{every}} : ({BITS}) -> i1\n"
ASSERTED = 'sym.assert_value %c {error = "IndexError", message = "far"} : (i1)\n'
AGAIN = f"""%other = host.alloc {{escapes}} : {BITS}
  host.launch %k, %other {{callee = @k, {SEGMENTS}}} : ({KEYS}, {BITS})
"""
SECOND = AGAIN.replace(" {escapes}", "") + f"""%d = host.item %other {{every}} : ({BITS}) -> i1
  sym.assert_value %d {{error = "ValueError", message = "near"}} : (i1)
"""
STORES = 'kernel.scatter %in, %ok[%lanes] {combiner = "set"} : vector<8xi1>'


def program(body: str, stores: str = STORES, more: str = "", returns: str = "") -> str:
    results = f" -> {BITS}" if returns else ""
    given = f"host.return {returns} : {BITS}" if returns else "host.return"
    return f"""
    host.func @main(%k: {KEYS}){results} {{ {body} {given} }}
    kernel.func @k(%k: !kernel.ptr<i64>, %ok: !kernel.ptr<i1>) attributes {{grid = #sym<1>,
        num_warps = 1 : i64, num_stages = 1 : i64, outputs = array<i64: 1>{more}, symbols = [],
        target = "gpu"}} {{
      %lanes = kernel.iota : vector<8xindex>
      %limit = arith.constant dense<40> : vector<8xi64>
      %i = kernel.gather %k[%lanes] : vector<8xi64>
      %in = arith.cmpi slt, %i, %limit : vector<8xi64>
      {stores}
      kernel.return
    }}"""


def flagged(text: str) -> tuple[int, str]:
    """How many flags there are behind the pass, and its remarks."""
    module = irc.parse(text)
    context = PassContext(explains=True)
    PassManager.parse("flag-checks", verify="each").run(module, context)
    count = sum(isinstance(op, host.FlagOp) for op in module.walk())
    return count, "; ".join(remark.message for remark in context.remarks)


@pytest.mark.parametrize(
    ("text", "count", "reason"),
    [
        (program(FIRST + ITEM + ASSERTED), 1, ""),
        (program(FIRST + ITEM + ASSERTED + SECOND), 2, ""),
        (program(FIRST + ITEM + ASSERTED, STORES * 2), 1, ""),
        (program(FIRST + ITEM + ASSERTED + AGAIN, returns="%other"), 0, "another launch of its"),
        (program(FIRST + ITEM), 0, ""),
        (program(FIRST + ITEM + ASSERTED * 2), 0, "more than one assertion"),
        (program(FIRST.replace("host.alloc", "host.alloc {escapes}") + ITEM + ASSERTED,
                 returns="%ok"), 0, "no launch of irc's gives it"),
        (program(FIRST + f"%e = host.item %ok {{every}} : ({BITS}) -> i1\n" + ITEM + ASSERTED), 0,
         "something else reads or writes it"),
        (program(FIRST + ITEM + ASSERTED, STORES.replace("set", "min")), 0, "combines into it"),
        (program(FIRST + ITEM + ASSERTED,
                 STORES + "\n%z = kernel.gather %ok[%lanes] : vector<8xi1>"), 0,
         "does more with it than store"),
    ],
)  # fmt: skip
def test_flags(text, count, reason):
    found, remarks = flagged(text)
    assert found == count
    assert reason in remarks and bool(reason) == bool(remarks)


def test_a_mask_leaves_lanes_out():
    stores = """%m = arith.cmpi sgt, %i, %limit : vector<8xi64>
      kernel.scatter %in, %ok[%lanes] (where %m) {combiner = "set"} : vector<8xi1>"""
    module = irc.parse(program(FIRST + ITEM + ASSERTED, stores))
    PassManager.parse("flag-checks", verify="each").run(module)
    assert "kernel.check %in, %ok, %m" in str(module)


def test_a_flag_is_shared_with_no_input():
    arguments = "%k: !kernel.ptr<i8>, %ok: !kernel.ptr<i1>"
    text = program(FIRST + ITEM + ASSERTED, more=", inplace = array<i64: 0, 1>")
    text = text.replace("%k: !kernel.ptr<i64>, %ok: !kernel.ptr<i1>", arguments)
    text = text.replace("i64, strides [1]", "i8, strides [1]").replace("xi64>", "xi8>")
    module = irc.parse(text)
    PassManager.parse("flag-checks", verify="each").run(module)
    assert module.lookup("k").inplace is None
