"""Dialect conversion: rewrite until only legal operations are left, or say exactly why not.

    target = ConversionTarget()
    target.legal_dialect("loop", "arith", "math", "func", "sym")
    target.illegal_dialect("graph")
    target.legal_if(graph.CallAten, lambda op: True)
    apply_conversion(function, target, patterns, pass_name="convert-to-loop")
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from irc.ir.core import Operation
from irc.ir.diagnostics import InvalidIR
from irc.ir.location import file_positions
from irc.ir.rewriting import Driver, Pattern, Rewriter

Legality = Callable[[Operation], bool]
MAX_LISTED = 20


class ConversionTarget:
    """Which operations may remain. The most specific rule decides: an operation's own, then its
    dialect's; an operation without any rule is legal unless `strict`."""

    def __init__(self, strict: bool = False) -> None:
        self.strict = strict
        self._dialects: dict[str, bool] = {}
        self._ops: dict[type[Operation], bool | Legality] = {}

    def legal_dialect(self, *names: str) -> None:
        """Allow all operations of these dialects."""
        self._dialects.update(dict.fromkeys(names, True))

    def illegal_dialect(self, *names: str) -> None:
        """Refuse all operations of these dialects."""
        self._dialects.update(dict.fromkeys(names, False))

    def legal(self, *op_classes: type[Operation]) -> None:
        """Allow these operations."""
        self._ops.update(dict.fromkeys(op_classes, True))

    def illegal(self, *op_classes: type[Operation]) -> None:
        """Refuse these operations."""
        self._ops.update(dict.fromkeys(op_classes, False))

    def legal_if(self, op_class: type[Operation], test: Legality) -> None:
        """Allow an operation where `test(op)` holds."""
        self._ops[op_class] = test

    def is_legal(self, op: Operation) -> bool:
        """Whether `op` may remain."""
        rule = self._ops.get(type(op))
        if rule is None:
            return self._dialects.get(op.name.partition(".")[0], not self.strict)
        return rule if isinstance(rule, bool) else rule(op)


def apply_conversion(
    root: Operation,
    target: ConversionTarget,
    patterns: Iterable[Pattern],
    *,
    pass_name: str | None = None,
    partial: bool = False,
) -> None:
    """Apply `patterns` to the illegal operations inside `root`, in order, once each; what a
    pattern makes is converted in turn.

    Raises InvalidIR listing each illegal operation that is left, where it came from, and why each
    pattern declined (unless `partial`).
    """
    by_class: dict[type[Operation], list[Pattern]] = {}
    declared = sorted(patterns, key=lambda p: -p.benefit)
    driver = Driver((), False, Counter())
    reasons: dict[Operation, list[str]] = {}
    pending = [op for op in root.walk() if op is not root]
    while pending:
        made: list[Operation] = []
        for op in pending:
            if op.parent is None or target.is_legal(op):
                continue
            candidates = by_class.get(type(op))
            if candidates is None:
                candidates = [p for p in declared if issubclass(type(op), p.op_classes)]
                by_class[type(op)] = candidates
            _convert(op, candidates, driver, reasons)
        for op in driver.worklist:
            op.queued = False
            if op.parent is not None and op not in reasons and not target.is_legal(op):
                made.extend(o for o in op.walk() if o not in reasons)
        driver.worklist.clear()
        pending = made
    if partial:
        return
    left = [op for op in root.walk() if op is not root and not target.is_legal(op)]
    if left:
        raise conversion_failure(left, reasons, pass_name)


def _convert(
    op: Operation,
    candidates: list[Pattern],
    driver: Driver,
    reasons: dict[Operation, list[str]],
) -> None:
    declined = []
    for candidate in candidates:
        rewriter = Rewriter(driver, op)
        if candidate.function(op, rewriter) is not False:
            return
        declined.append(f"{candidate.name}: {rewriter.reason or 'declined'}")
    reasons[op] = declined or ["no pattern is rooted at this operation"]


def conversion_failure(
    left: list[Operation], reasons: dict[Operation, list[str]], pass_name: str | None = None
) -> InvalidIR:
    """The error that lists each operation that could not be converted: where it comes from, and
    why (`reasons`)."""
    notes = []
    for op in left[:MAX_LISTED]:
        positions = file_positions(op.location)
        where = f" from {positions[0].filename}:{positions[0].line}" if positions else ""
        notes.append(f"'{op.name}'{where}: {'; '.join(reasons.get(op, ['made by a pattern']))}")
    if len(left) > MAX_LISTED:
        notes.append(f"and {len(left) - MAX_LISTED} more")
    return InvalidIR(
        f"{len(left)} operation(s) could not be converted",
        op=left[0],
        pass_name=pass_name,
        notes=tuple(notes),
    )
