"""Two rules of one's own: irc-opt --load examples/own_rules.py --check-rules

The first belongs to `canonicalize`, the second to a pass that a pipeline has to name.
"""

import irc
from irc.rules import graph, rule


@rule
def and_of_inverses(x, y):
    return graph.and_(graph.not_(x), graph.not_(y)), graph.not_(graph.or_(x, y))


@rule(preserves="real", canonical=False)
def square(x):
    return graph.pow(x, 2.0), graph.mul(x, x)


@irc.register_pass
class SquareRules(irc.Pass):
    """Turns squares into products, by a rule."""

    name = "square-rules"
    summary = "x ** 2 as x * x"
    preserves = "real"

    def run(self, op, context):
        irc.apply_patterns_greedily(op, [square])
