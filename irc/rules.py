"""What a rewrite rule is written with: `rule`, the dialects' terms, and conditions on values.

    from irc.rules import floating, graph, rule

    @rule(where=floating)
    def double_negation(x):
        return graph.neg(graph.neg(x)), x

Any dialect's name can be imported from here; `irc.ir.rewrite.rules` says what a rule means.
"""

from irc.ir.rewrite import terms
from irc.ir.rewrite.rules import Dialect, Number, Rule, all_rules, rule
from irc.ir.rewrite.terms import (
    boolean,
    element_type,
    exact,
    floating,
    integral,
    signed,
)


def __getattr__(name: str) -> Dialect:
    try:
        dialect: Dialect = getattr(terms, name)
    except AttributeError:
        message = f"module 'irc.rules' has no attribute '{name}', nor is it a dialect"
        raise AttributeError(message) from None
    return dialect


__all__ = [
    "Number", "Rule", "all_rules", "boolean", "element_type", "exact", "floating", "integral",
    "rule", "signed",
]  # fmt: skip
