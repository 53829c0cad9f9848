"""The memory of a host program over time: written before read, not overwritten while in use.

One walk over the program. What can't be told (which memory an operator without a schema writes)
is taken to be right; what is known to be wrong, or in the arena not known to be apart, is an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from irc.dialects import flow, sym
from irc.dialects.host import ops as host
from irc.dialects.host.launches import fail, kernel_of, operand_numbers
from irc.dialects.host.memory import Aliases, Keepers, Life, is_tensor, lifetimes
from irc.dialects.layout.places import begin_of
from irc.dialects.sym.ranges import RangeAttr, covers, when_of
from irc.ir.boxes import MemoryBox, box_in, overlap
from irc.ir.core import Operation, Value
from irc.ir.symbols import Dim, Range, provable_le

if TYPE_CHECKING:
    from irc.dialects import kernel



def verify_memory(function: host.HostFuncOp) -> None:
    """Check the uses of memory, and of symbols in launches. Raises InvalidIR."""
    walk = _MemoryWalk(function)
    for op in function.block.ops:
        walk.step(op)
    _verify_arena(function)


class _MemoryWalk:
    """What is known where the walk stands."""

    def __init__(self, function: host.HostFuncOp) -> None:
        self.aliases, self.keepers = Aliases(), Keepers()
        # Memory, but for the arguments', that a call may have kept.
        self.kept: dict[Value, Operation] = {}
        # Allocations that nothing has written for all sizes, and for which something did.
        self.empty: dict[Value, list[RangeAttr]] = {}
        # Memory that holds a copy of a value, for which sizes, as long as neither is written again.
        self.copied: dict[Value, tuple[Value, RangeAttr | None]] = {}
        # By memory: the targets of copies to or from it.
        self.targets: dict[Value, list[Value]] = {}
        self.kernels: dict[str, kernel.KernelFuncOp | None] = {}
        # What arguments bind is known before any step, wherever the binder stands.
        self.symbols = {
            op.symbol for argument in function.block.arguments for op in argument.users
            if isinstance(op, sym.Binder) and op.parent is function.block
        }  # fmt: skip

    def step(self, op: Operation) -> None:
        """Check one operation and take note of what it does."""
        self.aliases.add(op)
        if isinstance(op, host.AllocOp):
            type_: Any = op.memory.type
            if 0 not in type_.shape:
                self.empty[op.memory] = []
        elif isinstance(op, host.LaunchOp):
            self.launch(op)
        elif isinstance(op, host.HostCopyOp):
            self.read(op, op.source)
            self.write(op, op.target)
            self.copy(op)
        elif isinstance(op, host.CallAtenOp):
            self.call(op)
        elif isinstance(op, host.ItemOp):
            self.read(op, op.source)
        elif isinstance(op, flow.FlowOp):
            for number in flow.tensors_of(op.operands):
                self.read(op, op.operands[number])
        elif isinstance(op, host.HostReturnOp):
            self.give_back(op)
        elif isinstance(op, sym.Binder):
            self.symbols.add(op.symbol)
        self.keep(op)

    def keep(self, op: Operation) -> None:
        """Check that what a call may keep is a tensor of its own, and note it."""
        for number in self.keepers.operands(op):
            value = op.operands[number]
            for root in self.aliases.of(value):
                maker = root.defining_op
                if isinstance(maker, host.AllocOp) and not maker.escapes:
                    fail(op, f"may keep {value.described}, whose memory does not escape: its "
                         "host.alloc lacks the flag 'escapes'")
                if maker is not None:
                    self.kept[root] = op

    def read(self, op: Operation, value: Value) -> None:
        """Check that something has written what is read."""
        for root in self.aliases.of(value) if self.empty else ():
            written = self.empty.get(root)
            if written is None or covers(written, when_of(op)):
                continue
            sizes = f" for all of these sizes, but for {', '.join(map(str, written))}"
            fail(op, f"reads {value.described}, which nothing has written before"
                 + sizes * bool(written))  # fmt: skip

    def write(self, op: Operation, value: Value) -> None:
        """Check that memory may be written, and note that it was."""
        roots = self.aliases.of(value)
        for root in roots:
            if isinstance(root.defining_op, host.HostConstantOp):
                fail(op, f"writes {value.described}, which is a constant")
            if root in self.kept:
                fail(op, f"writes {value.described}, which {self.kept[root].name} may have kept")
        self._filled(roots, when_of(op))
        for root in roots:
            for target in self.targets.pop(root, ()):
                copy = self.copied.get(target)
                if copy is not None and root in self._memory_of(target, copy[0]):
                    del self.copied[target]

    def _filled(self, roots: frozenset[Value], when: RangeAttr | None) -> None:
        """Note that memory was written, for some sizes or for all."""
        for root in roots:
            written = self.empty.get(root)
            if written is None:
                continue
            if when is not None:
                written.append(when)
            if when is None or covers(written, None):
                del self.empty[root]

    def copy(self, op: host.HostCopyOp) -> None:
        """Note that one array has another's elements."""
        self.copied[op.target] = op.source, when_of(op)
        for root in self._memory_of(op.target, op.source):
            self.targets.setdefault(root, []).append(op.target)

    def _memory_of(self, target: Value, source: Value) -> frozenset[Value]:
        return self.aliases.of(target) | self.aliases.of(source)

    def launch(self, op: host.LaunchOp) -> None:
        """A launch: symbols, what is read, what is written, what is shared."""
        if op.results:
            fail(op, "gives arrays: in a host program a launch writes the memory of its outs")
        if op.callee not in self.kernels:
            self.kernels[op.callee] = kernel_of(op)
        callee = self.kernels[op.callee]
        for name in () if callee is None else callee.local_symbols():
            if name not in self.symbols:
                fail(op, f"@{op.callee} needs the symbol '{name}', which is not bound here")
        inputs, outs = op.inputs, op.outs
        for value in inputs:
            self.read(op, value)
        self._shared_outs(op, outs)
        if callee is not None:
            self._shared_inputs(op, callee, inputs, outs)
        for value in outs:
            self.write(op, value)

    def _shared_outs(self, op: host.LaunchOp, outs: Sequence[Value]) -> None:
        for values in self._by_root(outs).values():
            pair = first_sharing(values)
            if pair is not None:
                one, other = pair
                fail(op, f"writes {other.described} and {one.described}, which share memory")

    def _by_root(self, values: Sequence[Value]) -> dict[Value, list[Value]]:
        """The values that may be in the memory of each root, in order."""
        by_root: dict[Value, list[Value]] = {}
        for value in values:
            for root in self.aliases.of(value):
                by_root.setdefault(root, []).append(value)
        return by_root

    def _shared_inputs(
        self, op: host.LaunchOp, callee: kernel.KernelFuncOp, inputs: Sequence[Value],
        outs: Sequence[Value],
    ) -> None:  # fmt: skip
        """An input in the memory of an output: the same array, of a pair that the kernel allows;
        and the arrays that the kernel wants there are there."""
        allowed = _pairs(callee.inplace)
        readers: dict[Value, list[int]] = {}
        for position, source in enumerate(inputs):
            for root in self.aliases.of(source):
                readers.setdefault(root, []).append(position)
        for root, values in self._by_root(outs).items():
            read = dict.fromkeys(inputs[p] for p in readers.get(root, ()))
            if read and first_sharing([*values, *read]) is None:
                del readers[root]
        for number, target in enumerate(outs, len(inputs)):
            shared = {p for root in self.aliases.of(target) for p in readers.get(root, ())}
            for position in sorted(shared):
                source = inputs[position]
                if are_apart(source, target):
                    continue
                if source is not target or (position, number) not in allowed:
                    fail(op, f"reads {source.described} in memory that it writes, which "
                         f"@{op.callee} does not allow",
                         f"its pairs in place: {sorted(allowed)}, here ({position}, {number})")
        for position, number in sorted(_pairs(callee.initialized)):
            source, target = inputs[position], outs[number - len(inputs)]
            held = self.copied.get(target)
            same = held is not None and held[0] is source and held[1] in (None, when_of(op))
            if source is not target and not same:
                fail(op, f"@{op.callee} combines into output {number - len(inputs)}, which holds "
                     f"no copy of {source.described} here: a host.copy comes first")

    def call(self, op: host.CallAtenOp) -> None:
        """A call: what its operator says that it writes is written, the rest is read."""
        numbers = _written_operands(op)
        for number, value in enumerate(op.operands):
            if not is_tensor(value):
                continue
            if numbers is not None and number not in numbers:
                self.read(op, value)
        for number, value in enumerate(op.operands):
            if is_tensor(value) and (numbers is None or number in numbers):
                self.write(op, value)

    def give_back(self, op: host.HostReturnOp) -> None:
        """The results: written, and not in the arena."""
        for value in op.operands:
            if not is_tensor(value):
                continue
            self.read(op, value)
            for root in self.aliases.of(value):
                maker = root.defining_op
                if isinstance(maker, host.AllocOp) and not maker.escapes:
                    fail(op, f"returns {value.described}, whose memory does not escape: its "
                         "host.alloc lacks the flag 'escapes'")


