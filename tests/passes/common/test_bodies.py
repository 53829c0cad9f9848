"""The helpers of scalar bodies: masks, folds, placeholders, bounds, signs."""

from __future__ import annotations

import pytest

import irc
from irc.analysis.positions import placeholder_number
from irc.dialects.sym.ranges import RangeAttr
from irc.ir import attributes as A
from irc.ir import types as T
from irc.ir.builder import Builder
from irc.ir.definition import Op
from irc.ir.location import FileLocation
from irc.ir.registry import lookup_op
from irc.ir.symbols import symbol
from irc.passes.common.bodies import (
    Body,
    _fold,
    clean_block,
    extents_of,
    make_compute,
)
from irc.passes.loop.convert_to_loop.scalar_semantics import is_unsigned
from irc.passes.loop.demand import is_inside
from tests.passes.loop.texts import computes, expanded, parsed

ARGUMENTS = "%x: f32[8, 16], %b: i1, %c: i1, %f: f32, %k: i64[8]"


def only(body: str, axes: str = "par(i0: 8)", type_: str = "f32[8]"):
    text = f"%y = loop.compute {axes} -> map {{ {body} }} : {type_}\n"
    return computes(parsed(ARGUMENTS, text))[0]


def test_both_masks():
    op = only("%z = loop.read %x[i0, 0] : f32 loop.yield %z")
    one, other = op.parent.arguments[1:3]
    body = Body()
    assert body.both(None, None) is None
    assert body.both(one, None) is one and body.both(None, one) is one
    assert body.both(one, one) is one and body.block.first is None
    made = body.both(one, other).defining_op
    assert made.name == "arith.andi" and list(made.operands) == [one, other]


@pytest.mark.parametrize(
    ("name", "number"),
    [("_0", 0), ("_12", 12), ("i0", None), ("_", None), ("_x", None), ("s12", None), ("x_1", None),
     ("_1x", None)],
)  # fmt: skip
def test_placeholders(name, number):
    assert placeholder_number(name) == number


# -- folds

SUM = "%n = arith.constant 2.0 : f32 %z = arith.addf {0} : f32 loop.yield %z"
TWO, THREE = A.FloatAttr(2.0, T.f32), A.FloatAttr(3.0, T.f32)


@pytest.mark.parametrize(("operands", "given"), [
    ("%n, %n", [TWO, TWO]), ("%n, %f", [TWO, None]), ("%f, %n", [None, TWO])])  # fmt: skip
def test_what_a_fold_is_given(operands, given, monkeypatch):
    seen = []
    cls = lookup_op("arith.addf")
    monkeypatch.setattr(cls, "fold", lambda self, constants: seen.append(constants))
    op = only(SUM.format(operands))
    assert _fold(op.yield_op.values[0].defining_op, op.block) is None
    assert seen == [given]


def test_an_attribute_of_something_else_is_no_constant(monkeypatch):
    seen = []
    monkeypatch.setattr(
        lookup_op("arith.addf"), "fold", lambda self, constants: seen.append(constants)
    )
    op = only("%n = arith.negf %f {value = 2.0 : f32} : f32\n"
              "%z = arith.addf %n, %n : f32 loop.yield %z")  # fmt: skip
    assert _fold(op.yield_op.values[0].defining_op, op.block) is None
    assert seen == [[None, None]]


@pytest.mark.parametrize("wrapped", [lambda v: v, lambda v: [v], lambda v: (v,)])
def test_what_a_fold_gives(wrapped, monkeypatch):
    """A value, or an attribute of which a constant before the operation is made."""
    op = only(SUM.format("%n, %f"))
    made = op.yield_op.values[0].defining_op
    monkeypatch.setattr(type(made), "fold", lambda self, constants: wrapped(self.operands[1]))
    assert _fold(made, op.block) is made.operands[1]
    monkeypatch.setattr(type(made), "fold", lambda self, constants: wrapped(THREE))
    found = _fold(made, op.block)
    assert found.defining_op is made.prev and found.type is T.f32
    assert found.defining_op.attributes["value"] is THREE
    monkeypatch.setattr(type(made), "fold", lambda self, constants: wrapped(None))
    assert _fold(made, op.block) is None


