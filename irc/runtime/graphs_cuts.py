"""Cuts a host program into pieces that a graph can hold and pieces that it can't.

    for piece in cut(program, "cuda:0"):
        print(piece.reason or "captured", piece.program.steps)

A graph replays launches without the host seeing any data. So a step that needs the host to see
data, and whatever takes a number that was read from data, stays outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

import attrs
import torch

from irc.boundary.aten_paths import find_operator
from irc.ir.diagnostics import UserError
from irc.ir.symbols import free_symbols, symbol
from irc.program import host_program as P
from irc.program.liveness import registers_in
from irc.runtime.late_checks import late_steps

LEAST_WORK = 2
"""Launches and calls of a piece below which a graph gains nothing over making them."""

GIVES_BACK = "it only gives back what is there"
"""Why the last piece is not captured that makes views of arguments, and numbers, for the caller."""

_TAGS = {
    "dynamic_output_shape": "the size of its result is found in data",
    "data_dependent_output": "it gives the host a number of the GPU",
    "cudagraph_unsafe": "it is tagged as one that can't be captured",
}


@attrs.frozen
class GraphPiece:
    """A part of a program, as a program: `takes` and `gives` are registers of the whole.

    `reason`: why it is not captured, None for one that is. `numbers`: the number in the whole
    program of each of its steps. `symbols`: those that it finds, by the registers (behind `gives`
    among its outputs) that have their values. `random`: it draws random numbers.
    """

    program: P.HostProgram
    takes: tuple[int, ...]
    gives: tuple[int, ...]
    numbers: tuple[int, ...]
    reason: str | None
    symbols: tuple[str, ...] = ()
    random: bool = False

    @property
    def captured(self) -> bool:
        """Whether a graph holds it."""
        return self.reason is None


@attrs.frozen
class Cut:
    """A whole program in pieces. `reasons`: why steps are not captured, by number, those left out
    that only follow from another. `written`: arguments that it writes, `returned`: those that it
    gives back themselves or as views, both by position. `constant`: registers of numbers that only
    depend on the arguments' sizes and numbers."""

    pieces: tuple[GraphPiece, ...]
    reasons: Mapping[int, str]
    written: frozenset[int]
    returned: frozenset[int]
    constant: frozenset[int] = frozenset()


def cut(program: P.HostProgram, device: str, refused: Mapping[int, str] | None = None) -> Cut:
    """The pieces of a program whose arrays are on `device`. `refused`: steps that may not be
    captured, by number, with their reasons."""
    facts = _StepFacts(program, device)
    reasons = {**facts.reasons(), **(refused or {})}
    told = dict(reasons)
    while True:
        runs = _runs(program, facts, reasons, told)
        pieces = _PieceMaker(program, facts).pieces_of(runs)
        wrong = _foreign_writes(facts, pieces)
        if not wrong:
            break
        reasons.update(dict.fromkeys(wrong, "it writes memory that an uncaptured step made"))
    roots = {a.register: position for position, a in enumerate(program.arguments)}
    written = {facts.root(r) for step in program.steps for r in facts.written(step)}
    returned = {facts.root(o.register) for o in program.outputs if o.register is not None}
    return Cut(
        pieces, told,
        frozenset(roots[r] for r in written if r in roots),
        frozenset(roots[r] for r in returned if r in roots),
        frozenset(s.register for s in program.steps
                  if isinstance(s, P.SymbolValue) and s.register not in facts.read),
    )  # fmt: skip


