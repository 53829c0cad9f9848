"""What `bufferize` knows of memory: what is in it, who uses it, when, and what may keep it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any

from irc.dialects import graph, host, kernel
from irc.dialects.aten.facts import VIEW_AS
from irc.dialects.host.memory import Aliases, Keepers, is_tensor
from irc.ir.core import Block, Operation, Value
from irc.passes.host.written_operands import result_of


class MemoryUses:
    """The memory of a block's values, which operations use it, and until when.

    Memory is named by a root, as in `Aliases`. `forever` is a place behind the block: there
    memory is used that an argument gets at the end, or that a call may keep.
    """

    def __init__(self, block: Block) -> None:
        self.aliases, self.keepers = Aliases(), Keepers()
        self.ops = list(block.ops)
        self.order = {op: number for number, op in enumerate(self.ops)}
        self.forever = len(self.ops)
        self.last_use: dict[Value, int] = {}
        self.kept: set[Value] = set()
        self._uses: dict[Value, list[int]] = {}
        for op in self.ops:
            self.aliases.add(op)
        for number, op in enumerate(self.ops):
            for value in op.operands:
                for root in self.aliases.of(value):
                    self.last_use[root] = number
                    if is_tensor(value):
                        self._uses.setdefault(root, []).append(number)
        for op in self.ops:
            self._keep(op)

    def _keep(self, op: Operation) -> None:
        """What a call may keep is in use for ever: an operand that it writes, as it left it."""
        for number in self.keepers.operands(op):
            value = op.operands[number]
            if isinstance(op, graph.CallAten) and number in (op.written or ()):
                value = result_of(op, number)
            self.kept |= self.aliases.of(value)
            self.use_forever(value)

    def use_forever(self, value: Value) -> None:
        """Note that the memory of `value` is used behind the block."""
        for root in self.aliases.of(value):
            self.last_use[root] = self.forever

    def user_after(self, root: Value, number: int) -> Operation | None:
        """The first operation behind place `number` with an operand in the memory `root`."""
        places = self._uses.get(root, [])
        at = bisect_right(places, number)
        return self.ops[places[at]] if at < len(places) else None

    def move(self, result: Value, memory: Value) -> None:
        """`memory` now holds what `result` was: its life goes on, its views are views of it."""
        last = self.last_use.get(result, -1)
        self.last_use[memory] = max(self.last_use.get(memory, -1), last)
        self.aliases.rename(result, memory)


class LaunchReads:
    """What a launch reads, by memory, and in which input's memory it may compute a result."""

    def __init__(
        self, op: host.LaunchOp, callee: kernel.KernelFuncOp | None, aliases: Aliases
    ) -> None:
        self.inputs = list(op.inputs)
        self.readers: dict[Value, list[int]] = {}
        for number, value in enumerate(self.inputs):
            for root in aliases.of(value):
                self.readers.setdefault(root, []).append(number)
        self._inplace = self._sources(None if callee is None else callee.inplace)
        self._initialized = self._sources(None if callee is None else callee.initialized)

    def _sources(self, pairs: Sequence[int] | None) -> dict[int, list[int]]:
        sources: dict[int, list[int]] = {}
        for source, target in zip((pairs or ())[::2], (pairs or ())[1::2], strict=True):
            sources.setdefault(target - len(self.inputs), []).append(source)
        return sources

    def places_of(self, position: int) -> Iterable[int]:
        """The inputs in whose memory result number `position` may be computed."""
        return self._inplace.get(position, ())

    def reads_once(self, memory: Value) -> bool:
        """Whether one input, and no other, may be in `memory`."""
        return len(self.readers.get(memory, ())) == 1

    def combined_into(self, position: int) -> Value | None:
        """The array of which the launch makes result number `position` by changing some elements,
        if it may do so in place, another launch made it and it is one input only."""
        changed = set(self._initialized.get(position, ()))
        inputs = [self.inputs[source] for source in self.places_of(position) if source in changed]
        if len(inputs) != 1 or not self.reads_once(inputs[0]):
            return None
        return inputs[0] if isinstance(inputs[0].defining_op, host.LaunchOp) else None


def place_of(result: Any) -> int:
    """The number of a result among those of its operation."""
    return int(result.index)


def viewed(op: Operation | None) -> Value | None:
    """The value that the result of `op` is a view of, maybe as another dtype; None if of none."""
    if isinstance(op, host.CallAtenOp) and op.callee == VIEW_AS:
        return op.operands[0]
    return op.operands[0] if isinstance(op, host.HostViewOp) else None
