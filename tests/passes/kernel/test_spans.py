"""What is known of conditions in a span of the vector axis, and where spans are cut."""

from __future__ import annotations

import itertools

import pytest

import irc
from irc.dialects import loop
from irc.ir.core import Value
from irc.passes.kernel.cpu.emit import VectorScope
from irc.passes.kernel.cpu.spans import border, decide, spans
from irc.passes.kernel.cpu.vectors import Vectors

HOLDS = {
    "slt": int.__lt__, "sle": int.__le__, "sgt": int.__gt__, "sge": int.__ge__,
    "eq": int.__eq__, "ne": int.__ne__, "ult": int.__lt__,
}  # fmt: skip
ARRAY = "tensor<[64, 64] x f32, strides [64, 1]>"


def body(*lines):
    """The operations of a body by the names of their results, and what must be kept."""
    module = irc.parse(f"""
    func.func @main(%x: {ARRAY}) -> {ARRAY} attributes {{level = "loop"}} {{
      %n0 = sym.bind_size %x {{dim = 0, symbol = "n"}} : ({ARRAY}) -> index
      %y = loop.compute par(j: 64, i: 64) -> map {{
        {chr(10).join(lines)}
        %out = loop.read %x[j, i] : f32
        loop.yield %out }} : {ARRAY}
      func.return %y : {ARRAY} }}""")
    compute = next(op for op in module.walk() if isinstance(op, loop.ComputeOp))
    return {o.results[0].name_hint: o for o in compute.block.ops if o.results}, module


def comparison(expression, predicate, bound="arith.constant 32 : index", swapped=False):
    """Lines that compare an index expression."""
    operands = "%b, %a" if swapped else "%a, %b"
    return (f"%a = loop.index {{expression = #sym<{expression}>}} : index", f"%b = {bound}",
            f"%c = arith.cmpi {predicate}, {operands} : index")  # fmt: skip


@pytest.mark.parametrize("predicate", HOLDS)
@pytest.mark.parametrize("shift", [0, 5, -3])
def test_a_comparison_is_known_where_it_is_the_same_at_every_point(predicate, shift):
    ops, _ = body(*comparison(f"i + {shift}".replace("+ -", "- "), predicate))
    at = border(ops["c"], "i")
    assert (at is None) == (predicate in ("eq", "ne", "ult"))
    edges = (0, 26, 27, 28, 34, 35, 36, 37, 64)
    for low, high in itertools.combinations(edges, 2):
        scope = VectorScope()
        scope.span = low, high
        outcomes = {HOLDS[predicate](p + shift, 32) for p in range(low, high)}
        known = len(outcomes) == 1 and at is not None
        assert decide(ops["c"], "i", scope) is (outcomes.pop() if known else None)
    assert decide(ops["c"], "i", VectorScope()) is None


@pytest.mark.parametrize(
    "lines",
    [
        comparison("2*i", "slt"),
        comparison("j", "slt"),
        comparison("i + j", "slt"),
        comparison("i + n", "slt"),
        comparison("floordiv(i, 2)", "slt"),
        comparison("i", "slt", "loop.index {expression = #sym<j>} : index"),
        comparison("i", "slt", "loop.index {expression = #sym<n>} : index"),
        comparison("i", "slt", swapped=True),
        ("%b = arith.constant 32 : index", "%c = arith.cmpi slt, %b, %b : index"),
        ("%b = arith.constant true", "%c = arith.andi %b, %b : i1"),
    ],
    ids=str,
)
def test_other_conditions_have_no_border(lines):
    ops, _ = body(*lines)
    assert border(ops["c"], "i") is None
    scope = VectorScope()
    scope.span = 0, 1
    assert decide(ops["c"], "i", scope) is None


LOGIC = """\
%p = arith.constant true
%q = arith.constant false
%and = arith.andi %p, %q : i1
%or = arith.ori %p, %q : i1
%xor = arith.xori %p, %q : i1
%n = arith.constant 1 : i32
%m = arith.constant 2 : i32
%sel = arith.select %p, %n, %m : i32
%ands = arith.andi %n, %m : i32
%add = arith.addi %n, %m : i32"""
TABLE = {
    # What is known of p and q: what `and`, `or`, `xor` and `sel` are.
    (None, None): (None, None, None, None),
    (True, None): ("q", True, None, "n"),
    (False, None): (False, "q", None, "m"),
    (None, True): ("p", True, None, None),
    (None, False): (False, "p", None, None),
    (True, True): ("q", True, False, "n"),
    (True, False): ("q", True, True, "n"),
    (False, True): (False, "q", True, "m"),
    (False, False): (False, "q", False, "m"),
}


@pytest.mark.parametrize("known", TABLE, ids=str)
def test_what_follows_from_known_conditions(known):
    ops, _ = body(LOGIC)
    scope = VectorScope()
    scope.known = {
        ops[name].results[0]: value
        for name, value in zip("pq", known, strict=True) if value is not None
    }  # fmt: skip
    for name, expected in zip(("and", "or", "xor", "sel"), TABLE[known], strict=True):
        found = decide(ops[name], "i", scope)
        if isinstance(found, Value):
            found = found.name_hint
        assert found == expected and type(found) is type(expected)
    for name in ("ands", "add"):
        assert decide(ops[name], "i", scope) is None


def cuts(bounds, lower=0, upper=64, width=8):
    lines = [line for k, bound in enumerate(bounds) for line in (
        f"%a{k} = loop.index {{expression = #sym<i>}} : index",
        f"%b{k} = arith.constant {bound} : index",
        f"%c{k} = arith.cmpi slt, %a{k}, %b{k} : index",
    )]  # fmt: skip
    ops, _ = body(*lines)
    return spans(ops.values(), Vectors("i", width, 1, "mask", 5), lower, upper)


@pytest.mark.parametrize(
    "bounds, expected",
    [
        ((), [(0, 64)]),
        ((32,), [(0, 32), (32, 64)]),
        ((30,), [(0, 24), (24, 32), (32, 64)]),
        ((0,), [(0, 64)]),
        ((64,), [(0, 64)]),
        ((-5, 70), [(0, 64)]),
        ((3,), [(0, 8), (8, 64)]),
        ((8, 16, 24, 32), [(0, 8), (8, 16), (16, 24), (24, 32), (32, 64)]),
        ((8, 16, 24, 32, 40), [(0, 64)]),
    ],
    ids=str,
)
def test_spans_are_cut_at_whole_vectors(bounds, expected):
    assert cuts(bounds) == expected


def test_spans_of_an_axis_without_points_or_known_ends():
    assert cuts((32,), 0, 0) == [(0, 0)]
    end = body("%b = arith.constant 32 : index")[0]["b"].results[0]
    assert cuts((32,), 0, end) == [(0, end)] and cuts((32,), end, 64) == [(end, 64)]
