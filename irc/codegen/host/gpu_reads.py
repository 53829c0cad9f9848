"""Emits the numbers that a GPU's program copies to the CPU before it waits for them.

    reads = EarlyReads(emitter, table)
    reads.start(number, device, data, dtype, stream, read_now)
    reads.end(number)                       # the element, in memory of 8 bytes

Which these are says `irc.program.early`; `support_reads` has the native functions.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from irc.codegen.host.emitter import I32, I64, HostEmitter, Value, constant
from irc.program import host_program as P


def is_quiet(program: P.HostProgram, call: P.CallOperator) -> bool:
    """Whether an operator of ATen writes nothing that the caller holds, and draws no number."""
    import torch

    from irc.boundary.aten_paths import find_operator
    from irc.program.liveness import registers_in

    if not call.callee.startswith("aten."):
        return False
    op = find_operator(call.callee)
    if torch.Tag.nondeterministic_seeded in op.tags:
        return False
    if not op._schema.is_mutable:
        return True
    held = {program.root(a.register)[0] for a in program.arguments}
    written = {a.name for a in op._schema.arguments if a.alias_info and a.alias_info.is_write}
    outs = attrs.evolve(call, arguments=tuple(a for a in call.arguments if a[0] in written))
    return not any(program.root(r)[0] in held for r in registers_in(outs))


@attrs.define(eq=False)
class EarlyReads:
    """What a function knows of the numbers that it reads early: `rooms` by the step that waits."""

    emitter: HostEmitter
    table: Value
    rooms: dict[int, tuple[Value, Value, Value]] = attrs.field(factory=dict)

    def start(
        self, number: int, device: int, data: Value, bytes_: int, stream: Value,
        read_now: Callable[[Value], None],
    ) -> None:  # fmt: skip
        """Start the copy of the element at `data` that step `number` waits for; where that can't
        be, `read_now` emits what reads it at once into memory."""
        e, b = self.emitter, self.emitter.builder
        place = e.memory_of(("gpu-read", number, device), at_once=True)
        room, started = e.alloca(I64), e.flag()
        self.rooms[number] = place, room, started
        operands = [self.table, place, data, constant(bytes_), stream]
        code = b.call(e.support("irc_gpu_start_read"), operands)
        b.store(code, started)
        e.at_exit(lambda: self._give_back(number))
        with b.if_then(b.icmp_signed("==", code, I32(0)), likely=False):
            read_now(room)

    def _wait(self, number: int) -> Value:
        e, b = self.emitter, self.emitter.builder
        place, room, started = self.rooms[number]
        b.store(I32(0), started)
        return b.call(e.support("irc_gpu_end_read"), [self.table, place, room])

    def _give_back(self, number: int) -> None:
        """What a call that failed before it waited does."""
        b = self.emitter.builder
        started = b.load(self.rooms[number][2], typ=I32)
        with b.if_then(b.icmp_signed("!=", started, I32(0)), likely=False):
            self._wait(number)

    def end(self, number: int) -> Value:
        """Where the element is, after waiting for it."""
        e, b = self.emitter, self.emitter.builder
        _, room, started = self.rooms[number]
        e.unlock()
        with b.if_then(b.icmp_signed("!=", b.load(started, typ=I32), I32(0)), likely=True):
            code = self._wait(number)
            failed = ("gpu-error", "waiting for a number")
            e.fail_if_error(code, failed, [b.sext(code, I64)])
        return room


__all__ = ["EarlyReads", "is_quiet"]