class _StepFacts:
    """What the steps of a program read, write and share."""

    def __init__(self, program: P.HostProgram, device: str) -> None:
        self.program, self.device = program, device
        self.makers: dict[int, int] = {}
        self.same: dict[int, int] = {}
        #: Checks that are told late: the steps that read them, with those that look at them.
        self.checks = late_steps(program) if program.late_checks else {}
        self.late = frozenset(self.checks) | frozenset(self.checks.values())
        self.read_sizes = frozenset(s.symbol for s in program.steps if isinstance(s, P.Bind))
        self.read: set[int] = set()
        self.taken = {r for step in program.steps for r in taken_by(step)}
        self.taken.update(o.register for o in program.outputs if o.register is not None)
        for number, step in enumerate(program.steps):
            for register in made_by(step):
                self.makers[register] = number
            self._share(step)
            self._mark_read(number, step)

    def root(self, register: int) -> int:
        """The register whose memory this one shares."""
        while register in self.same:
            register = self.same[register]
        return register

    def _share(self, step: P.Step) -> None:
        if isinstance(step, P.View):
            self.same[step.register] = step.source
        elif isinstance(step, P.CallOperator):
            self.same.update(shared_results(step))

    def _mark_read(self, number: int, step: P.Step) -> None:
        """Note the scalar registers whose contents come from data."""
        if isinstance(step, P.ReadItem) and number not in self.late:
            self.read.add(step.register)
        elif isinstance(step, P.SymbolValue) and self.is_found(step.dim):
            self.read.add(step.register)
        elif isinstance(step, P.CallOperator | P.Control):
            self.read.update(r.register for r in step.results if r.kind not in ("tensor", "none"))

    def is_found(self, content: Any) -> bool:
        """Whether a dim, or dims, mention a symbol that is found in data."""
        if isinstance(content, tuple | list):
            return any(self.is_found(each) for each in content)
        if isinstance(content, P.Size):
            return self.is_found(content.dim)
        if content is None or isinstance(content, int | float | str | P.NamedArgument | P.Register):
            return False
        return not free_symbols(content).isdisjoint(self.read_sizes)

    def written(self, step: P.Step) -> Iterator[int]:
        """The registers whose memory a step writes, fresh results left out."""
        if isinstance(step, P.Launch):
            yield from (step.tensors[position] for position in step.outputs)
        elif isinstance(step, P.CopyInto):
            yield step.target
        elif isinstance(step, P.CallOperator):
            yield from written_operands(step)

    # -- reasons

    def reasons(self) -> dict[int, str]:
        """Why steps can't be captured, by their numbers."""
        reasons: dict[int, str] = {}
        for number, step in enumerate(self.program.steps):
            reason = None if number in self.late else self.reason(step)
            if reason is not None:
                reasons[number] = reason
        for number, last in self._unsettled(reasons):
            for between in range(number + 1, last):
                reasons.setdefault(between, "it stands before a size of an operator's result")
        return reasons

    def reason(self, step: P.Step) -> str | None:
        """Why a step can't be captured; None for one that can."""
        if isinstance(step, P.ReadItem):
            return "the host waits for a number of the GPU"
        if isinstance(step, P.Bind):
            return "a size is found in data"
        if isinstance(step, P.Control):
            return "the host chooses what runs next"
        if isinstance(step, P.AssertValue):
            return "the host looks at a number of the GPU" if step.register in self.read else None
        if isinstance(step, P.Assert):
            return "a size is found in data" if self.is_found((step.lhs, step.rhs)) else None
        if isinstance(step, P.SymbolValue):
            return None
        if isinstance(step, P.CallOperator):
            reason = _refusal(step, self.taken)
            if reason is not None:
                return reason
        return self._operand_reason(step)

    def _operand_reason(self, step: P.Step) -> str | None:
        own = made_by(step)
        for register in (*registers_in(step), *_scalars_in(step)):
            layout = self.program.layouts.get(register)
            if register in self.read and register not in own:
                return "it takes a number that is read from data"
            if layout is None:
                continue
            if self.is_found((layout.sizes, layout.strides)):
                return "a size is found in data"
            if layout.device != self.device and not isinstance(step, P.LoadConstant | P.View):
                return f"it has a tensor of {layout.device.partition(':')[0]}"
        if isinstance(step, P.Launch | P.CallOperator | P.CopyInto) and step.when is not None:
            if self.is_found(step.when.size):
                return "a size is found in data"
        if isinstance(step, P.CallOperator) and self.is_found([c for _, c in step.arguments]):
            return "a size is found in data"
        if isinstance(step, P.Launch):
            if self.is_found(step.grid) or not self.read_sizes.isdisjoint(step.symbols):
                return "a size is found in data"
        return None

    def _unsettled(self, reasons: Mapping[int, str]) -> Iterator[tuple[int, int]]:
        """Calls whose results' sizes are bound later, and the steps that do."""
        binds = {s.symbol: n for n, s in enumerate(self.program.steps) if isinstance(s, P.Bind)}
        for number in reasons:
            step = self.program.steps[number]
            if not isinstance(step, P.CallOperator | P.Control):
                continue
            layouts = [r.layout for r in step.results if r.layout is not None]
            dims = [d for layout in layouts for d in (*layout.sizes, *(layout.strides or ()))]
            names = {name for d in dims if not isinstance(d, int) for name in free_symbols(d)}
            later = [binds[name] for name in names if name in binds]
            if later:
                yield number, max(later)


