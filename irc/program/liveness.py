"""When the memory of a host program's tensors is used last."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from irc.program import host_program as P


def registers_in(step: P.Step) -> Iterator[int]:
    """The registers that a step reads or makes."""
    if isinstance(step, P.Launch):
        yield from step.tensors
    elif isinstance(step, P.CallOperator):
        for _, content in step.arguments:
            yield from _in_content(content)
        for result in step.results:
            yield result.register
    elif isinstance(step, P.Control):
        yield from step.operands
        for result in step.results:
            yield result.register
    elif isinstance(step, P.View):
        yield step.register
        yield step.source
    elif isinstance(step, P.ReadItem):
        yield step.source
    elif isinstance(step, P.CopyInto):
        yield step.source
        yield step.target
    elif isinstance(step, P.Bind | P.Alloc | P.LoadConstant | P.Flag):
        yield step.register


def _in_content(content: Any) -> Iterator[int]:
    if isinstance(content, P.Register):
        yield content.index
    elif isinstance(content, tuple):
        for item in content:
            yield from _in_content(item)


def dying_after(
    program: P.HostProgram, same: dict[int, int] | None = None
) -> dict[int, tuple[int, ...]]:
    """Step number to the tensor registers that nothing needs after it, outputs left out.

    A tensor lives as long as any view of its memory made by `View`. `same` maps further registers
    to the ones that they are handles of.
    """
    groups = dict(same or {})
    groups.update({s.register: s.source for s in program.steps if isinstance(s, P.View)})

    def group(register: int) -> int:
        while register in groups:
            register = groups[register]
        return register

    last: dict[int, int] = {}
    members: dict[int, list[int]] = {}
    tensors = set(program.layouts)
    for number, step in enumerate(program.steps):
        for register in registers_in(step):
            if register in tensors:
                last[group(register)] = number
                group_members = members.setdefault(group(register), [])
                if register not in group_members:
                    group_members.append(register)
    kept = {group(o.register) for o in program.outputs if o.register is not None}
    dying: dict[int, tuple[int, ...]] = {}
    for root, number in last.items():
        if root not in kept:
            dying[number] = (*dying.get(number, ()), *members[root])
    return dying
