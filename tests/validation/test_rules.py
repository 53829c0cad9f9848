"""Every rule holds; planted wrong ones are caught, with their smallest case."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

torch = pytest.importorskip("torch")

import irc.dialects.graph  # noqa: E402, F401  # its rules register on import
from irc.ir.rewrite import rules as R  # noqa: E402
from irc.ir.rewrite.patterns import canonicalization_patterns  # noqa: E402
from irc.rules import Number, all_rules, arith, floating, graph, integral, rule  # noqa: E402
from irc.tools.irc_opt import main  # noqa: E402
from irc.validation.rules import NotChecked, check_rule, element_types  # noqa: E402

# Not those that other tests have made.
RULES = {name: one for name, one in all_rules().items() if one.module.startswith("irc.")}


@pytest.fixture
def planted(monkeypatch) -> Iterator[None]:
    monkeypatch.setattr(R, "_rules", dict(R._rules))
    yield


def own(function=None, **rest):
    return rule(function, canonical=False, **rest)


def test_there_are_rules() -> None:
    assert len(RULES) >= 40


@pytest.mark.parametrize("name", RULES)
def test_a_rule_holds(name: str) -> None:
    assert check_rule(RULES[name], cases=30) is None


def smallest(one) -> str:
    failure = check_rule(one, cases=200)
    assert failure is not None
    assert all(a.dim() == 0 for a in failure.arguments) and failure.arguments[0].shape == ()
    return str(failure)


def test_the_sign_of_zero_is_a_bit(planted) -> None:
    @own
    def plus_zero(x):
        return graph.add(x, 0.0), x

    text = smallest(plus_zero)
    assert "rule 'graph.plus_zero' is wrong: add(x, 0.0) -> x" in text
    assert "x = -0.0 (float" in text and "before: 0.0, after: -0.0" in text


def test_it_is_no_number(planted) -> None:
    @own(preserves="real")
    def plus_zero(x):
        return graph.add(x, 0.0), x

    assert check_rule(plus_zero) is None


def test_nan_and_infinity_are_found(planted) -> None:
    @own(where=floating)
    def times_zero(x):
        return graph.mul(x, 0.0), 0.0

    assert "is wrong" in smallest(times_zero)

    @own
    def not_less(x, y):
        return graph.not_(graph.lt(x, y)), graph.ge(x, y)

    assert "nan" in smallest(not_less)


def test_an_integer_that_is_its_own_negation_is_found(planted) -> None:
    @own
    def sign_of_negation(x):
        return graph.sign(graph.neg(x)), graph.neg(graph.sign(x))

    assert "before" in smallest(sign_of_negation)

    @own(where=integral)
    def half_of_it(x):
        return graph.sign(graph.neg(x)), graph.neg(graph.sign(x))

    text = smallest(half_of_it)
    assert "-128 (int8" in text or "(uint8" in text or "-32768 (int16" in text


def test_a_rule_whose_result_is_invalid_is_found(planted) -> None:
    @own
    def compares(x, y):
        return graph.add(x, y), graph.lt(x, y)

    failure = check_rule(compares)
    assert failure is not None and "tensor" in failure.message


def test_a_rule_that_fits_nothing_is_told(planted) -> None:
    @own
    def nothing(x):
        return graph.floor(graph.not_(x)), x

    with pytest.raises(NotChecked, match="fits no element types"):
        check_rule(nothing)


def test_conditions_choose_the_types(planted) -> None:
    @own(where=floating)
    def half(x):
        return graph.neg(x), graph.sub(-0.0, x)

    found = {str(t) for (t,) in element_types(half)}
    assert found == {"f32", "f64"}


def test_the_command(capsys, monkeypatch) -> None:
    monkeypatch.setattr(R, "_rules", {k: RULES[k] for k in ("graph.double_negation",)})
    assert main(["--check-rules=20"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "graph.double_negation: neg(neg(x)) -> x  [bits, 20 cases]",
        "1 rules hold, 0 are wrong",
    ]

    @own
    def plus_zero(x):
        return graph.add(x, 0.0), x

    assert main(["--check-rules"]) == 1
    captured = capsys.readouterr()
    assert "1 rules hold, 1 are wrong" in captured.out
    assert "rule 'graph.plus_zero' is wrong" in captured.err
    assert main(["--check-rules=0"]) == 1


def test_scalars_and_vectors_of_arithmetic(planted) -> None:
    @own
    def addf_zero(x):
        return arith.addf(x, 0.0), x

    text = smallest(addf_zero)
    assert "rule 'arith.addf_zero' is wrong" in text and "x = -0.0 (float" in text

    @own
    def shifted_back(x):
        return arith.shrsi(arith.shli(x, 1), 1), x

    assert "(int" in smallest(shifted_back) or "(bool" in smallest(shifted_back)


def test_a_wrong_number_or_type_is_found(planted) -> None:
    def third(c: float) -> float:
        return 1 / c

    @own
    def divided(x, c: Number):
        return graph.div(x, c), graph.mul(x, third)

    failure = check_rule(divided)
    assert failure is not None and "graph.full" in failure.program

    @own(where=lambda x, result: x.type is result.type)
    def there_and_back(x):
        return graph.cast(graph.cast(x)), x

    assert check_rule(there_and_back) is not None


def test_what_a_fold_says_and_does_not_do_is_found(planted) -> None:
    @rule(fold=True)
    def of_minus_one(x):
        return arith.muli(x, -1), arith.subi(0, x)

    failure = check_rule(of_minus_one)
    assert failure is not None and failure.message == "it does not apply"
    assert "arith.of_minus_one" not in {p.name for p in canonicalization_patterns()}


def test_a_condition_that_nearly_never_holds_is_told(planted) -> None:
    @own(where=lambda c: c == 0.123)
    def never(x, c: Number):
        return graph.mul(x, c), x

    with pytest.raises(NotChecked, match="fits no element types"):
        check_rule(never)


def test_a_sum_of_one_zero_has_its_sign(planted) -> None:
    """What the canonicalization that was no rule did until it was checked."""

    @own(where=lambda x, result: x.type is result.type)
    def sum_of_no_dimensions(x, k):
        return graph.reduce(x, combiner="sum", dims=(), keepdim=k), x

    failure = check_rule(sum_of_no_dimensions)
    assert failure is not None and "x = -0.0 (float" in str(failure)
