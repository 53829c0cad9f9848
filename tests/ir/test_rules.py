"""Rules: what matches, what is built, and what can't be a rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

import irc
from irc.ir.diagnostics import UserError
from irc.ir.rewrite import rules as R
from irc.ir.rewrite.driver import apply_patterns_greedily, canonicalization_patterns
from irc.rules import Number, Rule, boolean, graph, rule


@pytest.fixture(autouse=True)
def rules_of_their_own(monkeypatch) -> Iterator[None]:
    """Rules that a test makes are gone after it."""
    monkeypatch.setattr(R, "_rules", dict(R._rules))
    yield


def own(function=None, **rest):
    return rule(function, canonical=False, **rest)


def applied(one: Rule, body: str, arguments: str = "%x: tensor<4xf32>, %y: tensor<4xf32>") -> str:
    """The body after the rule, with unused operations gone; how often it applied is counted."""
    module = irc.parse(
        f"func.func @main({arguments}) -> tensor<4xf32> {{\n{body}\n"
        "func.return %r : tensor<4xf32>\n}"
    )
    counts: Counter[str] = Counter()
    apply_patterns_greedily(module, [one], fold=False, counts=counts)
    irc.verify(module)
    return f"{counts[one.name]} {irc.print_op(module)}"


T = "(tensor<4xf32>) -> tensor<4xf32>"
TT = "(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>"


@own
def difference(x, y):
    return graph.add(x, graph.neg(y)), graph.sub(x, y)


@own
def twice(x):
    return graph.add(x, x), graph.mul(x, 2.0)


@own
def plus_zero(x):
    return graph.add(x, 0.0), x


@own
def plain_exp(x):
    return graph.exp(x), graph.exp2(x)


def test_operands_of_commutative_operations_match_in_either_order() -> None:
    for operands in ("%x, %n", "%n, %x"):
        text = applied(difference, f"%n = graph.neg %y : {T}\n%r = graph.add {operands} : {TT}")
        assert text.startswith("1 ") and "graph.sub %x, %y" in text and "graph.neg" not in text


def test_those_of_others_do_not() -> None:
    @own
    def negated(x, y):
        return graph.sub(graph.neg(x), y), graph.neg(graph.add(x, y))

    text = applied(negated, f"%n = graph.neg %x : {T}\n%r = graph.sub %y, %n : {TT}")
    assert text.startswith("0 ")


def test_a_variable_is_one_value() -> None:
    assert applied(twice, f"%r = graph.add %x, %y : {TT}").startswith("0 ")
    text = applied(twice, f"%r = graph.add %x, %x : {TT}")
    assert "graph.full {value = 2.0 : f32} : tensor<4xf32>" in text and "graph.mul %x" in text


@pytest.mark.parametrize(("number", "count"), [("0.0", 1), ("-0.0", 0), ("1.0", 0)])
def test_zeros_have_signs(number: str, count: int) -> None:
    value = f"{{value = {number} : f32}}"
    body = f"%c = graph.full {value} : tensor<4xf32>\n%r = graph.add %x, %c : {TT}"
    assert applied(plus_zero, body).startswith(f"{count} ")


def test_a_float_is_no_integer() -> None:
    module = irc.parse(
        "func.func @main(%x: tensor<4xi32>) -> tensor<4xi32> {\n"
        "%c = graph.full {value = 0 : i32} : tensor<4xi32>\n"
        "%r = graph.add %x, %c : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>\n"
        "func.return %r : tensor<4xi32>\n}"
    )
    assert not apply_patterns_greedily(module, [plus_zero], fold=False)


def test_attributes_match_as_written() -> None:
    assert applied(plain_exp, f"%r = graph.exp %x : {T}").startswith("1 ")
    assert applied(plain_exp, f"%r = graph.exp %x {{nonpositive}} : {T}").startswith("0 ")

    @own
    def promised(x):
        return graph.exp(x, nonpositive=True), graph.exp2(x)

    assert applied(promised, f"%r = graph.exp %x {{nonpositive}} : {T}").startswith("1 ")


def test_a_condition_asks_about_values_by_name() -> None:
    @own(where=lambda y: y.defining_op is None)
    def for_arguments(x, y):
        return graph.sub(x, y), graph.add(x, graph.neg(y))

    assert applied(for_arguments, f"%r = graph.sub %x, %y : {TT}").startswith("1 ")
    body = f"%n = graph.abs %y : {T}\n%r = graph.sub %x, %n : {TT}"
    assert applied(for_arguments, body).startswith("0 ")


def test_a_result_keeps_its_strides() -> None:
    """A value of other strides does not stand for it."""
    arguments = "%x: tensor<[2, 2] x f32, strides [1, 2]>"
    module = irc.parse(
        f"func.func @main({arguments}) -> tensor<[2, 2] x f32, strides [2, 1]> {{\n"
        "%c = graph.full {value = 0.0 : f32} : tensor<[2, 2] x f32, strides [1, 2]>\n"
        "%r = graph.add %x, %c : (tensor<[2, 2] x f32, strides [1, 2]>, tensor<[2, 2] x f32,"
        " strides [1, 2]>) -> tensor<[2, 2] x f32, strides [2, 1]>\n"
        "func.return %r : tensor<[2, 2] x f32, strides [2, 1]>\n}"
    )
    assert not apply_patterns_greedily(module, [plus_zero], fold=False)
    irc.verify(module)


def test_an_operation_of_the_result_gets_the_results_type() -> None:
    module = irc.parse(
        "func.func @main(%x: tensor<[2, 2] x f32, strides [1, 2]>) ->"
        " tensor<[2, 2] x f32, strides [2, 1]> {\n"
        "%r = graph.exp %x : (tensor<[2, 2] x f32, strides [1, 2]>) ->"
        " tensor<[2, 2] x f32, strides [2, 1]>\n"
        "func.return %r : tensor<[2, 2] x f32, strides [2, 1]>\n}"
    )
    assert apply_patterns_greedily(module, [plain_exp], fold=False)
    irc.verify(module)


def test_canonicalize_applies_a_rule_unless_told_otherwise() -> None:
    known = {p.name for p in canonicalization_patterns()}
    assert "graph.double_negation" in known
    assert {"graph.difference", "graph.twice"}.isdisjoint(known)


def test_an_equation_reads_as_one() -> None:
    assert difference.equation == "add(x, neg(y)) -> sub(x, y)"
    assert twice.equation == "add(x, x) -> mul(x, 2.0)"

    @own(where=boolean)
    def known(x):
        return graph.and_(x, False), False

    assert known.equation == "and(x, false) -> false"


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x, y: (graph.neg(x), x), "'y' is not in what is replaced"),
        (lambda x: (x, graph.neg(x)), "what is replaced is an operation"),
        (lambda x: (graph.neg(x, x), x), "graph.neg takes 1 operands, not 2"),
        (lambda x: (graph.neg(x, fast=True), x), "graph.neg has no attribute 'fast'"),
        (lambda x: (graph.neg(x), graph.add(x, lambda z: 1.0)), "'z' is no parameter of it"),
        (lambda x: (graph.add(x, "1"), x), "terms, its parameters and numbers, not of '1'"),
    ],
)
def test_what_is_no_rule_is_told(function, message: str) -> None:
    with pytest.raises(UserError, match=message):
        own(function)


def test_other_mistakes() -> None:
    with pytest.raises(UserError, match="preserves bits or real, not 'most'"):
        own(preserves="most")(lambda x: (graph.neg(x), x))
    with pytest.raises(AttributeError, match="no operation graph.negate"):
        graph.negate(1.0)
    with pytest.raises(AttributeError, match="has no one result, or several groups"):
        graph.packed_linear(1.0)
    with pytest.raises(ImportError, match="nonsense"):
        from irc.rules import nonsense  # noqa: F401


def test_a_user_reaches_it_from_the_top() -> None:
    assert irc.rule is rule


def test_a_rule_of_the_users_is_told_from_ours() -> None:
    """Programs are not kept in the cache with patterns whose text is in no key."""
    assert difference.function.__module__ == difference.module == __name__
    ours = R.all_rules()["graph.double_negation"]
    assert ours.function.__module__ == ours.module == "irc.dialects.graph.rules"


def test_a_number_is_computed_of_another() -> None:
    def half(c: float) -> float:
        return c / 2

    @own(where=lambda c: c > 1)
    def halved(x, c: Number):
        return graph.mul(x, c), graph.add(graph.mul(x, half), graph.mul(x, half))

    def run(number: str) -> str:
        constant = f"%c = graph.full {{value = {number} : f32}} : tensor<4xf32>\n"
        return applied(halved, constant + f"%r = graph.mul %c, %x : {TT}")

    assert halved.equation == "mul(x, c) -> add(mul(x, half(c)), mul(x, half(c)))"
    assert run("3.0").startswith("3 ") and "value = 0.75 : f32" in run("3.0")
    assert run("1.0").startswith("0 ")
    assert applied(halved, f"%r = graph.mul %y, %x : {TT}").startswith("0 ")


def test_attributes_are_taken_and_computed() -> None:
    def composed(p, q):
        return tuple(p[d] for d in q)

    @own
    def one_permutation(x, p, q):
        twice = graph.permute(graph.permute(x, permutation=p), permutation=q)
        return twice, graph.permute(x, permutation=composed)

    module = irc.parse(
        "func.func @main(%x: tensor<2x3x4xf32>) -> tensor<4x2x3xf32> {\n"
        "%p = graph.permute %x {permutation = array<i64: 1, 2, 0>} :"
        " (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>\n"
        "%q = graph.permute %p {permutation = array<i64: 1, 2, 0>} :"
        " (tensor<3x4x2xf32>) -> tensor<4x2x3xf32>\n"
        "func.return %q : tensor<4x2x3xf32>\n}"
    )
    assert apply_patterns_greedily(module, [one_permutation], fold=False)
    irc.verify(module)
    text = irc.print_op(module)
    assert text.count("graph.permute") == 1 and "array<i64: 2, 0, 1>" in text


def test_a_condition_asks_about_a_value_inside_and_the_result() -> None:
    seen = []

    @own(where=lambda m, result: seen.append((m, result)) or str(m.type) == str(result.type))
    def twice_negated(x, m):
        return graph.neg(graph.neg(x).called(m)), x

    assert twice_negated.equation == "neg(m: neg(x)) -> x"
    text = applied(twice_negated, f"%n = graph.neg %x : {T}\n%r = graph.neg %n : {T}")
    assert text.startswith("1 ") and len(seen) == 1
    assert seen[0][0] is not seen[0][1]


def test_a_number_matches_as_f32_has_it() -> None:
    @own
    def tenth(x):
        return graph.mul(x, 0.1), graph.neg(x)

    for number, count in (("0.1", 1), ("0.10000000149011612", 1), ("0.11", 0)):
        constant = f"%c = graph.full {{value = {number} : f32}} : tensor<4xf32>\n"
        assert applied(tenth, constant + f"%r = graph.mul %x, %c : {TT}").startswith(f"{count} ")


def test_a_group_of_operands_is_as_many_as_are_written() -> None:
    @own
    def joined_alone(x, d):
        return graph.concat(x, dim=d), x

    for sources, count in (("%x", 1), ("%x, %y", 0)):
        size, kinds = 4 * (1 + (count == 0)), ", ".join(["tensor<4xf32>"] * len(sources.split()))
        module = irc.parse(
            f"func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<{size}xf32> {{\n"
            f"%r = graph.concat {sources} {{dim = 0 : i64}} : ({kinds}) -> tensor<{size}xf32>\n"
            f"func.return %r : tensor<{size}xf32>\n}}"
        )
        assert apply_patterns_greedily(module, [joined_alone], fold=False) is bool(count)
