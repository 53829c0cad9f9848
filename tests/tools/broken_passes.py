"""Passes and patterns with mistakes, for `irc-opt --load`."""

import irc
from irc.dialects import graph


def broken(name, anchor=""):
    """Registers a function of (op, context) as the pass `name`."""

    def register(function):
        members = {
            "__doc__": function.__doc__,
            "name": name,
            "summary": function.__doc__.rstrip(".").lower(),
            "run": lambda self, op, context: function(op, context),
            **({"anchor": anchor} if anchor else {}),
        }
        return irc.register_pass(type(function.__name__, (irc.Pass,), members))

    return register


# add(a, b) -> add(b, a), for ever
@irc.pattern(graph.Add, name="broken.swap")
def swap(op, rw):
    rw.replace(op, rw.builder.value(graph.Add, op.rhs, op.lhs))


@irc.pattern(graph.Add, name="broken.raises")
def raises(op, rw):
    raise KeyError("lost")


@broken("never-converges")
def never_converges(op, context):
    """Applies a pattern that undoes itself."""
    irc.apply_patterns_greedily(op, [swap])


@broken("pattern-raises", anchor="any")
def pattern_raises(op, context):
    """Applies a pattern that raises."""
    irc.apply_patterns_greedily(op, [raises])


@broken("pass-raises")
def pass_raises(op, context):
    """Raises."""
    raise ZeroDivisionError("by nothing")


@broken("loops-for-ever")
def loops_for_ever(op, context):
    """Never ends."""
    while True:
        pass


@broken("breaks-the-program", anchor="func.func")
def breaks_the_program(op, context):
    """Leaves a use before its definition."""
    first = op.block.first
    first.detach()
    op.block.insert_before(first, op.block.last)
