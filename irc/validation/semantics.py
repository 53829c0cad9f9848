"""`check_semantics`: each pass of a pipeline checked in the interpreter.

    manager.run(module, check_semantics="changed")          # or "each", "sample:5"
    irc-opt f.mlir --cse --check-semantics=each

Before and after a pass, each function of the module runs on the same arguments, with two values of
each symbol, in both modes; `irc.validation.compare` says what must be equal. A pass that breaks
its promise raises `SemanticsChanged`, and the module before it is kept as a reproducer.

The cost is that of the interpreter: a run of each function before the first pass and after each
checked pass, for two modes and two assignments of the symbols; a pass that changed nothing costs
a print of the module.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from irc.interp.core import MODES
from irc.ir.core import Operation
from irc.ir.diagnostics import InternalError, UserError
from irc.ir.location import file_positions
from irc.ir.passes import Instrumentation, Pass, PassContext
from irc.ir.registry import provides
from irc.ir.text.printer import print_op
from irc.ir.traits import FunctionLike
from irc.validation.compare import REAL_TOLERANCE, Difference, compare, rounding_of
from irc.validation.inputs import INTEGER_RANGES, Inputs, from_tensors, make_inputs
from irc.validation.reproducer import keep_module, replay_command
from irc.validation.running import Inconsistent, Outcome, RandomLog, run_watched
from irc.validation.sizes import assignments, smaller, volume

MAX_ELEMENTS = 1 << 24
ASSIGNMENTS = 2
MAX_ATTEMPTS = 12


class SemanticsChanged(InternalError):
    """A pass changed what the program computes. `difference` says what, `inputs` and `sizes` for
    which arguments, `files` where the module before it is kept."""

    kind = "error"

    def __init__(self, message: str, **rest: Any) -> None:
        super().__init__(message, **rest)
        self.difference: Difference | None = None
        self.sizes: Mapping[str, int] = {}
        self.inputs: Inputs | None = None
        self.files: list[Path] = []


@attrs.frozen
class Selection:
    """Which passes are checked. kind: "each", "changed", or "sample" of `count` passes, and of
    as many functions where a module has more."""

    kind: str
    count: int = 0

    @classmethod
    def parse(cls, text: str) -> Selection:
        """From "each", "changed" or "sample:N". Raises UserError."""
        if text in ("each", "changed"):
            return cls(text)
        kind, _, number = text.partition(":")
        if kind == "sample" and number.isdigit() and int(number) > 0:
            return cls(kind, int(number))
        raise UserError(f"check_semantics is 'each', 'changed' or 'sample:N', not '{text}'")

    def positions(self, total: int, seed: int) -> frozenset[int] | None:
        """The positions of the passes to check among `total`; None for all."""
        if self.kind != "sample":
            return None
        return frozenset(random.Random(seed).sample(range(total), min(self.count, total)))


@attrs.define
class Trial:
    """One set of arguments of a function, and what the program last gave for it."""

    sizes: Mapping[str, int]
    inputs: Inputs
    log: RandomLog
    outcomes: dict[str, list[Outcome]]

    @property
    def modes(self) -> tuple[str, ...]:
        """The modes in which it runs."""
        return tuple(self.outcomes)


@provides("check semantics")
class SemanticsCheck(Instrumentation):
    """Runs the functions of the module before and after each pass that `selection` names.

    total: how many passes run (for a sample). inputs: arguments of @main (tensors and numbers)
    instead of generated ones. folder: where a failing pass leaves its files (None: a new
    temporary folder). max_elements: functions whose tensors hold more are not checked.
    """

    def __init__(
        self,
        selection: str | Selection,
        *,
        total: int = 0,
        inputs: Sequence[Any] | None = None,
        folder: Path | None = None,
        max_elements: int = MAX_ELEMENTS,
        seed: int = 0,
    ) -> None:
        if isinstance(selection, str):
            selection = Selection.parse(selection)
        self.selection = selection
        self.inputs = None if inputs is None else from_tensors(inputs)
        self.folder = folder
        self.max_elements = max_elements
        self.seed = seed
        self.positions = selection.positions(total, seed)
        self.number = -1
        self._trials: dict[str, list[Trial]] = {}
        self._text = ""
        self._before: Any = None
        self.checked = 0
        self.unchanged = 0
        self.skipped: dict[str, str] = {}

    @property
    def report(self) -> str:
        """What was checked and what was not, and why, in a line or a few."""
        lines = [
            f"check-semantics: {self.checked} passes checked, {self.unchanged} changed nothing"
        ]
        lines += [f"check-semantics: @{name} not checked: {why}"
                  for name, why in self.skipped.items()]  # fmt: skip
        return "\n".join(lines)

    def before_pass(self, pass_: Pass, op: Operation, context: PassContext) -> None:
        self.number += 1
        self._before = None
        if self.positions is not None and self.number not in self.positions:
            return
        module = _module_of(op)
        text = print_op(module)
        if text != self._text:
            self._trials.clear()
            self._text = text
        self._before = module.clone()

    def after_pass(self, pass_: Pass, op: Operation, context: PassContext) -> None:
        before = self._before
        if before is None:
            return
        module = _module_of(op)
        text = print_op(module)
        if text == self._text and self.selection.kind != "each":
            self.unchanged += 1
            return
        for name in self._functions(before, module):
            trials = self._trials.get(name)
            if trials is None:
                trials = self._trials[name] = list(self._make_trials(before, name, context))
            for trial in trials:
                self._check(pass_, before, module, name, trial)
        self._text = text
        self.checked += 1
        context.count("checked against the interpreter")

    def _functions(self, before: Any, after: Any) -> list[str]:
        names = [
            op.sym_name
            for op in before.ops
            if FunctionLike in op.traits and _is_function(after.lookup(op.sym_name))
        ]
        if self.selection.kind == "sample" and len(names) > self.selection.count:
            names = random.Random(self.seed).sample(names, self.selection.count)
        return names

    # -- trials

    def _make_trials(self, module: Any, name: str, context: PassContext) -> Iterator[Trial]:
        """Trials that the program before accepts: up to two assignments of the symbols."""
        function = module.lookup(name)
        count = 0
        why = "no values of its symbols respect its facts"
        for attempt, (sizes, inputs) in enumerate(self._candidates(function, name)):
            elements = volume(function, sizes)
            if elements > self.max_elements:
                shown = _sizes_text(sizes)
                why = (
                    f"its tensors hold {elements:,} elements{shown}, more than the "
                    f"{self.max_elements:,} allowed (raise the limit, or give smaller inputs)"
                )
            else:
                trial = run_trial(module, name, sizes, inputs, self.seed)
                if isinstance(trial, Trial):
                    count += 1
                    yield trial
                else:
                    why = f"the interpreter raises {type(trial).__name__}: {trial}"
            if count == ASSIGNMENTS or attempt == MAX_ATTEMPTS:
                break
        if not count:
            self.skipped[name] = why
            context.remark(f"@{name} is not checked in the interpreter: {why}", function)

    def _candidates(
        self, function: Operation, name: str
    ) -> Iterator[tuple[Mapping[str, int], Inputs]]:
        """Symbols' values and arguments, in the order in which they are tried."""
        if self.inputs is not None and name == "main":
            yield {}, self.inputs
            return
        for number, sizes in enumerate(assignments(function, seed=self.seed)):
            spread = INTEGER_RANGES if number < 2 else INTEGER_RANGES[:2]
            for integers in spread if _has_integers(function) else spread[:1]:
                yield sizes, make_inputs(function, sizes, self.seed, integers, number % 2 == 1)
            if not sizes:
                yield sizes, make_inputs(function, sizes, self.seed + 1, spread[0], True)

    # -- one pass

    def _check(self, pass_: Pass, before: Any, after: Any, name: str, trial: Trial) -> None:
        now = {
            mode: run_twice(after, name, trial, mode, any(o.poisoned for o in trial.outcomes[mode]))
            for mode in trial.modes
        }
        if any(outcomes[0].refused for outcomes in now.values()):
            error = next(o[0].error for o in now.values() if o[0].refused)
            self.skipped[name] = f"after {pass_.name}: {error}"
            self._trials[name] = []
            return
        tolerance = self._tolerance(pass_, before.lookup(name))
        difference = first_difference(trial.outcomes, now, pass_.preserves, tolerance)
        if difference is not None:
            trial, difference = self._shrink(pass_, before, after, name, trial, difference)
            raise self._failure(pass_, before, after, name, trial, *difference)
        trial.outcomes = now

    @staticmethod
    def _tolerance(pass_: Pass, function: Operation) -> float:
        return rounding_of(function) if pass_.rounds_constants else REAL_TOLERANCE

    def _shrink(
        self,
        pass_: Pass,
        before: Any,
        after: Any,
        name: str,
        trial: Trial,
        difference: tuple[str, Difference],
    ) -> tuple[Trial, tuple[str, Difference]]:
        """The trial with the smallest symbols' values at which the outcomes still differ."""
        function = before.lookup(name)
        tolerance = self._tolerance(pass_, function)
        if self.inputs is not None and name == "main":
            return trial, difference
        for sizes in smaller(function, trial.sizes):
            for positive in (False, True):
                inputs = make_inputs(function, sizes, self.seed, positive=positive)
                small = run_trial(before, name, sizes, inputs, self.seed)
                if not isinstance(small, Trial):
                    continue
                now = {mode: run_twice(after, name, small, mode, False) for mode in small.modes}
                differs = first_difference(small.outcomes, now, pass_.preserves, tolerance)
                if differs is not None:
                    return small, differs
        return trial, difference

    def _failure(
        self,
        pass_: Pass,
        before: Any,
        after: Any,
        name: str,
        trial: Trial,
        mode: str,
        difference: Difference,
    ) -> SemanticsChanged:
        function = before.lookup(name)
        shown = _sizes_text(trial.sizes)
        message = f"the pass changes what @{name} computes: {difference}"
        folder, files = keep_module(self.folder, pass_, before, after, name, trial.inputs, message)
        notes = [
            f"in mode {mode!r}, the pass preserves {pass_.preserves!r}{shown}",
            *_model_line(function, difference),
            f"the program before and after, and the arguments, are in {folder}",
            "to see it again: " + replay_command(files[0], [pass_], "--check-semantics=each"),
        ]
        error = SemanticsChanged(
            message, location=function.location, pass_name=pass_.name, notes=tuple(notes)
        )
        error.difference, error.sizes, error.inputs = difference, trial.sizes, trial.inputs
        error.files = files
        return error


