"""Running rules on random values: does what stands instead give what stood there?

For a rule, every combination of element types on which its left side is valid is found first. Each
case is then a small function of that side, with arguments of random rank (0 to 4), sizes (empty and
odd ones), strides and special values; of arith and math, scalars and vectors. The rule is applied
to it by the driver, as `canonicalize` would, and both functions are interpreted on the same
arguments. "bits" asks for equal elements, the sign of zero included (any NaN is NaN); "real" for
equal numbers in f64.

    failure = check_rule(double_negation, cases=200)
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs
import torch

from irc.interp import run
from irc.ir.attributes import Type
from irc.ir.diagnostics import IRCError
from irc.ir.module import ModuleOp
from irc.ir.rewrite.driver import apply_patterns_greedily
from irc.ir.rewrite.rules import Rule
from irc.ir.text.printer import print_op
from irc.ir.types import i1
from irc.ir.verifier import verify
from irc.validation.rule_cases import (
    DTYPES,
    SCALAR,
    SIZES,
    argument_type,
    elements_for,
    make_case,
    random_argument,
    values_of,
)

#: How often a combination of element types is tried, and a case for each that is run: what an
#: operation leaves open is drawn, and a condition may want something special.
TRIES, TRIES_OF_A_CASE = 12, 40
REAL_TOLERANCE = 1e-10


@attrs.frozen
class Failure:
    """A case in which a rule is wrong: its arguments, both results, and the program."""

    rule: Rule
    arguments: tuple[torch.Tensor, ...]
    before: Any
    after: Any
    program: str
    message: str = ""

    def __str__(self) -> str:
        lines = [f"rule '{self.rule.name}' is wrong: {self.rule.equation}"]
        for name, value in zip(values_of(self.rule), self.arguments, strict=True):
            dtype = str(value.dtype).removeprefix("torch.")
            lines.append(f"  {name} = {value.tolist()} ({dtype} of sizes {list(value.shape)})")
        if self.message:
            lines.append(f"  {self.message}")
        else:
            lines.append(f"  before: {self.before.tolist()}, after: {self.after.tolist()}")
        return "\n".join([*lines, *("  " + line for line in self.program.splitlines())])


class NotChecked(Exception):
    """Why a rule can't be run: no element types fit it, or it never applied."""


def check_rule(rule: Rule, cases: int = 200, seed: int = 0) -> Failure | None:
    """Run a rule on `cases` random cases; the smallest failure found, or None.

    Raises NotChecked where there is nothing to run.
    """
    fitting = list(element_types(rule))
    if not fitting:
        raise NotChecked(f"rule '{rule.name}': its left side fits no element types")
    generator = random.Random(f"{rule.name} {seed}")
    done = 0
    for number in range(cases * TRIES_OF_A_CASE):
        elements = fitting[number % len(fitting)]
        rank = generator.randrange(5)
        least = int(rule.dialect in SCALAR)  # no vector is empty
        sizes = tuple(generator.choice(SIZES[least:]) for _ in range(rank))
        drawn = generator.randrange(1 << 30)
        arguments = [random_argument(generator, e, sizes) for e in elements]
        outcome = run_case(rule, elements, arguments, generator.random() < 0.5, drawn)
        if isinstance(outcome, Failure):
            return _smallest(rule, elements, arguments, outcome, drawn)
        done += outcome
        if done == cases:
            return None
    raise NotChecked(f"rule '{rule.name}': only {done} of {cases} cases fit it")


def element_types(rule: Rule, dtypes: Sequence[str] = DTYPES) -> Iterator[tuple[Type, ...]]:
    """The element types of a rule's variables with which its left side is a valid program."""
    kinds, count = elements_for(rule, dtypes), len(values_of(rule))
    combinations: Iterable[tuple[Type, ...]] = itertools.product(kinds, repeat=count)
    if count > 2:  # thousands; three values are of one type, or some of them truth values
        pairs = (itertools.product((e, i1), repeat=count) for e in kinds)
        combinations = dict.fromkeys(itertools.chain.from_iterable(pairs))
    for elements in combinations:
        types = [argument_type(rule, e, (2,)) for e in elements]
        if any(make_case(rule, types, seed) for seed in range(TRIES if _is_open(rule) else 1)):
            yield elements


