"""Running a function in the interpreter so that what is undefined or random can be compared."""

from __future__ import annotations

from typing import Any

import attrs
import torch

from irc.interp.core import Frame, NoMeaning, run
from irc.ir.core import Operation
from irc.ir.diagnostics import InvalidIR, UserError
from irc.ir.types import TensorType
from irc.validation.inputs import Inputs

#: What undefined elements hold: floats NaN or 12345, integers a large or a small number. An
#: element that differs between runs with the two is undefined itself.
POISONS = ((float("nan"), 85), (12345.0, 2))


class Inconsistent(UserError):
    """A value does not have the sizes that its type says: the symbols' values don't fit."""


class RandomLog:
    """The random calls of a first run, replayed in later ones.

    A call is remembered by its operator, and its seed is replayed, not its result: so a wrong
    operand of dropout still shows. A call of an operator that the log does not have (a pass wrote
    it in other operators) takes the seed of the next call not taken yet.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.names: list[str] = []
        self.recorded = False
        self._taken: set[int] = set()

    def start(self) -> None:
        """Begin a run: the first one records, the others replay."""
        self.recorded = self.recorded or bool(self.names)
        self._taken.clear()

    def next_seed(self, name: str) -> int:
        """The seed of a call of the operator `name`, whatever its overload and mutation."""
        name = name.rpartition("::")[2].rstrip("_")
        if not self.recorded:
            self.names.append(name)
            return self.seed + len(self.names) - 1
        free = [n for n in range(len(self.names)) if n not in self._taken]
        same = [n for n in free if self.names[n] == name]
        number = same[0] if same else free[0] if free else len(self.names)
        self._taken.add(number)
        return self.seed + number


class Watch:
    """Sees one run: seeds random calls from the log, poisons undefined memory, and checks the
    size of each value against its type."""

    def __init__(self, log: RandomLog, poison: int) -> None:
        self.log = log
        self.poison = POISONS[poison]
        self.poisoned = False
        log.start()

    def call_random(self, target: Any, positional: list[Any], keywords: dict[str, Any]) -> Any:
        """Call a random operator with its seed, leaving the generator as it was."""
        seed = self.log.next_seed(target._schema.name)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return target(*positional, **keywords)

    def fill_undefined(self, memory: torch.Tensor) -> None:
        """Fill memory whose elements are undefined."""
        self.poisoned = True
        if memory.dtype.is_floating_point or memory.dtype.is_complex:
            memory.fill_(self.poison[0])
        elif memory.dtype == torch.bool:
            memory.fill_(self.poison[1] > 2)
        else:
            memory.fill_(self.poison[1])

    def executed(self, frame: Frame, op: Operation) -> None:
        """Check the sizes of an operation's results. Raises Inconsistent."""
        for result in op.results:
            type_ = result.type
            content = frame.values.get(result)
            if not isinstance(type_, TensorType) or not isinstance(content, torch.Tensor):
                continue
            try:
                sizes = frame.dims(type_.shape)
            except InvalidIR:  # a symbol that is bound later
                continue
            if list(content.shape) != sizes:
                raise Inconsistent(
                    f"a value of type {type_} has the sizes {list(content.shape)}", op=op
                )


@attrs.frozen
class Outcome:
    """What one run gave: results and the arguments afterwards, or the error that it raised.

    poisoned: undefined memory was made, so that some elements may be undefined.
    """

    results: list[Any]
    arguments: list[Any]
    error: Exception | None = None
    poisoned: bool = False

    @property
    def refused(self) -> bool:
        """Whether the interpreter could not execute the program at all."""
        return isinstance(self.error, NoMeaning)


def run_watched(
    module: Operation, function: str, inputs: Inputs, mode: str, log: RandomLog, poison: int = 0
) -> Outcome:
    """Run the function on fresh copies of `inputs`; whatever it raises is part of the outcome."""
    arguments = inputs.fresh(mode)
    watch = Watch(log, poison)
    try:
        results = run(module, *arguments, mode=mode, function=function, state={"watch": watch})
    except Exception as error:
        return Outcome([], [], error, watch.poisoned)
    return Outcome(results, arguments, None, watch.poisoned)
