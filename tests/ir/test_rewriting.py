"""What rewriting promises: types, locations, folds, an end, and who is named when it goes wrong."""

from __future__ import annotations

import pytest

from irc.dialects.builtin import ModuleOp
from irc.dialects.func import FuncOp, ReturnOp
from irc.ir import attributes as A
from irc.ir import types as T
from irc.ir.builder import Builder
from irc.ir.definition import Op, attribute, operand, result
from irc.ir.diagnostics import InternalError, UserError
from irc.ir.location import UNKNOWN, FileLocation
from irc.ir.rewriting import apply_patterns_greedily, pattern, register_materializer
from irc.ir.traits import ConstantLike, Pure


class Number(Op):
    """A constant.

    `%0 = testrw.number {value = 1 : i64} : i64`
    """

    name = "testrw.number"
    traits = frozenset({Pure, ConstantLike})
    value = attribute(A.IntegerAttr)
    output = result()


class Twice(Op):
    """A fold that gives a number, which this dialect can make in i64 only.

    `%1 = testrw.twice %0 : (i64) -> i64`
    """

    name = "testrw.twice"
    traits = frozenset({Pure})
    input = operand()
    output = result()

    def fold(self, constants):
        if None in constants:
            return None
        return A.IntegerAttr(constants[0].value * 2)


class Other(Op):
    """Without a fold.

    `%1 = testrw.other %0 : (i64) -> i64`
    """

    name = "testrw.other"
    traits = frozenset({Pure})
    input = operand()
    output = result()


register_materializer(
    "testrw", lambda b, attr, t: b.value(Number, value=attr, result_types=t) if t is T.i64 else None
)


def program(*kinds, element=T.i64, count=1):
    """main() gives the last of a chain of operations on the constant 3."""
    module = ModuleOp.empty()
    function = FuncOp.create("main", [], [element])
    module.block.append(function)
    b = Builder.at_end(function.block)
    value = b.value(Number, value=3, result_types=element)
    for kind in kinds * count:
        value = b.value(kind, value, result_types=element)
    b.create(ReturnOp, [value])
    return module, function


def names(function):
    return [op.name for op in function.block.ops]


@pattern(Twice, name="testrw.twice_to_other")
def twice_to_other(op, rw):
    rw.replace(op, rw.builder.value(Other, op.input, result_types=op.output.type))


@pytest.mark.fault("V19")
def test_a_value_is_replaced_by_one_of_its_type_only():
    @pattern(Other, name="testrw.narrow")
    def narrow(op, rw):
        rw.replace(op, rw.builder.value(Number, value=1, result_types=T.i32))

    module, _ = program(Other)
    with pytest.raises(InternalError, match="replacing a value of type i64 by one of type i32"):
        apply_patterns_greedily(module, [narrow])


def test_as_many_values_as_results():
    @pattern(Other, name="testrw.none")
    def none(op, rw):
        rw.replace(op, [])

    module, _ = program(Other)
    with pytest.raises(InternalError, match="has 1 results, 0 replacements given"):
        apply_patterns_greedily(module, [none])


def test_folds_run_only_where_they_are_wanted():
    for fold, left in ((True, ["testrw.number"]), (False, ["testrw.number", "testrw.twice"])):
        module, function = program(Twice)
        assert apply_patterns_greedily(module, fold=fold) is fold
        assert names(function) == [*left, "func.return"]


def test_a_fold_to_itself_leaves_the_patterns_their_turn(monkeypatch):
    monkeypatch.setattr(Twice, "fold", lambda self, constants: self.results[0])
    module, function = program(Twice)
    assert apply_patterns_greedily(module, [twice_to_other])
    assert names(function) == ["testrw.number", "testrw.other", "func.return"]


def test_a_fold_that_cannot_be_written_leaves_the_patterns_their_turn():
    module, function = program(Twice, element=T.i32)
    assert apply_patterns_greedily(module, [twice_to_other])
    assert names(function) == ["testrw.number", "testrw.other", "func.return"]


@pytest.mark.parametrize("replaced", ["by a new value", "by an older one"])
def test_a_replacement_has_both_locations_once(replaced):
    module, function = program(Other, Other)
    number, first, second, _ = function.block.ops
    for line, op in enumerate((number, first, second)):
        op.location = FileLocation("a.py", line + 1, 1)

    @pattern(Other, name="testrw.drop")
    def drop(op, rw):
        if op is not second:
            return rw.no_match("it is the other one")
        if replaced == "by a new value":
            rw.replace(op, rw.builder.value(Number, value=5, result_types=T.i64))
        else:
            rw.replace(op, op.input)

    kept = first.location
    apply_patterns_greedily(module, [drop], fold=False)
    made = function.return_op.values[0].owner
    if replaced == "by a new value":
        assert made.location == FileLocation("a.py", 3, 1)
        assert number.parent is None, "what nobody reads is gone"
    else:
        assert made is first
        assert made.location.children == (kept, FileLocation("a.py", 3, 1))


@pytest.mark.parametrize("count", [1, 5])
def test_rewriting_ends_after_so_many_rewrites(count):
    @pattern(Other, name="testrw.again")
    def again(op, rw):
        rw.replace(op, rw.builder.value(Other, op.input, result_types=T.i64))

    module, _ = program(Other, count=count)
    operations = sum(1 for _ in module.walk()) - 1
    limit = 10_000 + 16 * (operations + 1)
    with pytest.raises(InternalError, match=f"did not converge after {limit} rewrites"):
        apply_patterns_greedily(module, [again])


@pytest.mark.parametrize("placed", [False, True])
def test_an_error_in_a_pattern_has_a_location(placed):
    here, there = FileLocation("a.py", 7, 1), FileLocation("b.py", 9, 1)

    @pattern(Other, name="testrw.raises")
    def raises(op, rw):
        raise UserError("not this one", location=there if placed else UNKNOWN)

    module, function = program(Other)
    function.block.first.next.location = here
    with pytest.raises(UserError) as caught:
        apply_patterns_greedily(module, [raises])
    assert caught.value.location == (there if placed else here)
    assert not any(op.queued for op in module.walk())


def test_another_kind_of_error_names_the_pattern():
    @pattern(Other, name="testrw.broken")
    def broken(op, rw):
        raise ZeroDivisionError("oh")

    module, _ = program(Other)
    with pytest.raises(UserError, match="pattern 'testrw.broken' raised ZeroDivisionError: oh"):
        apply_patterns_greedily(module, [broken])


@pytest.mark.parametrize("strided", [False, True])
def test_what_is_made_for_an_operation_with_strides_has_them(strided):
    plain = T.TensorType([2, 3], T.i64)
    kind = plain.with_strides([1, 2]) if strided else plain

    @pattern(Twice, name="testrw.tensors")
    def tensors(op, rw):
        made = rw.builder.value(Other, op.input, result_types=plain)
        rw.replace(op, rw.builder.value(Other, made, result_types=op.output.type))

    module, function = program(Twice, element=kind)
    apply_patterns_greedily(module, [tensors], fold=False)
    first = function.block.first.next.results[0].type
    assert first is (plain.with_strides([3, 1]) if strided else plain)
