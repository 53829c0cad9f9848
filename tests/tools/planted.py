"""Wrong on purpose, for `irc bisect --load`: a rule, a pass, one that raises, one that is right."""

import irc
from irc.dialects import graph
from irc.ir.builder import Builder
from irc.ir.rewrite import PatternPass
from irc.rules import graph as terms
from irc.rules import rule


@rule(canonical=False)
def twice_is_once(x):
    return terms.add(x, x), x


@rule(canonical=False)
def negated_twice(x):
    return terms.neg(terms.neg(x)), x


@irc.register_pass
class PlantedRules(PatternPass):
    """A right rule and a wrong one."""

    name = "test-planted-rules"
    summary = "a right rule and a wrong one"
    patterns = (twice_is_once, negated_twice)


@irc.register_pass
class SineToCosine(irc.Pass):
    """A pass that is wrong, or raises."""

    name = "test-sine-to-cosine"
    summary = "wrong on purpose"
    spends: bool = False
    raises: bool = False

    def run(self, op, context):
        for sine in [o for o in op.walk() if isinstance(o, graph.POINTWISE["sin"])]:
            if self.spends and not context.spend("sine", sine):
                continue
            if self.raises:
                raise ZeroDivisionError("planted")
            cosine = Builder.before(sine).value(graph.POINTWISE["cos"], *sine.operands)
            sine.replace_with([cosine])
