"""Passes and patterns with mistakes, for `irc-opt --load`."""

import irc
from irc.dialects import graph


# add(a, b) -> add(b, a), for ever
@irc.pattern(graph.Add, name="broken.swap")
def swap(op, rw):
    rw.replace(op, rw.builder.value(graph.Add, op.rhs, op.lhs))


@irc.pattern(graph.Add, name="broken.raises")
def raises(op, rw):
    raise KeyError("lost")


@irc.register_pass
class NeverConverges(irc.Pass):
    """Applies a pattern that undoes itself."""

    name = "never-converges"
    summary = "swap for ever"

    def run(self, op, context):
        irc.apply_patterns_greedily(op, [swap])


@irc.register_pass
class PatternRaises(irc.Pass):
    """Applies a pattern that raises."""

    name = "pattern-raises"
    summary = "raise from a pattern"
    anchor = "any"

    def run(self, op, context):
        irc.apply_patterns_greedily(op, [raises])


@irc.register_pass
class PassRaises(irc.Pass):
    """Raises."""

    name = "pass-raises"
    summary = "raise"

    def run(self, op, context):
        raise ZeroDivisionError("by nothing")


@irc.register_pass
class LoopsForEver(irc.Pass):
    """Never ends."""

    name = "loops-for-ever"
    summary = "loop"

    def run(self, op, context):
        while True:
            pass


@irc.register_pass
class BreaksTheProgram(irc.Pass):
    """Leaves a use before its definition."""

    name = "breaks-the-program"
    summary = "break the order of operations"
    anchor = "func.func"

    def run(self, op, context):
        first = op.block.first
        first.detach()
        op.block.insert_before(first, op.block.last)