def _pairs(flat: Sequence[int] | None) -> set[tuple[int, int]]:
    return set(zip((flat or ())[::2], (flat or ())[1::2], strict=True))


def first_sharing(values: Sequence[Value]) -> tuple[Value, Value] | None:
    """Two of some values in one memory that aren't known to have no element in common; None if
    there are none."""
    values = [value for value in values if 0 not in value.type.shape]  # type: ignore[attr-defined]
    if len(values) < 2:
        return None
    boxes: list[MemoryBox] = []
    (_, whole), *_ = places = [begin_of(value) for value in values]
    for value, (begin, root) in zip(values, places, strict=True):
        box = box_in(whole.type, value.type, begin) if root is whole else None  # type: ignore[arg-type]
        if box is None:
            return values[0], value if value is not values[0] else values[1]
        boxes.append(box)
    pair = overlap(boxes)
    return None if pair is None else (values[pair[0]], values[pair[1]])


def are_apart(one: Value, other: Value) -> bool:
    """Whether two views of one value are known to have no element in common."""
    return first_sharing((one, other)) is None


def _written_operands(op: host.CallAtenOp) -> set[int] | None:
    """The numbers of the operands that a call writes; None where its schema isn't known."""
    from irc.dialects import aten

    schema = aten.callee_schema(op)
    if schema is None:
        return None
    written: set[int] = set()
    for name, attr in op.arguments.items:
        argument = schema.argument(name)
        if argument is not None and argument.is_write:
            written.update(operand_numbers(attr))
    return written


