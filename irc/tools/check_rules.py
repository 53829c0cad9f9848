"""`irc-opt --check-rules`: every rule on random values, a line each."""

from __future__ import annotations

import sys

from irc.ir.diagnostics import UserError
from irc.ir.passes import all_passes
from irc.ir.registry import DIALECT_MODULES, load_dialect
from irc.ir.rewrite.rules import all_rules


def check_rules(cases: int) -> int:
    """Check the rules of all dialects, passes and loaded files; 1 if one is wrong.

    Raises UserError where `cases` is no number of cases.
    """
    from irc.validation.rules import NotChecked, check_rule

    if cases < 1:
        raise UserError(f"--check-rules takes the number of cases of each rule, not {cases}")
    for dialect in DIALECT_MODULES:
        load_dialect(dialect)
    all_passes()
    wrong = 0
    for name, rule in all_rules().items():
        try:
            failure: object = check_rule(rule, cases)
        except NotChecked as reason:
            failure = reason
        if failure is None:
            print(f"{name}: {rule.equation}  [{rule.preserves}, {cases} cases]")
        else:
            wrong += 1
            print(failure, file=sys.stderr)
    print(f"{len(all_rules()) - wrong} rules hold, {wrong} are wrong")
    return 1 if wrong else 0