def _is_open(rule: Rule) -> bool:
    """Whether anything but the arguments of a rule's cases is drawn."""
    return rule.where is not None or len(values_of(rule)) < len(rule.variables)


def example(rule: Rule) -> tuple[str, str]:
    """The bodies of a small program with a rule's left side, and of what becomes of it.

    Raises NotChecked where no element types fit."""
    for elements in element_types(rule, ("float32", "int32", "bool")):
        sizes = () if rule.dialect in SCALAR else (4,)
        for seed in range(TRIES_OF_A_CASE):
            case = make_case(rule, [argument_type(rule, e, sizes) for e in elements], seed)
            if case is None:
                continue
            for name in values_of(rule):
                case.bindings[name].name_hint = name
            changed: Any = case.module.clone()
            if _apply(rule, changed):
                return _body(case.module), _body(changed)
    raise NotChecked(f"rule '{rule.name}': its left side fits no element types")


def _body(module: ModuleOp) -> str:
    """The lines of the only function, without what surrounds them."""
    lines = print_op(module.lookup("main")).splitlines()  # type: ignore[arg-type]
    return "\n".join(line.strip() for line in lines[1:-1])


def run_case(
    rule: Rule,
    elements: Sequence[Type],
    arguments: Sequence[torch.Tensor],
    strided: bool = False,
    seed: int = 0,
) -> Failure | bool:
    """Both sides on these arguments: whether there was a case, or how it failed. `strided`: their
    strides stand in the types."""
    strided = strided and rule.dialect not in SCALAR
    types = [
        argument_type(rule, e, a.shape, a.stride() if strided else None)
        for a, e in zip(arguments, elements, strict=True)
    ]
    case = make_case(rule, types, seed)
    if case is None:
        return False  # results of an operation whose operands' strides differ, say
    module = case.module
    text = print_op(module)
    before = _interpret(module, arguments, rule.preserves)
    changed: Any = module.clone()
    try:
        count = _apply(rule, changed)
        verify(changed)
    except IRCError as error:
        return Failure(rule, tuple(arguments), before, None, text, str(error))
    if not count and not strided:
        return Failure(rule, tuple(arguments), before, None, text, "it does not apply")
    after = _interpret(changed, arguments, rule.preserves)
    if _equal(before, after, rule.preserves):
        return True
    return Failure(rule, tuple(arguments), before, after, f"{text}// after:\n{print_op(changed)}")


def _apply(rule: Rule, module: Any) -> int:
    counts: Counter[str] = Counter()
    patterns = () if rule.folds else (rule,)
    apply_patterns_greedily(module, patterns, fold=rule.folds, counts=counts)
    return counts["fold" if rule.folds else rule.name]


def _interpret(module: Any, arguments: Sequence[torch.Tensor], preserves: str) -> torch.Tensor:
    real = preserves == "real"
    inputs = [a.double() if real and a.is_floating_point() else a for a in arguments]
    (result,) = run(module, *inputs, mode="real" if real else "exact")
    return torch.as_tensor(result, dtype=torch.float64 if isinstance(result, float) else None)


def _equal(before: torch.Tensor, after: torch.Tensor, preserves: str) -> bool:
    if before.dtype != after.dtype or before.shape != after.shape:
        return False
    if not before.is_floating_point():
        return torch.equal(before, after)
    nan = before.isnan()
    if not torch.equal(nan, after.isnan()):
        return False
    a, b = before[~nan], after[~nan]
    if preserves == "bits":
        return torch.equal(a, b) and torch.equal(a.signbit(), b.signbit())
    return torch.allclose(a, b, rtol=REAL_TOLERANCE, atol=REAL_TOLERANCE)


def _smallest(
    rule: Rule,
    elements: Sequence[Type],
    arguments: Sequence[torch.Tensor],
    failure: Failure,
    seed: int,
) -> Failure:
    """The failure of one element alone, where one fails alone."""
    for place in itertools.product(*map(range, arguments[0].shape)):
        alone = [a[place].clone() for a in arguments]
        smaller = run_case(rule, elements, alone, seed=seed)
        if isinstance(smaller, Failure):
            return smaller
    return failure
