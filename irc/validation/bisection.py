"""Which pass makes a program wrong, and which rewrite of that pass: ever fewer of them, by halves.

    judge = Judge(module, inputs)
    search = Bisection(module, PassManager.parse("lower-to-cpu").steps, judge)
    found = search.first_pass()
    found.step, found.position, found.message       # the pass, its number, what is wrong behind it
    search.first_rewrite(found)         # "rewrite 57: canonicalize: graph.add_zero of 'graph.add'"

A program is wrong that raises, that the verifier refuses, or whose results and arguments afterwards
are not those of the program before the passes. `irc bisect` is the command.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from irc.interp.core import NoMeaning
from irc.ir.diagnostics import IRCError, UserError
from irc.ir.passes import Nested, Pass, PassContext, PassManager, step_text
from irc.ir.rewrite.fuel import Fuel
from irc.ir.verifier import verify
from irc.validation.compare import compare, rounding_of
from irc.validation.inputs import Inputs
from irc.validation.running import Outcome
from irc.validation.semantics import first_difference, run_trial, run_twice

Step = Pass | Nested
MakeContext = Callable[[Fuel], PassContext]


def plain_context(fuel: Fuel) -> PassContext:
    """A context without options, for the module's own target."""
    return PassContext(fuel=fuel, explains=False)


class Judge:
    """Says what is wrong with a program that should compute what `module` does of `inputs`.

    mode: "real" (floats as f64, equal up to the rounding of constants) or "exact" too (as typed; no
    farther from the real values than the program's own rounding). tolerance: of mode "real",
    relative to the largest element; None: the rounding of the narrowest float type. Raises
    UserError where the program itself can't be run.
    """

    def __init__(
        self,
        module: Any,
        inputs: Inputs,
        *,
        function: str = "main",
        mode: str = "real",
        tolerance: float | None = None,
        seed: int = 0,
    ) -> None:
        trial = run_trial(module, function, {}, inputs, seed)
        if isinstance(trial, Exception):
            raise UserError(
                f"the program raises before any pass: {type(trial).__name__}: {trial}"
            ) from trial
        self.function = function
        self.inputs = inputs
        self.trial = trial
        both = mode == "exact" or "real" not in trial.modes
        self.expected = {m: o for m, o in trial.outcomes.items() if both or m == "real"}
        rounding = rounding_of(module.lookup(function))
        self.tolerance = rounding if tolerance is None else tolerance

    def __call__(self, module: Any) -> str:
        """What is wrong with a program; "" where it is right. Raises NoMeaning for one that the
        interpreter can't run."""
        try:
            verify(module)
        except IRCError as error:
            return f"it is invalid: {error.message}"
        outcomes = {}
        for mode, before in self.expected.items():
            poisoned = any(outcome.poisoned for outcome in before)
            outcomes[mode] = run_twice(module, self.function, self.trial, mode, poisoned)
            error_ = outcomes[mode][0].error
            if isinstance(error_, NoMeaning):
                raise error_
        difference = first_difference(self.expected, outcomes, "real", self.tolerance)
        return "" if difference is None else str(difference[1])

    def of_results(self, results: Sequence[Any], arguments: Sequence[Any]) -> str:
        """What is wrong with results that were computed elsewhere, and arguments afterwards."""
        outcomes = self.trial.outcomes
        real = outcomes["real"][0] if "real" in outcomes else None
        after = [Outcome(list(results), list(arguments))]
        difference = compare(outcomes["exact"], after, "exact", "real", real)
        return "" if difference is None else str(difference)


@attrs.frozen(eq=False)
class FirstWrong:
    """A pass behind which a program is wrong, and before which it is right.

    position: its number in the pipeline, from 1. before: the program before it. spent: the rewrites
    that the passes before it made.
    """

    position: int
    step: Step
    message: str
    before: Any
    spent: int

    @property
    def name(self) -> str:
        """The pass with its options."""
        return step_text(self.step)


