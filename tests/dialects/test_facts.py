"""Facts: ranges from binders and assertions, propagated; and their text."""

from __future__ import annotations

import contextlib
import io

import irc
from irc.dialects.sym.facts import facts_of, format_facts
from irc.ir.symbols import Range, parse_dim
from irc.tools.irc_opt import main

HEAD = """\
func.func @main(%x: tensor<[s0, s1] x f32>, %n: index) {
  %0 = sym.bind_size %x {dim = 0 : i64, hint = 8 : i64, minimum = 2 : i64, symbol = "s0"} : (tensor<[s0, s1] x f32>) -> index
  %1 = sym.bind_size %x {dim = 1 : i64, symbol = "s1"} : (tensor<[s0, s1] x f32>) -> index
  %2 = sym.bind %n {symbol = "u0"} : (index) -> index
"""  # noqa: E501


def facts(*conditions: tuple[str, str, str]):
    """The facts of a function with the assertions `lhs relation rhs`."""
    lines = [
        f'  sym.assert {{relation = "{r}", lhs = #sym<{a}>, rhs = #sym<{b}>, message = "m"}}\n'
        for a, r, b in conditions
    ]
    module = irc.parse(HEAD + "".join(lines) + "  func.return\n}\n")
    return facts_of(module.lookup("main"))


def test_binders_give_ranges_hints_and_where_a_symbol_comes_from():
    known = facts().symbols
    assert known["s0"].range == Range(2, None)
    assert known["s0"].hint == 8 and known["s0"].kind == "size"
    assert known["s1"].range == Range(0, None), "a size is not negative"
    assert known["u0"].range == Range(None, None) and known["u0"].kind == "argument"


def test_ranges_go_through_chains_of_relations():
    found = facts(("s0 + s1", "le", "10"), ("u0", "lt", "s1"), ("-3", "le", "u0"))
    assert found.symbols["s0"].range == Range(2, 10)
    assert found.symbols["s1"].range == Range(0, 8)
    assert found.symbols["u0"].range == Range(-3, 7)


def test_bounds_are_rounded_inwards():
    found = facts(("s0*3", "le", "31"), ("7", "le", "s0*2"))
    assert found.symbols["s0"].range == Range(4, 10)


def test_an_equality_names_the_other_expression():
    found = facts(("s1", "eq", "s0*2"))
    assert found.symbols["s1"].equal is parse_dim("s0*2")
    assert found.symbols["s0"].equal is None
    assert found.symbols["s1"].range == Range(4, None)


def test_divisibility_tightens_the_range():
    found = facts(("mod(s0, 8)", "eq", "0"), ("s0", "lt", "40"))
    assert found.symbols["s0"].divisor == 8
    assert found.symbols["s0"].range == Range(8, 32)


def test_truths_are_taken_apart():
    found = facts(("and(le(s0, 5), lt(0, s1))", "eq", "1"), ("le(u0, 3)", "eq", "0"))
    assert found.symbols["s0"].range == Range(2, 5)
    assert found.symbols["s1"].range == Range(1, None)
    assert found.symbols["u0"].range == Range(4, None)


def test_a_number_that_is_not_1_is_not_0():
    for function in ("floordiv(s0, s1)", "mod(s0, s1)", "max(s0, s1)"):
        (relation,) = facts((function, "ne", "1")).relations
        assert (relation.relation, relation.rhs) == ("ne", 1)


def test_what_is_excluded_at_an_end_narrows():
    found = facts(("s1", "ne", "0"), ("s0", "ne", "2"))
    assert found.symbols["s1"].range == Range(1, None)
    assert found.symbols["s0"].range == Range(3, None)


def test_a_contradiction_is_told():
    found = facts(("s0", "le", "1"))
    assert [str(r) for r in found.contradictions] == ["s0 <= 1"]
    assert "contradicts" in format_facts(found.relations[0].op.parent_op)


def test_the_pass_prints_a_line_per_symbol(tmp_path):
    path = tmp_path / "f.mlir"
    text = '  sym.assert {relation = "le", lhs = #sym<s0>, rhs = #sym<9>, message = "m"}\n'
    path.write_text(HEAD + text + "  func.return\n}\n")
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        assert main([str(path), "--print-facts"]) == 0
    assert err.getvalue().splitlines()[:3] == [
        "facts of @main:",
        "  s0 in [2, 9], hint 8  (size 0 of %x)",
        "  s1 in [0, inf]  (size 1 of %x)",
    ]
    assert f"  s0 <= 9  ({path}:5)" in err.getvalue()
