"""What is known of positions: as which index expressions scalars are seen, which comparisons the
extents decide, which reads and scatters need no data any more."""

from __future__ import annotations

from typing import Any

import pytest

from irc.ir.text.printer import print_op
from irc.ir.verifier import verify
from irc.passes.common.bodies import clean_block, extents_of
from irc.passes.loop import positions
from irc.passes.loop.positions import (
    fold_scatters,
    is_true,
    map_position,
    position,
    position_folds,
)
from tests.passes.loop.texts import computes, parsed

ARGUMENTS = "%x: f32[4, 6], %p: i64[4], %s: i64, %u: index, %t: i1, %o: f32"
SCALARS = """
  %i = loop.index {expression = #sym<i0>} : index
  %j = loop.index {expression = #sym<i1>} : index
  %k = loop.read %p[i0] : i64
  %three = arith.constant 3 : i64
  %small = arith.constant 3 : i32
  %l = arith.index_cast %i : index to i64
"""


def scalars(body: str, value: str, type_: str, axes: str = "par(i0: 4, i1: 6)") -> Any:
    """A compute that yields `value` of a body with the scalars above."""
    text = f"%y = loop.compute {axes} -> map {{ {SCALARS} {body} loop.yield {value} }} : {type_}"
    (op,) = computes(parsed(ARGUMENTS, text))
    return op


