"""What rewriting promises: types, locations, folds, an end, and who is named when it goes wrong."""

from __future__ import annotations

from collections import Counter

import pytest

from irc.dialects.func import FuncOp, ReturnOp
from irc.ir import attributes as A
from irc.ir import types as T
from irc.ir.builder import Builder
from irc.ir.definition import Op, attribute, operand, result, variadic_operand, variadic_result
from irc.ir.diagnostics import InternalError, UserError
from irc.ir.location import UNKNOWN, FileLocation, FusedLocation
from irc.ir.module import ModuleOp
from irc.ir.passes import PassContext
from irc.ir.registry import unregistered_op
from irc.ir.rewrite.driver import (
    apply_patterns_greedily,
    constant_value,
    pattern,
    register_materializer,
)
from irc.ir.rewrite.fuel import NO_FUEL, Fuel
from irc.ir.rewrite.passes import apply_patterns
from irc.ir.rewrite.patterns import PatternPlan
from irc.ir.traits import Commutative, ConstantLike, Pure


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


class Loud(Op):
    """Not pure: stays when nobody uses it.

    `%1 = testrw.loud %0 : (i64) -> i64`
    """

    name = "testrw.loud"
    input = operand()
    output = result()


class Sum(Op):
    """Any number of terms, in any order.

    `%1 = testrw.sum %0, %0 : (i64, i64) -> i64`
    """

    name = "testrw.sum"
    traits = frozenset({Pure, Commutative})
    inputs = variadic_operand()
    output = result()


class Several(Op):
    """Several results.

    `%1, %2 = testrw.several %0 : (i64) -> (i64, i32)`
    """

    name = "testrw.several"
    input = operand()
    outputs = variadic_result()


class Keep(Op):
    """Uses values.

    `testrw.keep %0 : (i64) -> ()`
    """

    name = "testrw.keep"
    inputs = variadic_operand()


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


# -- what the rewriter does for patterns


def test_a_pattern_needs_a_class_and_has_the_name_of_its_function():
    with pytest.raises(UserError, match="needs the operation class"):
        pattern(name="testrw.rootless")

    @pattern(Other)
    def plain(op, rw):
        return rw.no_match("never")

    assert (plain.name, twice_to_other.name) == ("plain", "testrw.twice_to_other")


@pytest.mark.parametrize("same", [False, True])
def test_only_another_location_is_told_of(same):
    here, there = FileLocation("a.py", 1, 1), FileLocation("b.py", 2, 1)
    first = FusedLocation("made so", (here, there))

    @pattern(Other, name="testrw.drop")
    def drop(op, rw):
        rw.replace(op, op.input, note="dropped")

    module, function = program(Other)
    number, other, _ = function.block.ops
    number.location, other.location = first, first if same else FileLocation("c.py", 3, 1)
    apply_patterns_greedily(module, [drop], fold=False)
    assert number.location.note == ("made so" if same else "dropped")


def test_users_of_what_is_replaced_are_looked_at_again():
    """The last operation has the first replaced, whose user had its turn before."""
    module, function = program(Other, Twice, Loud)
    first = function.block.first.next

    @pattern(Loud, name="testrw.replace_the_first")
    def replace_the_first(op, rw):
        if first.parent is None:
            return rw.no_match("done")
        return rw.replace(first, first.input)

    @pattern(Twice, name="testrw.twice_of_number")
    def twice_of_number(op, rw):
        if not isinstance(op.input.owner, Number):
            return rw.no_match("its operand is no number")
        return rw.replace(op, op.input)

    apply_patterns_greedily(module, [replace_the_first, twice_of_number], fold=False)
    assert names(function) == ["testrw.number", "testrw.loud", "func.return"]


@pytest.mark.parametrize("named", [None, "kept"])
def test_the_name_of_an_unused_value_goes_to_its_replacement(named):
    module, function = program(Loud)
    number, loud, last = function.block.ops
    last.operands = (number.results[0],)
    number.results[0].name_hint, loud.results[0].name_hint = named, "y"

    @pattern(Loud, name="testrw.silence")
    def silence(op, rw):
        rw.replace(op, op.input)

    apply_patterns_greedily(module, [silence])
    assert number.results[0].name_hint == (named or "y")


