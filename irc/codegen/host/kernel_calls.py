"""Calls of generated kernels in a native host function, divided among torch's threads."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from llvmlite import ir

from irc.codegen.host.base import (
    I8,
    I32,
    I64,
    PTR,
    RUNTIME_FORKED,
    VOID,
    Size,
    Value,
    as_value,
    constant,
    opaque,
)
from irc.codegen.host.emitter import HostEmitter


class KernelCalls:
    """Calls kernels; knows how many threads torch has in this call, once it was asked."""

    def __init__(self, emitter: HostEmitter) -> None:
        self.emitter, self.builder = emitter, emitter.builder
        self._threads: Value | None = None

    def call_kernel(
        self,
        kernel: ir.Function,
        arguments: Sequence[Value],
        *,
        extent: Size | None = None,
        grain: Size = 1,
        on_status: Hashable | None = None,
        own: Mapping[int, tuple[Size, Size]] | None = None,
    ) -> None:
        """Call a generated kernel: `kernel(arguments..., begin, end)`, or without a range.

        With `extent`, [0, extent) is divided among torch's threads in pieces of at least `grain`
        (`irc.codegen.host.support_pieces`); one thread, or an extent of at most `grain`, is a plain
        call.
        own: of arguments that are the kernel's own memory the bytes of a part, and how many parts
        there are. Each thread uses one part, whatever points it takes, so that it stays in its
        core's caches; there are no more threads than parts.

        A kernel that returns i32 reports 0 for success; any other code of any piece fails with
        `on_status`, called with that code.
        """
        b = self.builder
        has_status = kernel.function_type.return_type != VOID
        if extent is None:
            status = b.call(kernel, list(arguments))
        else:
            known = (list(arguments), as_value(extent), as_value(grain), own or {})
            status = self._ranged_call(kernel, *known)
        if has_status:
            if on_status is None:
                raise AssertionError(f"{kernel.name} returns a status that nobody checks")
            bad = b.icmp_signed("!=", status, I32(0))
            self.emitter.fail_if(bad, on_status, [b.sext(status, I64)])

    def threads(self) -> Value:
        """torch's thread count at this call as an i64; 1 in a forked child."""
        if self._threads is None:
            e, b = self.emitter, self.emitter.allocas
            out = opaque(b.alloca(I32))
            b.call(e.declare("torch_get_num_threads", I32, (PTR,)), [out])
            count = b.zext(b.load(out, typ=I32), I64)
            forked = b.load(e.word(e.runtime, RUNTIME_FORKED, b), typ=I64)
            alone = b.icmp_signed("!=", forked, constant(0))
            self._threads = b.select(alone, constant(1), count)
        return self._threads

    def _ranged_call(
        self, kernel: ir.Function, arguments: list[Value], extent: Value, grain: Value,
        own: Mapping[int, tuple[Size, Size]],
    ) -> Value:  # fmt: skip
        b = self.builder
        status = None
        if kernel.function_type.return_type != VOID:
            status = self.emitter.alloca(I32)
            b.store(I32(0), status)
        private = {number: size for number, (size, _) in own.items()}
        many = b.icmp_signed(">", extent, grain)
        threads = self.threads()
        for count in (as_value(parts) for _, parts in own.values()):
            threads = b.select(b.icmp_signed("<", count, threads), count, threads)
        several = b.icmp_signed(">", threads, constant(1))
        with b.if_else(b.and_(many, several)) as (parallel, serial):
            with parallel:
                self._parallel_call(kernel, arguments, extent, grain, threads, private, status)
            with serial:
                code = b.call(kernel, [*arguments, constant(0), extent])
                if status is not None:
                    b.store(code, status)
        return code if status is None else b.load(status, typ=I32)

    def _parallel_call(
        self,
        kernel: ir.Function,
        arguments: list[Value],
        extent: Value,
        grain: Value,
        threads: Value,
        private: Mapping[int, Size],
        status: Value | None,
    ) -> None:
        b = self.builder
        members = arguments if status is None else [status, *arguments]
        members = [*members, *map(as_value, private.values())]
        # Named, so that not every access to an argument repeats the types of all.
        record = self.emitter.module.context.get_identified_type(f"{kernel.name}.arguments")
        if record.is_opaque:
            record.set_body(*(a.type for a in members))
        assert list(record.elements) == [a.type for a in members], kernel.name
        packed = self.emitter.alloca(record)
        for i, value in enumerate(members):
            at = b.gep(packed, [I32(0), I32(i)], source_etype=record)
            b.store(value, at)
        piece = self._trampoline(kernel, record, list(private))
        share = self.emitter.support("irc_share")
        b.call(share, [extent, grain, threads, piece, packed])

    def _trampoline(
        self, kernel: ir.Function, record: ir.IdentifiedStructType, private: Sequence[int]
    ) -> ir.Function:
        """The function that a thread runs: unpacks `record`, calls `kernel` on [begin, end). The
        kernel finds its own memory by `begin`, and is given an address from where that is the
        thread's part."""
        name = f"{kernel.name}.piece"
        known = self.emitter.module.globals.get(name)
        if known is not None:
            return known
        piece = ir.Function(self.emitter.module, ir.FunctionType(VOID, (I64, I64, PTR, I64)), name)
        piece.linkage = "internal"
        begin, end, packed, part = piece.args
        b = ir.IRBuilder(piece.append_basic_block("entry"))
        values = []
        for i, type_ in enumerate(record.elements):
            at = b.gep(packed, [I32(0), I32(i)], source_etype=record)
            values.append(b.load(at, typ=type_))
        values, sizes = values[: len(values) - len(private)], values[len(values) - len(private) :]
        has_status = kernel.function_type.return_type != VOID
        arguments = values[int(has_status) :]
        for number, size in zip(private, sizes, strict=True):
            moved = b.mul(b.sub(part, begin), size)
            arguments[number] = b.gep(arguments[number], [moved], source_etype=I8)
        code = b.call(kernel, [*arguments, begin, end])
        if has_status:
            with b.if_then(b.icmp_signed("!=", code, I32(0))):
                b.atomic_rmw("xchg", values[0], code, "monotonic")
        b.ret_void()
        return piece