VALUES = {
    "an axis": ("", "%i", "i0"),
    "an axis as 64 bits": ("", "%l", "i0"),
    "a number": ("", "%three", "3"),
    "an index": ("%n = arith.constant 5 : index", "%n", "5"),
    "a sum": ("%n = arith.addi %l, %three : i64", "%n", "i0 + 3"),
    "a difference": ("%n = arith.subi %l, %three : i64", "%n", "i0 + -3"),
    "a product": ("%n = arith.muli %l, %three : i64", "%n", "i0*3"),
    "of both axes": ("%n = arith.addi %i, %j : index", "%n", "i0 + i1"),
    "a quotient": ("%n = arith.divsi %l, %three : i64", "%n", "None"),
    "data": ("", "%k", "None"),
    "data added on the right": ("%n = arith.addi %l, %k : i64", "%n", "None"),
    "data added on the left": ("%n = arith.addi %k, %l : i64", "%n", "None"),
    "an argument": ("", "%s", "None"),
    "an index argument": ("", "%u", "None"),
    "32 bits": ("", "%small", "None"),
    "32 bits of an axis": ("%n = arith.index_cast %i : index to i32", "%n", "None"),
    "an axis through 32 bits": (
        "%m = arith.index_cast %i : index to i32\n%n = arith.index_cast %m : i32 to index",
        "%n", "None"),
    "an expression of data": (
        "%n = loop.index %k {expression = #sym<_0 + i0>} : (i64) -> index", "%n", "None"),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_position(name):
    body, value, wanted = VALUES[name]
    op = scalars(body, value, "i64[4, 6]")
    found = position(op.yield_op.values[0])
    assert str(found) in (wanted, wanted.replace("+ -3", "- 3"))


def chain(length: int, op: str) -> str:
    """So many operations one after the other, from %l on."""
    steps = {"addi": "%n{} = arith.addi %n{}, %three : i64",
             "addi on the right": "%n{} = arith.addi %three, %n{} : i64",
             "index_cast": "%n{} = arith.index_cast %n{} : {} to {}"}  # fmt: skip
    kinds = ["index", "i64"]
    made = "%n0 = arith.muli %l, %three : i64\n"
    if op == "index_cast":
        made = "%n0 = arith.addi %i, %i : index\n"
    for k in range(1, length):
        made += steps[op].format(k, k - 1, kinds[(k - 1) % 2], kinds[k % 2]) + "\n"
    return made


@pytest.mark.parametrize("op", ["addi", "addi on the right", "index_cast"])
def test_positions_are_looked_for_so_many_operations_deep(op):
    """The last of 12 values in a row that makes the position is still seen, but none behind."""
    deepest = 11 if op == "index_cast" else 10
    for length in (2, 6, deepest, deepest + 1, deepest + 2):
        compute = scalars(chain(length, op), f"%n{length - 1}", "i64[4, 6]")
        found = position(compute.yield_op.values[0])
        assert (found is not None) == (length <= deepest), length


# Predicate, what is compared with i0 in [0, 4): what is known.
DECIDED = [
    ("sge", 0, True), ("sge", 1, None), ("sge", 3, None), ("sge", 4, False),
    ("sgt", -1, True), ("sgt", 0, None), ("sgt", 2, None), ("sgt", 3, False),
    ("slt", 4, True), ("slt", 3, None), ("slt", 1, None), ("slt", 0, False),
    ("sle", 3, True), ("sle", 2, None), ("sle", 0, None), ("sle", -1, False),
    ("eq", -1, False), ("eq", 0, None), ("eq", 3, None), ("eq", 4, False),
    ("ne", -1, True), ("ne", 0, None), ("ne", 3, None), ("ne", 4, True),
    ("ult", 9, None), ("uge", 9, None),
]  # fmt: skip


def folded(op: Any) -> int:
    """Clean a compute's body by what is known of positions; how many operations went."""
    return clean_block(op.block, position_folds(op.block, extents_of(op)))


def fold(inner: Any, op: Any) -> Any:
    """A simpler value for one operation of a compute's body, or None."""
    return position_folds(op.block, extents_of(op))(inner)


def text_of(value: Any) -> str:
    """The operation that makes a value, as text without the names and types of the results."""
    return print_op(value.defining_op).partition(" = ")[2].rpartition(" : ")[0]


@pytest.mark.parametrize(("predicate", "number", "outcome"), DECIDED)
@pytest.mark.parametrize("exchanged", [False, True])
def test_comparisons(predicate, number, outcome, exchanged):
    pair, flipped = "%i, %c", predicate
    if exchanged:
        pair = "%c, %i"
        flipped = predicate.translate(str.maketrans("gl", "lg"))
        assert len(flipped) == len(predicate)
    op = scalars(f"""%c = arith.constant {number} : index
      %e = arith.cmpi {flipped}, {pair} : index""", "%e", "i1[4, 6]")  # fmt: skip
    compared = op.yield_op.values[0].defining_op
    found = fold(compared, op)
    assert (None if found is None else found.defining_op.attributes["value"].value) is outcome


SAME = "%a = arith.addi %i, %j : index\n%b = arith.addi %j, %i : index"
APART = "%c = arith.constant 6 : index\n%a = arith.addi %i, %c : index"
MAYBE = "%c = arith.constant 5 : index\n%a = arith.addi %i, %c : index"


@pytest.mark.parametrize(
    ("body", "pair", "equal"), [(SAME, "%a, %b", True), (APART, "%a, %j", False),
                                (APART, "%j, %a", False), (MAYBE, "%a, %j", None),
                                ("", "%i, %j", None)],
)  # fmt: skip
def test_positions_that_are_equal_or_never_are(body, pair, equal):
    for predicate in ("eq", "ne"):
        op = scalars(f"{body}\n%e = arith.cmpi {predicate}, {pair} : index", "%e", "i1[4, 6]")
        outcome = fold(op.yield_op.values[0].defining_op, op)
        expected = "None" if equal is None else str(equal is (predicate == "eq"))
        value = None if outcome is None else outcome.defining_op.attributes["value"].value
        assert str(value) == expected


@pytest.mark.parametrize("pair", ["%k, %l", "%l, %k", "%k, %k"])
def test_comparisons_of_data(pair):
    op = scalars(f"%e = arith.cmpi slt, {pair} : i64", "%e", "i1[4, 6]")
    compared = op.yield_op.values[0].defining_op
    assert fold(compared, op) is None


@pytest.mark.parametrize("name", ["addf", "constant"])
def test_other_operations_stay(name):
    body = """%a = loop.read %x[i0, i1] : f32
      %addf = arith.addf %a, %a : f32
      %constant = arith.constant 2.0 : f32"""
    op = scalars(body, f"%{name}", "f32[4, 6]")
    made = op.yield_op.values[0].defining_op
    assert made.name == f"arith.{name}"
    assert fold(made, op) is None


TRUE, FALSE = "%m = arith.constant true\n", "%m = arith.constant false\n"
DATA = "%m = arith.cmpi slt, %k, %three : i64\n"
MASKS = {
    "none": ("", "", None),
    "true": (TRUE, "(where %m)", "loop.read %x[i0, i1]"),
    "true, else": (TRUE, "(where %m else %o)", "loop.read %x[i0, i1]"),
    "false": (FALSE, "(where %m)", "arith.constant 0"),
    "false, else": (FALSE, "(where %m else %c)", "arith.constant 7"),
    "data": (DATA, "(where %m)", None),
    "an argument": ("", "(where %t)", None),
}


@pytest.mark.parametrize("name", MASKS)
def test_masks_that_are_decided(name):
    made, mask, wanted = MASKS[name]
    op = scalars(f"""%c = arith.constant 7.0 : f32
      {made}%a = loop.read %x[i0, i1] {mask} : f32""", "%a", "f32[4, 6]")  # fmt: skip
    read = op.yield_op.values[0].defining_op
    found = fold(read, op)
    if wanted is None:
        assert found is None
    else:
        assert text_of(found).startswith(wanted)


@pytest.mark.parametrize(
    ("made", "known"), [(TRUE, True), (FALSE, False), (DATA, False), ("%m = arith.andi %t, %t : i1",
                                                                      False)],
)  # fmt: skip
def test_only_a_constant_is_known_to_be_true(made, known):
    assert is_true(scalars(made, "%m", "i1[4, 6]").yield_op.values[0]) is known
    assert not is_true(scalars("", "%t", "i1[4, 6]").yield_op.values[0])


def test_the_bounds_of_a_plain_read_are_not_asked_for(monkeypatch):
    monkeypatch.setattr(positions, "provable_le", None)
    op = scalars("%v = loop.read %x[i0, i1] : f32", "%v", "f32[4, 6]")
    assert fold(op.yield_op.values[0].defining_op, op) is None


# Made positions, indices: the indices afterwards (None: as before).
READS = {
    "no position": ("", "i0, i1", None),
    "an axis": ("%a = arith.addi %i, %i : index\n%n = arith.subi %a, %i : index", "%n, i1",
                "i0, i1"),
    "the last place": ("%c = arith.constant 2 : index\n%n = arith.addi %j, %c : index", "0, %n - 2",
                       "0, i1"),
    "reversed": ("%c = arith.constant 3 : index\n%n = arith.subi %c, %i : index", "%n, i1",
                 "3 - i0, i1"),
    "one place behind": ("%c = arith.constant 1 : index\n%n = arith.addi %i, %c : index", "%n, i1",
                         None),
    "one place before": ("%c = arith.constant 1 : index\n%n = arith.subi %i, %c : index", "%n, i1",
                         None),
    "data": ("%n = arith.index_cast %k : i64 to index", "%n, i1", None),
    "an axis and data": ("%n = arith.index_cast %k : i64 to index", "%n, %j", "%n, i1"),
    "behind in one dimension": (
        "%c = arith.constant 1 : index\n%n = arith.addi %j, %c : index", "%i, %n", "i0, %n"),
    "one position twice, behind once": ("", "%j, %j", None),
}  # fmt: skip


@pytest.mark.parametrize("name", READS)
def test_reads_at_known_positions(name):
    body, indices, wanted = READS[name]
    op = scalars(f"{body}\n%v = loop.read %x[{indices}] : f32", "%v", "f32[4, 6]")
    read = op.yield_op.values[0].defining_op
    found = fold(read, op)
    if wanted is None:
        assert found is None
        return
    assert text_of(found).replace("-i0 + 3", "3 - i0") == f"loop.read %x[{wanted}]"


def test_a_masked_read_is_at_known_positions_wherever_they_are():
    """The mask says where it happens; at data it stays as it is."""
    for indices, wanted in (("%n, i1", "i0 + 1, i1"), ("%q, i1", None)):
        body = f"""%c = arith.constant 1 : index
          %n = arith.addi %i, %c : index
          %q = arith.index_cast %k : i64 to index
          {DATA}%v = loop.read %x[{indices}] (where %m else %o) : f32"""
        op = scalars(body, "%v", "f32[4, 6]")
        read = op.yield_op.values[0].defining_op
        found = fold(read, op)
        if wanted is None:
            assert found is None
        else:
            assert text_of(found) == f"loop.read %x[{wanted}] (where %m else %o)"


def test_masks_go_before_positions():
    op = scalars(f"""%c = arith.constant 1 : index
      %n = arith.addi %i, %c : index
      {FALSE}%v = loop.read %x[%n, i1] (where %m else %o) : f32""", "%v", "f32[4, 6]")  # fmt: skip
    assert folded(op) > 0
    assert op.yield_op.values[0].name_hint == "o"


# Positions, an expression of these: the expression afterwards (None: as before).
INDICES = {
    "no position": ("", "", "i0 + i1", None),
    "an axis": ("", "%j", "_0 + i0", "i0 + i1"),
    "a sum": ("%n = arith.addi %l, %three : i64", "%n", "2*_0", "i0*2 + 6"),
    "two": ("%n = arith.addi %i, %j : index", "%n, %three", "_0 + 4*_1", "i0 + i1 + 12"),
    "outside of every array": ("%n = arith.subi %l, %three : i64", "%n", "_0 - 9", "i0 - 12"),
    "data": ("", "%k", "_0 + i0", None),
    "one known beside data": ("", "%k, %j", "_0 + _1", None),
}


@pytest.mark.parametrize("name", INDICES)
def test_index_expressions_of_known_positions(name):
    body, operands, expression, expected = INDICES[name]
    types = {"%k": "i64", "%three": "i64", "%j": "index", "%n": "index"}
    listed = [types[o] if "i64" not in body else "i64" for o in operands.split(", ") if o]
    type_ = f"({', '.join(listed)}) -> index" if listed else "index"
    line = f"%e = loop.index {operands} {{expression = #sym<{expression}>}} : {type_}"
    op = scalars(f"{body}\n{line}", "%e", "i64[4, 6]")
    value = fold(op.yield_op.values[0].defining_op, op)
    if expected is None:
        assert value is None
    else:
        assert not value.defining_op.operands and str(position(value)) == expected


SCATTERS = {
    "an axis": ("%j", "", "par(i0: 4, i1: 6)", "i1", 0),
    "behind": ("%j", "", "par(i0: 4, i1: 7)", "_0", 1),
    "behind under a mask": ("%j", "masks(%m)", "par(i0: 4, i1: 7)", "i1", 0),
    "data": ("%q", "", "par(i0: 4, i1: 6)", "_0", 1),
}


@pytest.mark.parametrize("name", SCATTERS)
def test_scatters_to_known_places(name):
    value, masks, axes, index, count = SCATTERS[name]
    text = f"""%y, %z = loop.compute {axes} inits(%b) -> map, scatter(sum, [_0]) {{ {SCALARS}
      %q = arith.index_cast %k : i64 to index
      {DATA}%a = arith.constant 2.0 : f32
      loop.yield %a, %a extra({value}) {masks} }} : f32[4, {axes[-2]}], f32[6]"""
    module = parsed(ARGUMENTS + ", %b: f32[6]", text)
    (op,) = computes(module)
    fold_scatters(op, extents_of(op))
    verify(module)
    assert [str(d) for d in op.output_list[1].index_dims] == [index]
    assert len(op.yield_op.extra) == count and len(op.yield_op.masks) == bool(masks)
    assert op.output_list[0].kind == "map"


def test_each_scatter_has_its_own_positions():
    text = f"""%y, %z = loop.compute par(i0: 4, i1: 6) inits(%b, %d)
      -> scatter(sum, [_0]), scatter(max, [_0, _1]) {{ {SCALARS}
      %q = arith.index_cast %k : i64 to index
      %a = arith.constant 2.0 : f32
      loop.yield %a, %a extra(%j, %q, %j) }} : f32[6], f32[9, 6]"""
    module = parsed(ARGUMENTS + ", %b: f32[6], %d: f32[9, 6]", text)
    (op,) = computes(module)
    fold_scatters(op, extents_of(op))
    verify(module)
    assert [[str(d) for d in o.index_dims] for o in op.output_list] == [["i1"], ["_0", "i1"]]
    assert [v.name_hint for v in op.yield_op.extra] == ["q"]


# -- maps


def index_map(name: str, body: str, value: str, type_: str = "i64[4, 6]") -> str:
    """A map over two axes that may read others."""
    return f"%{name} = loop.compute par(i0: 4, i1: 6) -> map {{ {SCALARS} {body} " \
           f"loop.yield {value} }} : {type_}\n"  # fmt: skip


ROW = index_map("a", "%n = arith.muli %l, %three : i64", "%n")
COLUMN = index_map("b", "%n = arith.index_cast %j : index to i64", "%n")
PAIR = "%p1 = loop.read %a[i0, 0] : i64\n%p2 = loop.read %b[i0, i1] : i64\n"
MOVED = "%p1 = loop.read %a[3 - i0, i1] : i64\n"


def flag(bound: int, name: str = "f") -> str:
    """A map of whether another's elements, which are at most 9, are less."""
    return index_map(name, f"""%p1 = loop.read %a[i0, i1] : i64
      %c = arith.constant {bound} : i64
      %e = arith.cmpi slt, %p1, %c : i64""", "%e", "i1[4, 6]")  # fmt: skip


READ_FLAG = "%g = loop.read %f[i0, i1] : i1\n"
CHOICE = PAIR + READ_FLAG + "%n = arith.select %g, %p1, %p2 : i64"

MAPS = {
    "an axis": (index_map("y", "", "%l"), "i0"),
    "a number": (index_map("y", "", "%three"), "3"),
    "another map": (ROW + index_map("y", "%n = loop.read %a[i0, i1] : i64", "%n"), "i0*3"),
    "another map at other places": (ROW + index_map("y", MOVED, "%p1"), "-i0*3 + 9"),
    "a sum of maps": (
        ROW + COLUMN + index_map("y", PAIR + "%n = arith.addi %p1, %p2 : i64", "%n"), "i0*3 + i1"),
    "a difference of maps": (
        ROW + COLUMN + index_map("y", PAIR + "%n = arith.subi %p1, %p2 : i64", "%n"), "i0*3 - i1"),
    "a product of maps": (
        ROW + COLUMN + index_map("y", PAIR + "%n = arith.muli %p1, %p2 : i64", "%n"), "i0*i1*3"),
    "a sum with an axis": (
        ROW + index_map("y", MOVED + "%n = arith.addi %p1, %l : i64", "%n"), "-i0*2 + 9"),
    "casts": (
        ROW + index_map("y", MOVED + """%m = arith.index_cast %p1 : i64 to index
          %n = arith.index_cast %m : index to i64""", "%n"), "-i0*3 + 9"),
    "a comparison that always holds": (ROW + flag(10, "y"), "True"),
    "a comparison that never holds": (ROW + flag(0, "y"), "False"),
    "a comparison that may hold": (ROW + flag(9, "y"), "None"),
    "the first choice": (ROW + COLUMN + flag(10) + index_map("y", CHOICE, "%n"), "i0*3"),
    "the second choice": (ROW + COLUMN + flag(0) + index_map("y", CHOICE, "%n"), "i1"),
    "either choice": (ROW + COLUMN + flag(9) + index_map("y", CHOICE, "%n"), "None"),
    "the choice beside data": (
        ROW + flag(0) + index_map("y", READ_FLAG + "%n = arith.select %g, %k, %l : i64",
                                         "%n"), "i0"),
    "an outcome of another map": (
        ROW + flag(10) + index_map("y", READ_FLAG, "%g", "i1[4, 6]"), "True"),
    "a sum of outcomes": (
        ROW + flag(10) + index_map(
            "y", READ_FLAG + "%n = arith.addi %g, %g : i1", "%n", "i1[4, 6]"), "None"),
    "data": (index_map("y", "", "%k"), "None"),
    "data added": (ROW + index_map("y", MOVED + "%n = arith.addi %p1, %k : i64", "%n"), "None"),
    "a quotient": (ROW + index_map("y", MOVED + "%n = arith.divsi %p1, %three : i64", "%n"),
                   "None"),
    "32 bits": (index_map("y", "", "%small", "i32[4, 6]"), "None"),
    "by way of 32 bits": (
        index_map("y", """%m = arith.index_cast %i : index to i32
          %h = arith.index_cast %m : i32 to index
          %n = arith.index_cast %h : index to i64""", "%n"), "None"),
    "32 bits read": (
        index_map("a", "", "%small", "i32[4, 6]")
        + index_map("y", """%p1 = loop.read %a[i0, i1] : i32
          %h = arith.index_cast %p1 : i32 to index
          %n = arith.index_cast %h : index to i64""", "%n"), "None"),
    "under a mask": (
        ROW + index_map("y", "%n = loop.read %a[i0, i1] (where %t) : i64", "%n"), "None"),
    "at places that are data": (
        ROW + index_map("y", "%q = arith.index_cast %k : i64 to index\n"
                        "%n = loop.read %a[%q, i1] : i64", "%n"), "None"),
    "floats": (index_map("y", "%n = loop.read %x[i0, i1] : f32", "%n", "f32[4, 6]"), "None"),
    "a reduction": (
        f"""%y = loop.compute par(i0: 4) red(i1: 6) -> reduce(sum, i64) {{ {SCALARS}
          loop.yield %l }} : i64[4]""", "None"),
    "two results": (
        f"""%y, %z = loop.compute par(i0: 4, i1: 6) -> map, map {{ {SCALARS}
          loop.yield %l, %l }} : i64[4, 6], i64[4, 6]""", "None"),
    "maps of maps of maps": (
        ROW + index_map("b", MOVED, "%p1") + index_map(
            "c", "%n = loop.read %b[3 - i0, i1] : i64", "%n") + index_map(
            "y", "%n = loop.read %c[i0, 5 - i1] : i64", "%n"), "i0*3"),
}  # fmt: skip


@pytest.mark.parametrize("name", MAPS)
def test_maps_that_are_index_expressions(name):
    text, expected = MAPS[name]
    op = computes(parsed(ARGUMENTS, text))[-1]
    assert str(map_position(op, {})) == expected


def test_what_is_no_compute_is_no_map():
    module = parsed(ARGUMENTS, ROW)
    for op in (None, module.lookup("main"), computes(module)[0].yield_op):
        assert map_position(op, {}) is None


def test_each_map_is_looked_at_once(monkeypatch):
    text = ROW + index_map("b", MOVED, "%p1") + index_map(
        "y", "%p1 = loop.read %b[i0, i1] : i64\n%p2 = loop.read %b[i0, 0] : i64\n"
        "%n = arith.addi %p1, %p2 : i64", "%n")  # fmt: skip
    first, second, last = ops = computes(parsed(ARGUMENTS, text))
    memo: dict[Any, Any] = {}
    assert str(map_position(last, memo)) == "-i0*6 + 18"
    assert {op: str(known) for op, known in memo.items()} == dict(
        zip(ops, ("i0*3", "-i0*3 + 9", "-i0*6 + 18"), strict=True)
    )
    monkeypatch.setattr(positions, "_map_position", None)
    assert map_position(last, memo) is memo[last]
    assert map_position(second, {second: None}) is None
