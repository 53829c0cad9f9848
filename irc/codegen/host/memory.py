"""Tensors and scratch memory in a native host program."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from llvmlite import ir

from irc.codegen.host.base import (
    I8,
    I32,
    I64,
    PTR,
    Arena,
    HostTensor,
    LateInt,
    Size,
    Value,
    as_value,
    constant,
    opaque,
)
from irc.codegen.host.emitter import HostEmitter
from irc.codegen.host.names import CONTEXT_ARENA, CONTEXT_LARGE_RESULTS
from irc.codegen.host.support_arena import POOLED_BYTES

#: Where `irc_check_tensor` puts what it has read of an argument.
_TABLE = {"data_ptr": 0, "sizes": 1, "strides": 2}


class HostMemory:
    """What a tensor says, new tensors, views, and the arenas of a call."""

    def __init__(self, emitter: HostEmitter) -> None:
        self.emitter, self.builder = emitter, emitter.builder
        self._arenas: list[tuple[Value, LateInt, Arena]] = []
        #: How many results a call makes that may be large, and the constant that says so.
        self._large_results = 0
        self._large_results_count = LateInt()
        emitter.at_release(self._give_back)

    def _give_back(self) -> None:
        """What the function does with the arenas as it ends; all that is counted is known then."""
        b = self.builder
        self._large_results_count.set(self._large_results)
        for room, views, arena in self._arenas:
            views.set(arena.views)
            block = b.load(room, typ=PTR)
            with b.if_then(b.icmp_unsigned("!=", block, PTR(None))):
                b.call(self.emitter.support("irc_arena_release"), [self._arena_slots(), block])

    def _read(self, tensor: HostTensor, what: str, type_: ir.Type) -> Value:
        """A borrowed field through the C shim `what`; the shim can't fail on a live tensor."""
        if tensor.table is not None and what in _TABLE:
            return self.builder.load(self.emitter.word(tensor.table, _TABLE[what]), typ=type_)
        out = self.emitter.alloca(type_)
        function = self.emitter.declare(f"aoti_torch_get_{what}", I32, (PTR, PTR))
        self.builder.call(function, [tensor.handle, out])
        return self.builder.load(out, typ=type_)

    def data(self, tensor: HostTensor) -> Value:
        """Address of the tensor's first element."""
        if tensor.data is None:
            tensor.data = self._read(tensor, "data_ptr", PTR)
        return tensor.data

    def size(self, tensor: HostTensor, dimension: int) -> Value:
        """Elements along `dimension`."""
        if tensor.sizes is None:
            tensor.sizes = self._read(tensor, "sizes", PTR)
        return self.builder.load(self.emitter.word(tensor.sizes, dimension), typ=I64)

    def stride(self, tensor: HostTensor, dimension: int) -> Value:
        """Elements between neighbours along `dimension`."""
        if tensor.strides is None:
            tensor.strides = self._read(tensor, "strides", PTR)
        return self.builder.load(self.emitter.word(tensor.strides, dimension), typ=I64)

    def constant_tensor(self, key: Hashable, rank: int) -> HostTensor:
        """A tensor object that the loader keeps (a weight, a buffer), borrowed and unchecked."""
        return HostTensor(self.emitter.handle_of(self.emitter.object(key)), rank)

    def storage_offset(self, tensor: HostTensor) -> Value:
        """Elements between the storage's begin and the tensor's first element."""
        return self._read(tensor, "storage_offset", I64)

    def empty(
        self,
        sizes: Sequence[Size],
        strides: Sequence[Size],
        dtype: int,
        failure: tuple[Hashable, Sequence[Value]] = (("shim-error", "empty_strided"), ()),
    ) -> HostTensor:
        """A new uninitialized tensor of the CPU with exactly these strides, owned.

        `failure`: what raises the error, and what it is called with.
        """
        slot = self.emitter.new_slots(1)
        function = self.emitter.declare(
            "aoti_torch_empty_strided", I32, (I64, PTR, PTR, I32, I32, I32, PTR)
        )
        failed = self.builder.call(
            function,
            [
                constant(len(sizes)),
                self.emitter.array(sizes),
                self.emitter.array(strides),
                I32(dtype),
                I32(0),
                I32(-1),
                self.emitter.slot(slot),
            ],
        )
        self.emitter.fail_if_error(failed, *failure)
        tensor = self.emitter.own(len(sizes), slot)
        return tensor

    def kept(
        self,
        sizes: Sequence[Size],
        strides: Sequence[Size],
        dtype: int,
        size_bytes: Size,
        brief: bool,
    ) -> HostTensor:
        """A new uninitialized tensor as `empty` makes it: one of many bytes has memory that is kept
        when it is gone (`irc.codegen.host.support_kept`). What is `brief`, gone when the call ends,
        may have far more than it needs; what a caller may hold a quarter more at most.

        Where the memory is fresh it is touched in huge pages, if the system allows it, but not in
        the program's first call: in a virtual machine whose host has not lent it all of its memory
        yet, a huge page that was never used takes milliseconds (4 ms for 2 MB in one with an EPYC),
        small pages that others gave back take none of that. Who calls once should not wait for what
        pays in many calls.
        """
        if isinstance(size_bytes, int) and size_bytes <= POOLED_BYTES:
            return self.empty(sizes, strides, dtype)
        self._large_results += 1
        word, b = self.emitter.word(self.emitter.context, CONTEXT_LARGE_RESULTS), self.builder
        count = b.load(word, typ=I64)
        # Threads may count at the same time: then a hint is missed, or given early.
        b.store(b.add(count, constant(1)), word)
        early = b.icmp_unsigned("<", count, self._large_results_count)
        asked = b.select(early, constant(0), as_value(size_bytes))
        most: Size = -1
        if not brief:
            size = as_value(size_bytes)
            most = b.add(size, b.lshr(size, constant(2)))
        slot = self.emitter.new_slots(1)
        failed = b.call(
            self.emitter.support("irc_new_result"),
            [
                constant(len(sizes)),
                self.emitter.array(sizes),
                self.emitter.array(strides),
                I32(dtype),
                as_value(size_bytes),
                asked,
                as_value(most),
                self.emitter.slot(slot),
            ],
        )
        self.emitter.fail_if_error(failed, ("shim-error", "empty_strided"), ())
        return self.emitter.own(len(sizes), slot)

    def view(
        self, base: HostTensor, sizes: Sequence[Size], strides: Sequence[Size], offset: Size
    ) -> HostTensor:
        """A handle that shares `base`'s storage, `offset` elements after its first element,
        invisible to autograd.

        For operands of calls inside the program; `result_view` makes what a caller sees.
        """
        slot = self.emitter.new_slots(1)
        function = self.emitter.declare(
            "aoti_torch__reinterpret_tensor", I32, (PTR, I64, PTR, PTR, I64, PTR)
        )
        failed = self.builder.call(
            function,
            [
                base.handle,
                constant(len(sizes)),
                self.emitter.array(sizes),
                self.emitter.array(strides),
                as_value(offset),
                self.emitter.slot(slot),
            ],
        )
        self.emitter.fail_if_error(failed, ("shim-error", "as_strided"), [])
        return self.emitter.own(len(sizes), slot)

    def arena(self, size_bytes: Size) -> Arena:
        """Scratch memory of at least `size_bytes` bytes, aligned to 64, for this call only."""
        room = opaque(self.emitter.allocas.alloca(PTR, name="arena"))
        self.emitter.allocas.store(PTR(None), room)
        views = LateInt()
        acquire = self.emitter.support("irc_arena_acquire")
        block = self.builder.call(acquire, [self._arena_slots(), as_value(size_bytes), views])
        self.builder.store(block, room)
        empty = self.builder.icmp_unsigned("==", block, PTR(None))
        self.emitter.fail_if(empty, ("no-memory",), [as_value(size_bytes)])
        arena = Arena(block)
        self._arenas.append((room, views, arena))
        return arena

    def _arena_slots(self) -> Value:
        return self.builder.load(self.emitter.word(self.emitter.context, CONTEXT_ARENA), typ=PTR)

    def arena_pointer(self, arena: Arena, offset_bytes: Size) -> Value:
        """Address in the arena."""
        return self.builder.gep(arena.block, [as_value(offset_bytes)], source_etype=I8)

    def arena_tensor(
        self,
        arena: Arena,
        offset_bytes: Size,
        sizes: Sequence[Size],
        strides: Sequence[Size],
        dtype: int,
    ) -> HostTensor:
        """A tensor handle over arena memory, for operands and results of ATen calls.

        With constant offset, sizes and strides the handle is made once per block and kept with
        it: only a graph's first call pays for it. It must not outlive the call in either case.
        """
        data = self.arena_pointer(arena, offset_bytes)
        if not all(isinstance(v, int) for v in (offset_bytes, *sizes, *strides)):
            slot = self.emitter.new_slots(1)
            self._from_blob(data, sizes, strides, dtype, self.emitter.slot(slot))
            tensor = self.emitter.own(len(sizes), slot)
        else:
            index = constant(arena.views)
            arena.views += 1
            spec = self.emitter.array([dtype, len(sizes), 1, *sizes, *strides])
            view = self.emitter.support("irc_arena_view")
            handle = self.builder.call(view, [arena.block, index, data, spec])
            missing = self.builder.icmp_unsigned("==", handle, PTR(None))
            self.emitter.fail_if(missing, ("shim-error", "from_blob"), [])
            tensor = HostTensor(handle, len(sizes))
        tensor.data = data
        return tensor

    def _from_blob(
        self, data: Value, sizes: Sequence[Size], strides: Sequence[Size], dtype: int, out: Value
    ) -> None:
        kinds = (PTR, I64, PTR, PTR, I64, I32, I32, I32, PTR, I32, PTR, I64)
        function = self.emitter.declare("aoti_torch_create_tensor_from_blob_v2", I32, kinds)
        failed = self.builder.call(
            function,
            [
                data,
                constant(len(sizes)),
                self.emitter.array(sizes),
                self.emitter.array(strides),
                constant(0),
                I32(dtype),
                I32(0),
                I32(-1),
                out,
                I32(0),
                PTR(None),
                constant(0),
            ],
        )
        self.emitter.fail_if_error(failed, ("shim-error", "from_blob"), [])

    def fit_result(
        self,
        callee: str,
        tensor: HostTensor,
        sizes: Sequence[Size],
        strides: Sequence[Size] | None,
        dtype: int,
    ) -> None:
        """Check an operator's owned result: fail for other sizes, mend other strides by a copy."""
        if tensor.slot is None:
            raise AssertionError("only an owned tensor can be replaced")
        rest = strides if strides is not None else ()
        spec = self.emitter.array([dtype, len(sizes), int(strides is not None), *sizes, *rest])
        fit = self.emitter.support("irc_fit_result")
        code = self.builder.call(fit, [self.emitter.slot(tensor.slot), spec])
        fixed = tuple(size if isinstance(size, int) else None for size in sizes)
        others = [size for size in sizes if not isinstance(size, int)]
        operands = [self.builder.zext(code, I64), tensor.handle, *others]
        self.emitter.fail_if_error(code, ("misfit", callee, fixed), operands)
        # What is in the slot now may be a copy: the handle that the call gave is gone then.
        tensor.handle = self.builder.load(self.emitter.slot(tensor.slot), typ=PTR)
        tensor.data = tensor.sizes = tensor.strides = None
