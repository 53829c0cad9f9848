"""Control flow at run time: what runs a step that names programs."""

from __future__ import annotations

from collections.abc import Mapping

from irc.interp.control import Program, run_cond, run_scan, run_while
from irc.program import host_program as P


def run_control(step: P.Control, programs: Mapping[str, Program]) -> Program:
    """What runs a step, with the programs that it names."""
    first, *others = (programs[name] for name in step.programs)
    if step.kind == "cond":
        return run_cond(first, *others)
    if step.kind == "while":
        return run_while(first, others[0], step.carried, step.stacked)
    return run_scan(first, step.carried, step.scanned)


__all__ = ["run_control"]