def made_by(step: P.Step) -> tuple[int, ...]:
    """The registers that a step makes."""
    if isinstance(step, P.CallOperator | P.Control):
        return tuple(result.register for result in step.results)
    if isinstance(step, P.Alloc | P.View | P.LoadConstant | P.ReadItem | P.SymbolValue | P.Flag):
        return (step.register,)
    return ()


def taken_by(step: P.Step) -> tuple[int, ...]:
    """The registers that a step needs."""
    own = made_by(step)
    needed = (*registers_in(step), *_scalars_in(step))
    return tuple(r for r in dict.fromkeys(needed) if r not in own)


def _scalars_in(step: P.Step) -> Iterator[int]:
    """Registers that liveness does not ask for: those of numbers that are looked at."""
    if isinstance(step, P.AssertValue):
        yield step.register


def _operator(step: P.CallOperator) -> Any:
    """What a step calls; None where torch hasn't it, which the call says when it gets there."""
    try:
        return find_operator(step.callee)
    except (KeyError, UserError):
        return None


def _schema(step: P.CallOperator) -> Any:
    return getattr(_operator(step), "_schema", None)


def _registers(content: Any) -> Iterator[int]:
    if isinstance(content, P.Register):
        yield content.index
    elif isinstance(content, tuple):
        for item in content:
            yield from _registers(item)


def written_operands(step: P.CallOperator) -> Iterator[int]:
    """The registers that an operator writes, by its schema."""
    schema, arguments = _schema(step), dict(step.arguments)
    for argument in () if schema is None else schema.arguments:
        if argument.alias_info is not None and argument.alias_info.is_write:
            yield from _registers(arguments.get(argument.name))


def shared_results(step: P.CallOperator) -> dict[int, int]:
    """Results that share the memory of an operand, by the schema: result and operand."""
    schema, arguments = _schema(step), dict(step.arguments)
    if schema is None:
        return {}
    shared = {}
    single = len(schema.returns) == 1
    for position, result in enumerate(step.results):
        returned = schema.returns[0 if single else min(position, len(schema.returns) - 1)]
        if returned.alias_info is None:
            continue
        for argument in schema.arguments:
            info = argument.alias_info
            if info is not None and info.before_set & returned.alias_info.before_set:
                for register in _registers(arguments.get(argument.name)):
                    shared[result.register] = register
    return shared


def is_view_call(step: P.Step) -> bool:
    """Whether a step calls an operator that only gives views of what it takes."""
    if not isinstance(step, P.CallOperator) or len(shared_results(step)) != len(step.results):
        return False
    return bool(step.results) and not any(True for _ in written_operands(step))


def _refusal(step: P.CallOperator, taken: Set[int]) -> str | None:
    """Why an operator can't be captured whatever it is called with. `taken`: registers that
    anybody looks at; attention gives numbers that nobody does."""
    op = _operator(step)
    if op is None:
        return "torch has no such operator"
    for name, reason in _TAGS.items():
        tag = getattr(torch.Tag, name, None)
        if tag is not None and tag in op.tags:
            return reason
    numbers = {r.register for r in step.results if r.kind not in ("tensor", "none")}
    if not numbers.isdisjoint(taken):
        return "it gives the host a number"
    return None