def test_what_has_no_fold_is_not_asked(monkeypatch):
    op = only("%z = loop.read %x[i0, 0] : f32 loop.yield %z")
    monkeypatch.setattr(Op, "fold", None)
    assert type(op.yield_op.values[0].defining_op).fold is None
    assert _fold(op.yield_op.values[0].defining_op, op.block) is None


def test_constants_stay():
    op = only("%z = arith.constant 2.0 : f32 loop.yield %z")
    constant = op.yield_op.values[0].defining_op
    assert _fold(constant, op.block) is None
    assert clean_block(op.block) == 0 and op.yield_op.values[0].defining_op is constant


def test_operations_of_other_dialects_stay():
    text = expanded("""func.func @main() attributes {level = "loop"} {
      %y = loop.compute par(i0: 8) -> map {
        %z = "other.op"() : () -> f32 loop.yield %z } : f32[8] func.return }""")  # fmt: skip
    (op,) = computes(irc.parse(text, allow_unregistered=True))
    assert _fold(op.yield_op.values[0].defining_op, op.block) is None


# -- bounds and signs


@pytest.mark.parametrize(
    ("indices", "inside"),
    [("i0, 0", True), ("i0, 15", True), ("7 - i0, i0 + 8", True), ("i0 - 1, 0", False),
     ("i0 + 1, 0", False), ("0, i0*2 + 2", False), ("0, i0 - 1", False), ("0, i0*2 + 1", True),
     ("%p, 0", False), ("i0, 16", False), ("-1, 0", False)],
)  # fmt: skip
def test_reads_in_bounds(indices, inside):
    op = only(f"""%p = loop.read %k[i0] : i64
      %z = loop.read %x[{indices}] (where %b) : f32 loop.yield %z""")  # fmt: skip
    assert is_inside(op.yield_op.values[0].defining_op, extents_of(op)) is inside


def test_a_position_that_does_not_matter_is_in_no_bounds():
    text = "%p = loop.read %k[i0] : i64 %z = loop.read %x[i0, 0] positions(%p) : f32 loop.yield %z"
    op = only(text)
    assert not is_inside(op.yield_op.values[0].defining_op, extents_of(op))


@pytest.mark.parametrize(
    ("element", "unsigned"),
    [(T.i1, True), (T.ui8, True), (T.i8, False), (T.i64, False), (T.f32, False), (T.bf16, False)],
)
def test_unsigned_elements(element, unsigned):
    assert is_unsigned(element) is unsigned


@pytest.mark.parametrize(
    ("value", "type_", "wanted"),
    [(True, T.i1, A.BoolAttr(True)), (0, T.i1, A.BoolAttr(False)),
     (5, T.i32, A.IntegerAttr(5, T.i32)), (2, T.f32, A.FloatAttr(2.0, T.f32))],
)  # fmt: skip
def test_constants_are_attributes_of_their_type(value, type_, wanted):
    constant = Body().constant(value, type_)
    assert constant.type is type_ and constant.defining_op.attributes["value"] is wanted


def test_a_compute_is_where_it_is_built_or_where_and_when_what_it_stands_for_is():
    op = only("%z = loop.read %x[i0, 0] : f32 loop.yield %z")
    builder = Builder.before(op)
    builder.location = FileLocation("model.py", 3, 0)
    op.location = FileLocation("other.py", 7, 0)
    op.attributes["when"] = RangeAttr(symbol("s0"), 2, 5)
    for given, location, when in (
        (None, builder.location, None),
        (op, op.location, op.attributes["when"]),
    ):
        body = Body()
        body.finish([body.constant(1.0, T.f32)])
        types = [op.results[0].type]
        made = make_compute(builder, op.attributes["axes"], op.output_list, types, body, (), given)
        assert made.location is location
        assert made.attributes.get("when") is when


def test_a_fold_of_ones_own_is_asked_where_the_dialects_have_none():
    op = only("""%z = loop.read %x[i0, 0] : f32
        %n = arith.negf %z : f32
        %o = arith.constant -0.0 : f32
        %s = arith.addf %n, %o : f32 loop.yield %s""")
    asked = []

    def fold(inner):
        asked.append(inner.name)
        return inner.operands[0] if inner.name == "arith.negf" else None

    clean_block(op.block, fold)
    assert "arith.negf" in asked
    assert "arith.addf" not in asked, "x + -0.0 is folded by the dialect"
    assert [o.name for o in op.block.ops] == ["loop.read", "loop.yield"]