def _module_of(op: Operation) -> Any:
    while op.parent_op is not None:
        op = op.parent_op
    return op


def _is_function(op: Operation | None) -> bool:
    return op is not None and FunctionLike in op.traits


def _has_integers(function: Operation) -> bool:
    from irc.ir.types import IntegerType, TensorType

    types = (a.type for a in function.regions[0].blocks[0].arguments)
    return any(isinstance(t, TensorType) and isinstance(t.element, IntegerType) for t in types)


def _sizes_text(sizes: Mapping[str, int]) -> str:
    return " with " + ", ".join(f"{k}={v}" for k, v in sizes.items()) if sizes else ""


def _model_line(function: Operation, difference: Difference) -> list[str]:
    """Where the output that differs was made: a line of the model or of the text."""
    what, _, number = difference.output.partition(" ")
    terminator = function.regions[0].blocks[0].last
    if what != "result" or not number.isdigit() or terminator is None:
        return []
    maker = terminator.operands[int(number)].defining_op
    places = [] if maker is None else file_positions(maker.location)
    if maker is None or not places:
        return []
    return [f"{difference.output} is made by '{maker.name}' at {places[0].filename}:"
            f"{places[0].line}"]  # fmt: skip


# -- runs


def run_trial(
    module: Any, name: str, sizes: Mapping[str, int], inputs: Inputs, seed: int
) -> Trial | Exception:
    """A trial with the outcomes of `module`; the error when the program refuses the arguments."""
    trial = Trial(sizes, inputs, RandomLog(seed), {})
    modes = MODES if inputs.has_mode_real else MODES[:1]
    for mode in modes:
        outcomes = run_twice(module, name, trial, mode, True)
        error = outcomes[0].error
        if error is not None:
            return error
        trial.outcomes[mode] = outcomes
    return trial


def run_twice(
    module: Any, name: str, trial: Trial, mode: str, poisoned: bool
) -> list[Outcome]:
    """The outcome, and a second one with the other poison where it may matter (`poisoned`)."""
    first = run_watched(module, name, trial.inputs, mode, trial.log)
    if not (poisoned and first.poisoned) or first.error is not None:
        return [first]
    return [first, run_watched(module, name, trial.inputs, mode, trial.log, poison=1)]


def first_difference(
    before: Mapping[str, Sequence[Outcome]],
    after: Mapping[str, Sequence[Outcome]],
    preserves: str,
    tolerance: float,
) -> tuple[str, Difference] | None:
    """The mode and the difference, in mode "real" first: rounding can't explain those."""
    for mode in reversed(MODES):
        if mode in before:
            real = before["real"][0] if mode == "exact" and "real" in before else None
            difference = compare(before[mode], after[mode], mode, preserves, real, tolerance)
            if difference is not None:
                return mode, difference
    return None


__all__ = ["Inconsistent", "Selection", "SemanticsChanged", "SemanticsCheck"]
