"""A rewrite and a pass of one's own, for irc-opt --load examples/squares.py --squares."""

import irc
from irc.dialects import graph
from irc.dialects.graph.canonical import full_value


# pow(x, 2) -> mul(x, x)
@irc.pattern(graph.Pow, name="example.square")
def square(op, rw):
    if full_value(op.rhs) != 2.0:
        return rw.no_match("the exponent is not 2")
    rw.replace(op, rw.builder.value(graph.Mul, op.lhs, op.lhs))


@irc.register_pass
class Squares(irc.Pass):
    """Turns squares into products."""

    name = "squares"
    summary = "x ** 2 as x * x"

    def run(self, op, context):
        irc.apply_patterns_greedily(op, [square])