PLAIN = T.TensorType([2, 3], T.i64)
ROWS, COLUMNS = PLAIN.with_strides([3, 1]), PLAIN.with_strides([1, 2])


@pytest.mark.parametrize(
    "wanted, given",
    [(T.i64, COLUMNS), (COLUMNS, T.i64), (COLUMNS, T.TensorType([3, 2], T.i64, [2, 1])),
     (COLUMNS, T.TensorType([2, 3], T.i32, [1, 2]))],
)  # fmt: skip
def test_a_tensor_is_replaced_by_one_that_differs_in_strides_alone(wanted, given):
    @pattern(Other, name="testrw.wrong")
    def wrong(op, rw):
        rw.replace(op, rw.builder.value(Number, value=1, result_types=given))

    module, _ = program(Other, element=wanted)
    with pytest.raises(InternalError, match="testrw.other: replacing a value of type"):
        apply_patterns_greedily(module, [wrong], fold=False)


@pytest.mark.parametrize(
    "case, copied",
    [("made here", False), ("a view made here", True), ("made before", True), ("argument", True)],
)
def test_a_value_gets_other_strides_where_it_is_made_or_is_copied(case, copied):
    module = ModuleOp.empty()
    function = FuncOp.create("main", [ROWS], [COLUMNS])
    module.block.append(function)
    b = Builder.at_end(function.block)
    (argument,) = function.block.arguments
    before = b.value(Loud, argument, result_types=ROWS)
    first = b.value(Other, before, result_types=ROWS)
    last = b.value(Twice, first, result_types=COLUMNS)
    b.create(ReturnOp, [last])
    made = []

    @pattern(Other, Twice, name="testrw.memory")
    def memory(op, rw):
        if not isinstance(op, Twice):  # a new value, of whose memory nobody else may dispose
            if made:
                return rw.no_match("done")
            made.append(rw.builder.value(Other, op.input, result_types=ROWS))
            return rw.replace(op, made[0])
        value = made[0]
        if case == "argument":
            value = argument
        elif case != "made before":
            value = rw.builder.value(Other, op.input, result_types=ROWS)
        if case == "a view made here":
            value.owner.attributes["view"] = A.UnitAttr()
        return rw.replace(op, value)

    apply_patterns_greedily(module, [memory], fold=False)
    returned = function.return_op.values[0]
    assert returned.type is COLUMNS
    assert (returned.owner.name == "layout.copy") is copied
    assert not made[0].owner.parent or made[0].type is ROWS


@pytest.mark.parametrize("of", ["a number", "an argument"])
def test_an_operand_that_is_changed_has_both_looked_at(of):
    module = ModuleOp.empty()
    function = FuncOp.create("main", [T.i64], [T.i64])
    module.block.append(function)
    b = Builder.at_end(function.block)
    (argument,) = function.block.arguments
    number = b.value(Number, value=3, result_types=T.i64)
    new = b.value(Loud, argument, result_types=T.i64)
    last = b.value(Other, number if of == "a number" else argument, result_types=T.i64)
    b.create(ReturnOp, [last])
    seen = []

    @pattern(Other, name="testrw.operand")
    def change(op, rw):
        seen.append(op.input)
        if op.input is new:
            return rw.no_match("done")
        return rw.set_operand(op, 0, new)

    apply_patterns_greedily(module, [change], fold=False)
    assert seen[-1] is new
    assert names(function) == ["testrw.loud", "testrw.other", "func.return"]


def test_what_has_strides_keeps_them_and_any_result_that_has_some_decides():
    kinds = [T.i64, PLAIN, COLUMNS]
    module, function = program(Other)
    b = Builder.before(function.return_op)
    op = b.insert(Several((function.block.first.results[0],), kinds))
    b.insert(Keep((op.results[0], op.results[1]), ()))
    made = []

    @pattern(Several, name="testrw.several")
    def several(op, rw):
        if made:
            return rw.no_match("done")
        for kind in (PLAIN, COLUMNS, T.i64):
            made.append(rw.builder.value(Loud, op.operands[0], result_types=kind))
        return True

    apply_patterns_greedily(module, [several], fold=False)
    assert [value.type for value in made] == [ROWS, COLUMNS, T.i64]


