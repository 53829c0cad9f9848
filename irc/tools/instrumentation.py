"""What irc-opt hooks around passes: printing, timing, limits and crash reproducers."""

from __future__ import annotations

import signal
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, TextIO

from irc.ir.core import Operation
from irc.ir.diagnostics import IRCError, UserError
from irc.ir.passes import (
    Instrumentation,
    Nested,
    Pass,
    PassContext,
    PassManager,
    chosen_remarks,
)
from irc.validation.reproducer import passes_of, replay_command, write_reproducer

EVERY = frozenset({"*"})


class PrintIR(Instrumentation):
    """Prints the program around passes: to `stream`, or to one file each below `tree`.

    `before` and `after` are the pass names to print at ("*": all); `only_changed` leaves out what
    a pass did not change; `function` prints only the function of that name.
    """

    def __init__(
        self,
        before: Collection[str] = (),
        after: Collection[str] = (),
        *,
        only_changed: bool = False,
        on_failure: bool = False,
        function: str | None = None,
        tree: Path | None = None,
        stream: TextIO | None = None,
        generic: bool = False,
    ) -> None:
        self.before = frozenset(before)
        self.after = frozenset(after)
        self.only_changed = only_changed
        self.on_failure = on_failure
        self.function = function
        self.tree = tree
        self.stream = stream
        self.generic = generic
        self.number = 0
        self._previous = ""

    def _text(self, op: Operation) -> str:
        from irc.ir.text.printer import print_op

        if self.function is not None:
            lookup = getattr(op, "lookup", None)
            function = lookup(self.function) if lookup is not None else None
            if function is None:
                return ""
            op = function
        return print_op(op, generic=self.generic)

    def _emit(self, when: str, pass_: Pass, text: str) -> None:
        if self.tree is not None:
            self.tree.mkdir(parents=True, exist_ok=True)
            path = self.tree / f"{self.number:03d}_{when}_{pass_.name}.mlir"
            path.write_text(text + "\n", encoding="utf-8")
            self.number += 1
            return
        stream = self.stream or sys.stderr
        stream.write(f"// -----// IR {when} {pass_.name} //----- //\n{text}\n\n")

    def before_pass(self, pass_: Pass, op: Operation, context: PassContext) -> None:
        if self.only_changed:
            self._previous = self._text(op)
        if _selected(self.before, pass_.name):
            self._emit("before", pass_, self._text(op))

    def after_pass(self, pass_: Pass, op: Operation, context: PassContext) -> None:
        if not _selected(self.after, pass_.name):
            return
        text = self._text(op)
        if not (self.only_changed and text == self._previous):
            self._emit("after", pass_, text)

    def after_failure(
        self, pass_: Pass, op: Operation, context: PassContext, error: BaseException
    ) -> None:
        if self.on_failure:
            self._emit("failed", pass_, self._text(op))


def _selected(names: frozenset[str], name: str) -> bool:
    return names == EVERY or name in names


class TimeLimit(Instrumentation):
    """Stops a pass that runs longer than `seconds` with an error that names it.

    Works in the main thread on systems with SIGALRM; elsewhere it raises UserError at once.
    """

    def __init__(self, seconds: float) -> None:
        if not hasattr(signal, "SIGALRM") or (
            threading.current_thread() is not threading.main_thread()
        ):
            raise UserError("a time limit for passes needs SIGALRM and the main thread")
        self.seconds = seconds
        self._old: Any = None

    def before_pass(self, pass_: Pass, op: Operation, context: PassContext) -> None:
        def expired(number: int, frame: Any) -> None:
            raise UserError(
                f"the pass did not end within {self.seconds:g} s", pass_name=pass_.name
            )

        self._old = signal.signal(signal.SIGALRM, expired)
        signal.setitimer(signal.ITIMER_REAL, self.seconds)

    def _stop(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        if self._old is not None:
            signal.signal(signal.SIGALRM, self._old)
            self._old = None

    def after_pass(self, pass_: Pass, op: Operation, context: PassContext) -> None:
        self._stop()

    def after_failure(
        self, pass_: Pass, op: Operation, context: PassContext, error: BaseException
    ) -> None:
        self._stop()


class CrashReproducer(Instrumentation):
    """When a pass fails, writes a file with the program before that pass and the pipeline from
    there on, which `irc-opt --run-reproducer FILE` replays."""

    def __init__(self, path: Path, remaining: Callable[[Pass], str]) -> None:
        self.path = path
        self.remaining = remaining
        self._text = ""
        self._module: Any = None

    def before_pass(self, pass_: Pass, op: Operation, context: PassContext) -> None:
        from irc.ir.text.printer import print_op

        module = op
        while module.parent_op is not None:
            module = module.parent_op
        self._text = print_op(module)
        self._module = module

    def after_failure(
        self, pass_: Pass, op: Operation, context: PassContext, error: BaseException
    ) -> None:
        pipeline = self.remaining(pass_)
        command = replay_command(self.path, passes_of(PassManager.parse(pipeline).steps))
        message = f"{type(error).__name__}: {error}" if not isinstance(error, IRCError) else error
        write_reproducer(self.path, pipeline, str(message), self._module, self._text, command)


def contains(step: Pass | Nested, pass_: Pass) -> bool:
    """Whether a step of a pipeline is `pass_` or has it inside."""
    if isinstance(step, Nested):
        return any(contains(inner, pass_) for inner in step.steps)
    return step is pass_


def timing_report(context: PassContext) -> str:
    """A table of the time that each pass took, longest first."""
    totals: dict[str, float] = defaultdict(float)
    for name, seconds in context.timings:
        totals[name] += seconds
    whole = sum(totals.values()) or 1.0
    lines = ["===-- pass timing --==="]
    for name, seconds in sorted(totals.items(), key=lambda item: -item[1]):
        lines.append(f"{seconds * 1e3:10.3f} ms  {100 * seconds / whole:5.1f} %  {name}")
    lines.append(f"{sum(totals.values()) * 1e3:10.3f} ms  total")
    return "\n".join(lines)


def statistics_report(context: PassContext) -> str:
    """A table of the passes' statistics."""
    lines = ["===-- pass statistics --==="]
    for (pass_name, name), amount in sorted(context.statistics.items()):
        lines.append(f"{amount:10d}  {pass_name}: {name}")
    return "\n".join(lines)


def remarks_report(context: PassContext, pattern: str = "") -> str:
    """One line per remark: where, which pass, about which operation, what.

    wanted: a regular expression that must be found in a line (after its place). Raises UserError
    for a bad one.
    """
    return "\n".join(str(remark) for remark in chosen_remarks(context.remarks, pattern))
