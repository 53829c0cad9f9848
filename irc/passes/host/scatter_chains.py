"""Scatters one after the other: what a launch combines into and another one made."""

from __future__ import annotations

from collections.abc import Sequence

from irc.analysis.host_memory import Aliases
from irc.dialects import host, kernel
from irc.ir.core import Value


def combined_into(
    result: Value, callee: kernel.FuncOp | None, aliases: Aliases
) -> Value | None:
    """The array of which a launch makes `result` by changing some elements, if its kernel `callee`
    may do so in place, another launch made it and this one has it as one input only."""
    op = result.defining_op
    if callee is None or not isinstance(op, host.LaunchOp):
        return None
    inputs = list(op.inputs)
    output = len(inputs) + op.results.index(result)
    shared = pairs_of(callee.inplace) & pairs_of(callee.initialized)
    found = [inputs[source] for source, target in shared if target == output]
    if len(found) != 1 or sum(found[0] in aliases.of(v) for v in inputs) != 1:
        return None
    return found[0] if isinstance(found[0].defining_op, host.LaunchOp) else None


def pairs_of(flat: Sequence[int] | None) -> set[tuple[int, int]]:
    """A flat list of pairs as pairs."""
    return set(zip((flat or ())[::2], (flat or ())[1::2], strict=True))