# -- what the driver does by itself


@pytest.mark.parametrize(
    "kind, order, outcome",
    [(Sum, "cv", "vc"), (Sum, "vc", "vc"), (Sum, "cc", "cc"), (Sum, "vv", "vv"),
     (Sum, "cvc", "vcc"), (Sum, "cvv", "vcv"), (Sum, "c", "c"), (Sum, "v", "v"), (Sum, "", ""),
     (Keep, "cv", "cv")],
)  # fmt: skip
@pytest.mark.parametrize("fold", [True, False])
def test_a_constant_goes_to_the_right_where_that_is_the_same(kind, order, outcome, fold):
    module, function = program(Loud)
    number, loud, last = function.block.ops
    given = {"c": number.results[0], "v": loud.results[0]}
    operands = [given[letter] for letter in order]
    b = Builder.before(last)
    op = b.insert(kind(operands, [] if kind is Keep else [T.i64]))
    b.insert(Keep([*op.results, *given.values()], ()))
    counts = Counter()
    apply_patterns_greedily(module, fold=fold, counts=counts)
    assert op.operands == tuple(given[letter] for letter in (outcome if fold else order))
    assert counts["constant-to-right"] == int(fold and order != outcome)


def test_which_operations_have_a_fold_to_try():
    assert PatternPlan(Twice, [], True).fold and not PatternPlan(Twice, [], False).fold
    assert not PatternPlan(Other, [], True).fold, "the one that every operation has gives nothing"
    assert not PatternPlan(Written, [], True).fold, "a constant is what folds give"
    assert not PatternPlan(unregistered_op("testrw.unknown"), [], True).fold


class Written(Number):
    """A constant with a fold.

    `%0 = testrw.written {value = 1 : i64} : i64`
    """

    name = "testrw.written"

    def fold(self, constants):
        raise AssertionError("a constant was folded")


def test_only_constants_have_a_value_that_folds_see():
    module, function = program(Loud, Twice)
    loud, twice = function.block.first.next, function.block.first.next.next
    loud.attributes["value"] = A.IntegerAttr(4)
    assert not apply_patterns_greedily(module)
    assert twice.parent is not None and constant_value(loud.results[0]) is None
    assert constant_value(function.block.first.results[0]).value == 3


def test_a_fold_that_declines_leaves_the_patterns_their_turn():
    module, function = program(Loud, Twice)
    assert apply_patterns_greedily(module, [twice_to_other])
    assert names(function)[2] == "testrw.other"


def test_what_was_folded_has_no_turn_again():
    @pattern(Twice, name="testrw.never")
    def never(op, rw):
        raise AssertionError("a pattern saw what was folded")

    module, function = program(Twice)
    counts = Counter()
    assert apply_patterns_greedily(module, [never], counts=counts)
    assert counts == {"fold": 1, "dce": 1}


def test_what_a_pattern_changed_is_looked_at_again():
    @pattern(Other, name="testrw.three")
    def three(op, rw):
        if names(function).count("testrw.keep") == 3:
            return rw.no_match("there are three")
        rw.insert(Keep((op.input,), ()))

    module, function = program(Other)
    assert apply_patterns_greedily(module, [three])
    assert names(function).count("testrw.keep") == 3


def test_the_last_rewrite_that_fuel_allows_may_be_the_last_there_is():
    """An operation that is gone is not looked at again."""

    @pattern(Keep, name="testrw.goes")
    def goes(op, rw):
        rw.erase(op)

    for argument, left in ((True, False), (False, True)):
        module, function = program()
        value = function.block.first.results[0]
        inputs = [] if argument else [value]
        Builder.before(function.return_op).create(Keep, inputs)
        context = PassContext(fuel=Fuel(1))
        assert apply_patterns(module, [goes], context)
        assert names(function) == ["testrw.number", "func.return"]
        assert [r.message for r in context.remarks] == [NO_FUEL] * left, "what made its operands"
