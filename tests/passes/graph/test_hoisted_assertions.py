"""Where the pass `hoist-assertions` puts assertions."""

from __future__ import annotations

import pytest

import irc
from irc.ir.passes import PassContext, PassManager

ASSERTIONS = """
func.func @main(%x: tensor<[s0, s1] x f32>) -> tensor<[s0, s1] x f32> {{
  %0 = sym.bind_size %x {{dim = 0 : i64, minimum = 2 : i64, symbol = "s0"}} : (tensor<[s0, s1] x f32>) -> index
  %1 = sym.bind_size %x {{dim = 1 : i64, minimum = 2 : i64, symbol = "s1"}} : (tensor<[s0, s1] x f32>) -> index
{body}
  return %x : tensor<[s0, s1] x f32>
}}
"""  # noqa: E501
ABOUT = {
    "a": '  sym.assert {relation = "ne", lhs = #sym<s0>, rhs = #sym<7>, message = "a"}',
    "b": '  sym.assert {relation = "ne", lhs = #sym<s1>, rhs = #sym<7>, message = "b"}',
    "n": '  sym.assert {relation = "ne", lhs = #sym<1>, rhs = #sym<7>, message = "n"}',
    "e": "  %e{n} = graph.exp %x : (tensor<[s0, s1] x f32>) -> tensor<[s0, s1] x f32>",
}


@pytest.mark.parametrize(
    "before, after, moved",
    [
        ("ab", "ab", 0), ("ea", "ae", 1), ("eab", "bae", 2), ("aeb", "abe", 1), ("eaa", "aae", 2),
        ("beb", "bbe", 1), ("aeeb", "abee", 1), ("n", "n", 0), ("en", "en", 0), ("", "", 0),
        ("ebb", "bbe", 2),
    ],
)  # fmt: skip
def test_assertions_go_up_to_their_symbols(before, after, moved):
    body = "\n".join(ABOUT[k].replace("{n}", str(n)) for n, k in enumerate(before))
    module = irc.parse(ASSERTIONS.format(body=body))
    context = PassManager.parse("hoist-assertions").run(module, PassContext())
    block = module.lookup("main").block
    found = [op.message if op.name == "sym.assert" else "e" for op in block.ops
             if op.name in ("sym.assert", "graph.exp")]  # fmt: skip
    order = [op.message if op.name == "sym.assert" else op.name[-1] for op in block.ops]
    assert context.statistics["hoist-assertions", "moved"] == moved, order
    assert sorted(found) == sorted(before)
    if moved:
        assert found[-after.count("e"):] == ["e"] * after.count("e")