def draws(step: P.Step) -> bool:
    """Whether a step draws from torch's generator, by its operator's tag; attention that drops
    nothing doesn't."""
    if not isinstance(step, P.CallOperator):
        return False
    op = _operator(step)
    if op is None or torch.Tag.nondeterministic_seeded not in op.tags:
        return False
    arguments = dict(step.arguments)
    chances = [arguments.get(a.name, a.default_value) for a in _schema(step).arguments
               if a.name == "dropout_p"]  # fmt: skip
    return chances != [0.0]


# -- pieces


def _is_free(step: P.Step) -> bool:
    """Whether a step stands wherever it is needed: it makes no launch."""
    free = P.Alloc | P.View | P.LoadConstant | P.SymbolValue | P.Flag
    return isinstance(step, free) or is_view_call(step)


def _runs(
    program: P.HostProgram, facts: _StepFacts, reasons: Mapping[int, str], told: dict[int, str]
) -> list[tuple[str | None, list[int]]]:
    """Consecutive steps of one kind: (why they aren't captured, their numbers). `told` gets the
    first of those that are too few."""
    runs: list[tuple[str | None, list[int]]] = []
    looks = frozenset(facts.checks.values())
    for number, step in enumerate(program.steps):
        if _is_free(step) or number in looks:
            continue
        # A late check is one thing: what looks at it goes with what reads it.
        numbers = [number, facts.checks[number]] if number in facts.checks else [number]
        reason = reasons.get(number)
        if runs and (runs[-1][0] is None) == (reason is None):
            runs[-1][1].extend(numbers)
        else:
            runs.append((reason, numbers))
    merged: list[tuple[str | None, list[int]]] = []
    for reason, numbers in runs:
        work = [n for n in numbers if isinstance(program.steps[n], _WORK)]
        if reason is None and len(work) < LEAST_WORK:
            reason = "too few launches stand together for a graph"
            told.update(dict.fromkeys(work, reason))
        if merged and merged[-1][0] is not None and reason is not None:
            merged[-1][1].extend(numbers)
        else:
            merged.append((reason, numbers))
    return merged


_WORK = (P.Launch, P.CallOperator, P.CopyInto)


