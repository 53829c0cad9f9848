"""Which numbers of a GPU's program are copied to the CPU before they are waited for.

    early = read_early(program, lambda call: True)
    early.program                   # the same steps, those that wait for numbers later
    early.starts[4]                 # the `ReadItem`s whose copies start behind step 4

A number that is read from a tensor makes the CPU wait until the GPU has reached it. So its copy
starts as soon as the number is there, and is waited for where the number is needed: what lies in
between is asked of the GPU meanwhile. What depends on the number alone (symbols that it binds, and
assertions about these) waits with it. A step doesn't overtake it if it may write what the caller
holds: where an assertion fails, nothing behind it was written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from irc.ir.symbols import Expr, free_symbols
from irc.program import host_program as P
from irc.program.late import late_steps
from irc.program.liveness import registers_in

#: Steps that ask something of the GPU.
_ASKING = (P.Launch, P.CallOperator, P.CopyInto, P.Control)


@attrs.frozen
class Early:
    """A program with its steps in the order in which they run, and the numbers of those whose
    copies start behind a step (-1: before all); the other `ReadItem`s wait where they stand."""

    program: P.HostProgram
    starts: Mapping[int, tuple[int, ...]]


def symbols_in(step: Any) -> frozenset[str]:
    """The symbols in the sizes, strides, offsets and numbers of a step."""
    return frozenset(_symbols(step))


def _symbols(value: Any) -> Iterator[str]:
    if isinstance(value, Expr):
        yield from free_symbols(value)
    elif isinstance(value, tuple):
        for each in value:
            yield from _symbols(each)
    elif isinstance(value, P.Launch):
        yield from value.symbols
        yield from _symbols((value.grid, value.work))
    elif attrs.has(type(value)):
        yield from _symbols(tuple(getattr(value, a.name) for a in attrs.fields(type(value))))


def read_early(program: P.HostProgram, is_quiet: Callable[[P.CallOperator], bool]) -> Early:
    """The program with its numbers read as early, and waited for as late, as may be.

    `is_quiet`: whether a call writes nothing that the caller holds, and has no other effect.
    """
    late = late_steps(program) if program.late_checks else {}
    reads = {n for n, step in enumerate(program.steps) if n not in late and _is_read(program, step)}
    if not reads:
        return Early(program, {})
    order = _Sinking(program, reads, late, is_quiet).order()
    place = {old: new for new, old in enumerate(order)}
    starts: dict[int, list[int]] = {}
    for number in sorted(reads):
        start = _last_mention(program, number)
        behind, end = -1 if start < 0 else place[start], place[number]
        if any(isinstance(program.steps[old], _ASKING) for old in order[behind + 1 : end]):
            starts.setdefault(behind, []).append(end)
    steps = tuple(program.steps[old] for old in order)
    return Early(attrs.evolve(program, steps=steps), {k: tuple(v) for k, v in starts.items()})


def _is_read(program: P.HostProgram, step: P.Step) -> bool:
    """Whether a step reads one element of a tensor of a GPU."""
    if not isinstance(step, P.ReadItem) or step.every:
        return False
    return program.layouts[step.source].device != "cpu"


def _last_mention(program: P.HostProgram, number: int) -> int:
    """The last step before a `ReadItem` that has to do with the memory that it reads."""
    step = program.steps[number]
    assert isinstance(step, P.ReadItem)
    root = program.root(step.source)[0]
    for before in range(number - 1, -1, -1):
        if any(program.root(r)[0] == root for r in registers_in(program.steps[before])):
            return before
    return -1


class _Sinking:
    """Moves what waits for numbers to where these are needed."""

    def __init__(
        self, program: P.HostProgram, reads: set[int], late: Mapping[int, int],
        is_quiet: Callable[[P.CallOperator], bool],
    ) -> None:  # fmt: skip
        self.program, self.reads, self.is_quiet = program, reads, is_quiet
        self.late = {*late, *late.values()}
        self.held = {program.root(a.register)[0] for a in program.arguments}
        self.waiting: list[int] = []
        self.registers: set[int] = set()
        self.symbols: set[str] = set()

    def order(self) -> list[int]:
        """The numbers of the steps in their new order."""
        order: list[int] = []
        for number, step in enumerate(self.program.steps):
            if self._waits(number, step):
                self.waiting.append(number)
                continue
            if self.waiting and not self._overtakes(number, step):
                order += self._released()
            order.append(number)
        return order + self._released()

    def _released(self) -> list[int]:
        released = self.waiting
        self.waiting, self.registers, self.symbols = [], set(), set()
        return released

    def _waits(self, number: int, step: P.Step) -> bool:
        """Whether a step reads a number, or is only about numbers that wait."""
        if number in self.reads:
            assert isinstance(step, P.ReadItem)
            self.registers.add(step.register)
            return True
        if isinstance(step, P.Bind) and step.register in self.registers and step.dim is None:
            self.symbols.add(step.symbol)
            return True
        used = symbols_in(step)
        if not used or not used <= self.symbols:
            return False
        if isinstance(step, P.SymbolValue):
            self.registers.add(step.register)
            return True
        return isinstance(step, P.Assert)

    def _overtakes(self, number: int, step: P.Step) -> bool:
        """Whether a step may run before what waits."""
        if self.registers & set(registers_in(step)) or self.symbols & symbols_in(step):
            return False
        if isinstance(step, P.Launch):
            return not any(self._is_held(step.tensors[k]) for k in step.outputs)
        if isinstance(step, P.CopyInto):
            return not self._is_held(step.target)
        if isinstance(step, P.CallOperator):
            return self.is_quiet(step)
        quiet = isinstance(step, P.Alloc | P.View | P.LoadConstant | P.SymbolValue | P.Flag)
        return quiet or number in self.late

    def _is_held(self, register: int) -> bool:
        return self.program.root(register)[0] in self.held


__all__ = ["Early", "read_early", "symbols_in"]