# -- the arena


def _verify_arena(function: host.HostFuncOp) -> None:
    """Check that allocations in use at one time are known to lie apart."""
    placed = [life for life in lifetimes(function) if life.op.offset is not None]
    if not placed:
        return
    ranges = _ranges(function)
    rows: dict[Dim, list[Life]] = {}
    for life in placed:
        if life.op.offset is not None:
            rows.setdefault(life.op.offset, []).append(life)
    # What is in use, in the order of its places: what comes before one comes before all behind.
    alive: list[Life] = []
    ends: list[tuple[int, int]] = []
    for number, life in enumerate(placed):
        while ends and ends[0][0] < life.start:
            alive.remove(placed[heappop(ends)[1]])
        low, high = 0, len(alive)
        while low < high:
            middle = (low + high) // 2
            other = alive[middle]
            if _lies_before(other, life, rows, ranges):
                low = middle + 1
            elif _lies_before(life, other, rows, ranges):
                high = middle
            else:
                fail(life.op, f"{_place(life)} is not known to be apart from {_place(other)}, "
                     f"which {other.op.memory.described} takes up at the same time")
        alive.insert(low, life)
        heappush(ends, (life.end, number))


def _place(life: Life) -> str:
    return f"[{life.op.offset}, +{life.size}) of the arena"


def _lies_before(
    one: Life, other: Life, rows: Mapping[Dim, Sequence[Life]], ranges: Mapping[str, Range]
) -> bool:
    end, begin = one.op.offset + one.size, other.op.offset
    if isinstance(end, int) and isinstance(begin, int):
        return end <= begin
    return provable_le(end, begin, ranges) or _follows(one, begin, rows, ranges)


def _follows(
    life: Life, offset: Dim, rows: Mapping[Dim, Sequence[Life]], ranges: Mapping[str, Range]
) -> bool:
    """Whether `offset` is where a row of allocations ends that begins with (one at least as large
    as) `life`: no allocation has a negative size, even where that can't be proven. `rows`: the
    allocations by their offset."""
    assert life.op.offset is not None
    same = rows[life.op.offset]
    ends = {a.op.offset + a.size for a in same if provable_le(life.size, a.size, ranges)}
    seen: set[Dim] = set()
    while ends:
        end = ends.pop()
        if end == offset:
            return True
        if end not in seen:
            seen.add(end)
            ends.update(end + a.size for a in rows.get(end, ()))
    return False


def _ranges(function: host.HostFuncOp) -> dict[str, Range]:
    """What the binders say of the symbols."""
    ranges = {}
    for op in function.block.ops:
        if isinstance(op, sym.Binder):
            least = 0 if isinstance(op, sym.BindSizeOp) else None
            ranges[op.symbol] = Range(least if op.minimum is None else op.minimum, op.maximum)
    return ranges
