"""Which equalities of sizes follow from what a program states, and which do not."""

from __future__ import annotations

import itertools
import random

import pytest

import irc
from irc.dialects.sym.known import Known
from irc.ir.symbols import evaluate, parse_dim

HEAD = """\
func.func @main(%x: tensor<[s0, s1, 5] x f32>, %n: index) {
  %0 = sym.bind_size %x {dim = 0 : i64, minimum = 2 : i64, symbol = "s0"} : (tensor<[s0, s1, 5] x f32>) -> index
  %1 = sym.bind_size %x {dim = 1 : i64, symbol = "s1"} : (tensor<[s0, s1, 5] x f32>) -> index
  %2 = sym.bind_size %x {dim = 2 : i64, symbol = "s2"} : (tensor<[s0, s1, 5] x f32>) -> index
  %3 = sym.value {dim = #sym<floordiv(s0, 2) + s1>} : index
  %4 = sym.bind %3 {symbol = "h0"} : (index) -> index
  %5 = sym.bind %n {symbol = "u0"} : (index) -> index
"""  # noqa: E501
RELATIONS = {"==": "eq", "<=": "le", "<": "lt", "!=": "ne"}


def known(*facts: str) -> Known:
    lines = []
    for text in facts:
        lhs, relation, rhs = text.partition(next(s for s in RELATIONS if f" {s} " in text))
        lines.append(
            f'  sym.assert {{relation = "{RELATIONS[relation]}", lhs = #sym<{lhs.strip()}>, '
            f'rhs = #sym<{rhs.strip()}>, message = "m"}}\n'
        )
    module = irc.parse(HEAD + "".join(lines) + "  func.return\n}\n")
    return Known(module.lookup("main").walk())


@pytest.mark.fault("V5")
@pytest.mark.parametrize(
    ("facts", "lhs", "rhs"),
    [
        ([], "s2", "5"),
        ([], "h0", "s1 + floordiv(s0, 2)"),
        ([], "max(1, s0)", "s0"),
        (["s1 == s0"], "s1*3 + 1", "s0*3 + 1"),
        (["floordiv(s0, 2) == 1"], "floordiv(s0, 2)*4", "4"),
        # The range of s0 follows: the same size in another form.
        (["floordiv(s0, 2) == 1"], "floordiv(s0 + 2, 4)", "1"),
        (["floordiv(s0 + 31, 32) == 1"], "floordiv(s0 - 1, 32) + 1", "1"),
        (["min(s0, 9) == 9", "s0 < 10"], "s0", "9"),
        (["mod(s0, 4) == 0"], "floordiv(s0, 4)*4", "s0"),
        (["u0 == s0 + s1", "s1 == 4"], "u0", "s0 + 4"),
        (["s0 <= s1", "s1 <= s0", "s1 <= 2"], "s0", "2"),
        (["h0 == s0"], "s1", "s0 - floordiv(s0, 2)"),
        (["2*u0 == 3*s0", "2*s1 == 3*s0"], "u0", "s1"),
    ],
)
def test_what_follows(facts: list[str], lhs: str, rhs: str) -> None:
    assert known(*facts).equal(parse_dim(lhs), parse_dim(rhs))


@pytest.mark.fault("V5")
@pytest.mark.parametrize(
    ("facts", "lhs", "rhs"),
    [
        ([], "s0", "s1"),
        ([], "floordiv(s0, 2)*2", "s0"),
        ([], "s0", "2"),
        (["s0 != 3", "s0 <= 4"], "s0", "4"),
        (["floordiv(s0, 2) == 1"], "s0", "2"),
        (["s0*s1 == s0*u0"], "s1", "u0"),  # s0 may be ... at least 2, but nothing divides here
        (["max(s0, s1) == 9"], "s0", "9"),
    ],
)
def test_what_does_not_follow(facts: list[str], lhs: str, rhs: str) -> None:
    assert not known(*facts).equal(parse_dim(lhs), parse_dim(rhs))


@pytest.mark.fault("V5")
@pytest.mark.parametrize("rounds", [60, pytest.param(300, marks=pytest.mark.slow)])
def test_what_is_proven_holds_for_all_numbers_that_keep_the_facts(rounds: int) -> None:
    """Random facts and claims over small numbers: a proof has no counterexample."""
    random.seed(11)
    sides = ["s0", "s1", "u0", "floordiv(s0, 2)", "mod(s1, 3)", "min(s0, u0)", "max(s1, 2)", "3",
             "s0 + s1", "2*s1", "s0*s1", "floordiv(s1 + 1, 2)", "1"]  # fmt: skip
    operations = {"==": int.__eq__, "<=": int.__le__, "<": int.__lt__, "!=": int.__ne__}
    points = [
        {"s0": a, "s1": b, "u0": c, "s2": 5, "h0": a // 2 + b}
        for a, b, c in itertools.product(range(2, 9), range(8), range(-3, 8))
    ]
    dims = {side: parse_dim(side) for side in sides}
    values = {side: [evaluate(dim, p) for p in points] for side, dim in dims.items()}
    proofs = 0
    for _ in range(rounds):
        facts = [
            (random.choice(sides), random.choice(["==", "==", "<=", "<", "!="]),
             random.choice(sides)) for _ in range(random.randint(1, 3))
        ]  # fmt: skip
        found = known(*(" ".join(f) for f in facts))
        holding = [
            k for k in range(len(points))
            if all(operations[r](values[a][k], values[b][k]) for a, r, b in facts)
        ]  # fmt: skip
        for lhs, rhs in itertools.combinations(sides, 2):
            if found.equal(dims[lhs], dims[rhs]):
                proofs += bool(holding)
                assert all(values[lhs][k] == values[rhs][k] for k in holding), (facts, lhs, rhs)
    assert proofs > rounds // 3
