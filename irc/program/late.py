"""Which checks of a GPU's program need not be waited for."""

from __future__ import annotations

from irc.program import host_program as P
from irc.program.liveness import registers_in


def late_steps(program: P.HostProgram) -> dict[int, int]:
    """The steps that read a truth value which one assertion uses and nothing else: numbers of
    such an `Item` and its `AssertValue`."""
    used = {r for step in program.steps for r in registers_in(step)}
    used |= {output.register for output in program.outputs if output.register is not None}
    asserted: dict[int, list[int]] = {}
    for number, step in enumerate(program.steps):
        if isinstance(step, P.AssertValue):
            asserted.setdefault(step.register, []).append(number)
    return {
        number: asserted[step.register][0]
        for number, step in enumerate(program.steps)
        if isinstance(step, P.ReadItem)
        and step.kind == "bool"
        and step.register not in used
        and len(asserted.get(step.register, ())) == 1
    }


__all__ = ["late_steps"]