class _PieceMaker:
    """Makes programs of runs of steps."""

    def __init__(self, program: P.HostProgram, facts: _StepFacts) -> None:
        self.program, self.facts = program, facts
        self.arguments = {a.register: a for a in program.arguments}

    def pieces_of(self, runs: Sequence[tuple[str | None, list[int]]]) -> tuple[GraphPiece, ...]:
        """The pieces of runs of steps, in order, and one for what is left to be given back."""
        outputs = [o.register for o in self.program.outputs if o.register is not None]
        allocated: set[int] = set()
        parts = []
        for reason, numbers in runs:
            steps = self._completed(numbers, allocated, self.program.steps)
            parts.append((reason, steps))
        self._place_outputs(parts, outputs, allocated)
        made_in = {r: i for i, (_, steps) in enumerate(parts)
                   for n in steps for r in made_by(self.program.steps[n])}  # fmt: skip
        rest = [r for r in outputs if r not in made_in and r not in self.arguments]
        if rest:
            steps = self._demanded(rest, set(), allocated)
            parts.append((GIVES_BACK, steps))
        needed = set(outputs)
        pieces: list[GraphPiece] = []
        for reason, steps in reversed(parts):
            piece = self._piece(reason, steps, needed)
            needed |= set(piece.takes)
            pieces.append(piece)
        return tuple(reversed(pieces))

    def _completed(
        self, numbers: Iterable[int], allocated: set[int], steps: Sequence[P.Step]
    ) -> list[int]:
        """The steps of a run, each behind the free steps that it needs."""
        have: set[int] = set()
        completed: list[int] = []
        for number in numbers:
            completed += self._demanded(taken_by(steps[number]), have, allocated)
            completed.append(number)
            have.update(made_by(steps[number]))
        return completed

    def _demanded(
        self, registers: Iterable[int], have: set[int], allocated: set[int]
    ) -> list[int]:
        """Numbers of the free steps that make these registers, in order."""
        demanded: list[int] = []
        for register in registers:
            number = self.facts.makers.get(register)
            if number is None or register in have or register in allocated:
                continue
            step = self.program.steps[number]
            if not _is_free(step):
                continue
            demanded += self._demanded(taken_by(step), have, allocated)
            demanded.append(number)
            have.update(made_by(step))
            if isinstance(step, P.Alloc):
                allocated.add(register)
        return demanded

    def _place_outputs(
        self,
        parts: list[tuple[str | None, list[int]]],
        outputs: Iterable[int],
        allocated: set[int],
    ) -> None:
        """Make results that are views where the memory is made that they are views of."""
        where = {r: i for i, (_, steps) in enumerate(parts)
                 for n in steps for r in made_by(self.program.steps[n])}  # fmt: skip
        for register in outputs:
            root = self.facts.root(register)
            if register in where or root not in where:
                continue
            _, steps = parts[where[root]]
            have = {r for n in steps for r in made_by(self.program.steps[n])}
            steps += self._demanded([register], have, allocated)

    def _piece(self, reason: str | None, steps: list[int], needed: set[int]) -> GraphPiece:
        whole = self.program
        inside = [whole.steps[n] for n in steps]
        own = {r for step in inside for r in made_by(step)}
        taken = dict.fromkeys(r for step in inside for r in taken_by(step) if r not in own)
        gives = tuple(r for r in dict.fromkeys(r for s in inside for r in made_by(s))
                      if r in needed)  # fmt: skip
        symbols = tuple(dict.fromkeys(s.symbol for s in inside if isinstance(s, P.Bind)))
        crossing = {self.facts.root(r) for r in gives}
        body = [
            attrs.evolve(s, offset=None)
            if isinstance(s, P.Alloc) and s.register in crossing else s
            for s in inside
        ]  # fmt: skip
        values = range(whole.registers, whole.registers + len(symbols))
        body += [P.SymbolValue(r, symbol(s)) for r, s in zip(values, symbols, strict=True)]
        outputs = [*(self._output(r) for r in gives), *(P.Output(r, "int") for r in values)]
        program = attrs.evolve(
            whole, arguments=tuple(self._argument(r) for r in taken), bindings=(),
            steps=tuple(body), outputs=tuple(outputs), registers=whole.registers + len(symbols),
        )  # fmt: skip
        random = any(draws(step) for step in inside)
        return GraphPiece(program, tuple(taken), gives, tuple(steps), reason, symbols, random)

    def _argument(self, register: int) -> P.Argument:
        argument = self.arguments.get(register)
        if argument is not None:
            return argument
        kind = self.program.kinds.get(register, "tensor")
        return P.Argument(f"%{register}", kind, register, self.program.layouts.get(register))

    def _output(self, register: int) -> P.Output:
        kind = self.program.kinds.get(register, "tensor")
        return P.Output(register, kind, self.program.layouts.get(register))


def _foreign_writes(facts: _StepFacts, pieces: Sequence[GraphPiece]) -> list[int]:
    """Captured steps that write memory which an uncaptured piece made."""
    outside = {r for piece in pieces if not piece.captured
               for step in piece.program.steps for r in made_by(step)
               if not isinstance(step, P.View)}  # fmt: skip
    return [
        number
        for piece in pieces if piece.captured
        for number in piece.numbers
        if any(facts.root(r) in outside for r in facts.written(facts.program.steps[number]))
    ]  # fmt: skip


__all__ = ["Cut", "GraphPiece", "cut"]