class Bisection:
    """The search in one program and the steps of one pipeline.

    judge: says what is wrong with a program, "" for one that is right. report: takes what is told
    of the search, pieces of lines.
    """

    def __init__(
        self,
        module: Any,
        steps: Sequence[Step],
        judge: Callable[[Any], str],
        *,
        context: MakeContext = plain_context,
        report: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.module = module
        self.steps = list(steps)
        self.judge = judge
        self.context = context
        self.report = report

    def first_pass(self, low: int = 0, high: int | None = None) -> FirstWrong | None:
        """The first pass behind which the program is wrong; None where it is right behind all.

        low, high: what is known, or supposed: behind `low` passes the program is right, behind
        `high` wrong. Raises UserError for bounds that the pipeline doesn't have, or where passes
        that are supposed to work raise.
        """
        high = len(self.steps) if high is None else high
        if not 0 <= low < high <= len(self.steps):
            raise UserError(f"passes {low}:{high} are no part of a pipeline of {len(self.steps)}")
        right, spent = self.module, 0
        if low:
            right, failed, message, spent = self._after(right, 0, low, 0)
            if message:
                raise UserError(f"pass {failed} of the {low} that should be right: {message}")
        high, message, *_ = self._probe(right, low, high, spent)
        if not message:
            return None
        while high - low > 1:
            middle = (low + high) // 2
            end, said, after, used = self._probe(right, low, middle, spent)
            if said:
                high, message = end, said
            else:
                low, right, spent = middle, after, used
        return FirstWrong(high, self.steps[high - 1], message, right, spent)

    def _probe(self, right: Any, low: int, high: int, spent: int) -> tuple[int, str, Any, int]:
        """Where the passes behind `low` stop (`high`, or the one that raises), what is wrong there,
        the program, and how many rewrites it took from its beginning (`spent`: until `low`)."""
        name = step_text(self.steps[high - 1])
        self.report(f"passes {low}:{high} of {len(self.steps)}, behind {name}: ")
        began = time.perf_counter()
        module, end, message, used = self._after(right, low, high, spent)
        message = message or self.judge(module)
        self.report(f"{'wrong' if message else 'right'} [{time.perf_counter() - began:.1f} s]\n")
        return end, message, module, used

    def _after(
        self, module: Any, low: int, high: int, spent: int, limit: int | None = None
    ) -> tuple[Any, int, str, int]:
        """A copy of `module` behind the passes from `low` to `high`; the number of the one that
        raised, else `high`; what it raised; the rewrites until there."""
        module, fuel = module.clone(), counting(spent, limit)
        for position in range(low, high):
            try:
                PassManager([self.steps[position]]).run(module, self.context(fuel))
            except Exception as error:
                return module, position + 1, told(error), fuel.spent
        return module, high, "", fuel.spent

    def first_rewrite(self, wrong: FirstWrong, low: int = 0, high: int | None = None) -> str:
        """The first rewrite of a pass with which the program is wrong; "" where it is wrong without
        any, or no number of rewrites shows it.

        Rewrites count from the first of the whole pipeline, as `irc-opt --fuel` does. low, high:
        with `low` of them the program is right, with `high` wrong.
        """
        step, before = wrong.step, wrong.before

        def run(limit: int | None) -> tuple[Fuel, str]:
            module, fuel = before.clone(), counting(wrong.spent, limit)
            try:
                PassManager([step]).run(module, self.context(fuel))
            except Exception as error:
                return fuel, told(error)
            return fuel, self.judge(module)

        return halved(run, max(low, wrong.spent), high, self.report)


def counting(spent: int, limit: int | None) -> Fuel:
    """Fuel of which `spent` are gone."""
    fuel = Fuel(limit)
    fuel.spent = spent
    return fuel


def halved(
    run: Callable[[int | None], tuple[Fuel, str]],
    low: int,
    high: int | None = None,
    report: Callable[[str], None] = lambda text: None,
) -> str:
    """The rewrite between `low` and `high` (None: as many as there are) with which a program
    becomes wrong; "" where there is none. `run` makes so many, and says what is wrong then."""

    def tried(limit: int) -> tuple[Fuel, str]:
        report(f"rewrites {low}:{limit}: ")
        fuel, message = run(limit)
        report(f"{'wrong' if message else 'right'}\n")
        return fuel, message

    every, message = run(None)
    high = every.spent if high is None else high
    if not message or not low < high <= every.spent:
        return ""
    last, message = tried(high)
    if not message or run(low)[1]:
        return ""
    while high - low > 1:
        middle = (low + high) // 2
        fuel, message = tried(middle)
        if message:
            high, last = middle, fuel
        else:
            low = middle
    return last.last


def told(error: Exception) -> str:
    """An exception in one line."""
    text = error.message if isinstance(error, IRCError) else str(error).partition("\n")[0]
    return f"raises {type(error).__name__}: {text}"


def guilty_rewrite(
    module: Any, pipeline: str, is_wrong: Callable[[Any], bool], target: Any = None
) -> str:
    """The rewrite of a pipeline with which a program becomes wrong; "" where it doesn't, or is
    wrong without any rewrite. Where several are wrong, one of them.

    is_wrong: says so of a program that the pipeline's first rewrites were made of. `module` stays
    as it is.
    """

    def run(limit: int | None) -> tuple[Fuel, str]:
        trial, fuel = module.clone(), Fuel(limit)
        context = PassContext(target=target, fuel=fuel, explains=False)
        PassManager.parse(pipeline).run(trial, context)
        return fuel, "wrong" if is_wrong(trial) else ""

    return halved(run, 0)


__all__ = ["Bisection", "FirstWrong", "Judge", "guilty_rewrite", "plain_context", "told"]
