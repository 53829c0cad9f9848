"""Emits one native host function: the program of a compiled graph as a Python builtin.

    emitter = HostEmitter(module, "program", arguments=1)
    memory, kernels = HostMemory(emitter), KernelCalls(emitter)
    x = HostArguments(emitter).argument_tensor(0, TensorSpec(FLOAT32, (None, 8), (8, 1)))
    rows = memory.size(x, 0)
    emitter.begin()
    y = memory.empty((rows, 8), (8, 1), FLOAT32)
    kernels.call_kernel(kernel, [memory.data(x), memory.data(y)], extent=rows, grain=2048)
    emitter.finish([HostResults(emitter).result_tensor(y)])

The emitter knows the function that is built: its builder, values, objects and owned handles, how a
step fails, and how a call ends. Arguments, memory, kernels and results each stand in a file of
their own and hold it, and so do calls of operators (`aten`) and expressions of sizes (`dims`).

The module then exports `program` (one Python call argument per program argument) and
`program.boxed` (one list, which it empties). What belongs to a process and not to the code,
Python objects and the arena's slots, is reached through a context: an array of 64-bit words behind
the builtin's `self`. `object_slot(key)` reserves a word for an object that the loader supplies.

Until `begin`, nothing has happened that a caller could see, so a failed check hands the very same
arguments to the Python executor in the context's `CONTEXT_FALLBACK`, which raises the precise error
or runs the odd case slowly. After `begin`, every failure goes through one exit that deletes owned
handles, returns the arena, restores the thread's state and returns null with a Python error set.

Integers are i64, sizes and offsets in elements unless a name says bytes. Only a handle that was
made with `own` is deleted by the function; handles of arguments and constants are borrowed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from llvmlite import ir

from irc.codegen.host import support
from irc.codegen.host.base import (
    CDATA_POINTER,
    F64,
    I1,
    I8,
    I32,
    I64,
    PTR,
    RUNTIME_AUTOCAST_KEY,
    RUNTIME_AUTOGRAD_KEY,
    TENSOR_FIELD,
    VOID,
    Arena,
    HostTensor,
    LateInt,
    Size,
    TensorSpec,
    Value,
    as_value,
    constant,
    opaque,
    word,
)
from irc.codegen.host.entries import call_fallback, define_entries
from irc.codegen.host.module import HostModule
from irc.codegen.host.names import CONTEXT_OBJECTS
from irc.program import clocks

if TYPE_CHECKING:
    from irc.boundary.cuda import Gpu

__all__ = [
    "F64", "I1", "I8", "I32", "I64", "PTR", "VOID", "Arena", "HostEmitter", "HostTensor", "Size",
    "TensorSpec", "Value", "as_value", "constant",
]  # fmt: skip


class HostEmitter:
    """Builds one host function in `module`; see the module's text for the order of calls."""

    module: ir.Module
    name: str
    arguments: int

    def __init__(
        self, module: ir.Module, name: str, *, arguments: int, gpu: Gpu | None = None
    ) -> None:
        self.module, self.name, self.arguments = module, name, arguments
        #: How GPUs are reached, for a program of one.
        self.gpu = gpu
        self.slot_keys: list[Hashable] = []
        #: Functions from elsewhere and constant data, which this module's functions share.
        self.home = HostModule(module, name)
        self.declare, self.support = self.home.declare, self.home.support
        self.externals = self.home.externals
        self.constants, self.text = self.home.constants, self.home.text
        self._handles = 0
        self._slot_numbers: dict[Hashable, int] = {}
        #: What gives back what the call took, and what the function does last, however it ends.
        self._releases: list[Callable[[], None]] = []
        self._last_acts: list[Callable[[], None]] = []
        self._unlocks = False
        self.began = False
        function_type = ir.FunctionType(PTR, (PTR, PTR, PTR))
        self.function = ir.Function(module, function_type, f"{name}.body")
        self.function.linkage = "internal"
        self._self, self.items, self.owned = self.function.args
        self.allocas = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.builder = ir.IRBuilder(self.function.append_basic_block("start"))
        self.fallback = self.function.append_basic_block("fallback")
        self._failed = self.function.append_basic_block("failed")
        self._error = self.function.append_basic_block("error")
        self._cleanup = self.function.append_basic_block("cleanup")
        self._prepare()

    # Building blocks

    def _prepare(self) -> None:
        b = self.allocas
        at = b.gep(self._self, [constant(CDATA_POINTER)], source_etype=I8)
        self.context = b.load(at, typ=PTR)
        self.runtime = b.load(self.context, typ=PTR)
        self._handle_count = LateInt()
        self._handle_slots = opaque(b.alloca(PTR, size=self._handle_count, name="handles"))
        self._handle_bytes = LateInt()
        b.call(
            self.declare("memset", PTR, (PTR, I32, I64)),
            [self._handle_slots, ir.Constant(I32, 0), self._handle_bytes],
        )
        self._result = opaque(b.alloca(PTR, name="result"))
        b.store(PTR(None), self._result)
        self.thread_state = opaque(b.alloca(PTR, name="thread.state"))
        b.store(PTR(None), self.thread_state)
        self._guards: list[tuple[Value | None, Value]] = []
        #: What a failed step leaves on the way to the block that they share.
        self._failure_words = LateInt()
        self._failure_room = 1
        self._failure_payload = opaque(b.alloca(I64, size=self._failure_words, name="failure"))
        shared = ir.IRBuilder(self._failed)
        self._failure = (shared.phi(I64), shared.phi(PTR), shared.phi(I64))

    def alloca(self, type_: ir.Type, count: int | None = None) -> Value:
        """Stack memory that lives as long as the call (never inside a loop's growth)."""
        size = None if count is None else constant(count)
        return opaque(self.allocas.alloca(type_, size=size))

    def empty_slot(self) -> Value:
        """Stack memory for a pointer, null as the function begins."""
        room = self.alloca(PTR)
        self.allocas.store(PTR(None), room)
        return room

    def flag(self) -> Value:
        """Stack memory for an i32, 0 as the function begins."""
        room = self.alloca(I32)
        self.allocas.store(I32(0), room)
        return room

    @contextmanager
    def counted(self, count: int) -> Iterator[Value]:
        """Emit what is inside `count` (at least 1) times, with the number of the turn as an i64."""
        before, body = self.builder.block, self.function.append_basic_block("turn")
        self.builder.branch(body)
        self.builder.position_at_end(body)
        turn = self.builder.phi(I64)
        turn.add_incoming(constant(0), before)
        yield turn
        following = self.builder.add(turn, constant(1))
        turn.add_incoming(following, self.builder.block)
        after = self.function.append_basic_block("turned")
        more = self.builder.icmp_signed("<", following, constant(count))
        self.builder.cbranch(more, body, after)
        self.builder.position_at_end(after)

    def array(self, values: Sequence[Size]) -> Value:
        """A pointer to i64s: in the module when all are constant, else on the stack."""
        if all(isinstance(v, int) for v in values):
            return self.constants([v for v in values if isinstance(v, int)])
        room = self.alloca(I64, len(values))
        for i, value in enumerate(values):
            self.builder.store(as_value(value), self.word(room, i))
        return room

    def word(self, base: Value, index: int, builder: ir.IRBuilder | None = None) -> Value:
        """The address of the `index`-th 64-bit word from `base`."""
        return word(builder or self.builder, base, index)

    def object_slot(self, key: Hashable) -> int:
        """Reserve the context word for the Python object named `key`; equal keys share one.

        The loader stores there the address of the object that it makes for `key`, and keeps the
        object alive. `slot_keys[i]` is the key of word `CONTEXT_OBJECTS + i`.
        """
        number = self._slot_numbers.get(key)
        if number is None:
            number = self._slot_numbers[key] = len(self.slot_keys)
            self.slot_keys.append(key)
        return CONTEXT_OBJECTS + number

    def object(self, key: Hashable, builder: ir.IRBuilder | None = None) -> Value:
        """The Python object named `key`, borrowed."""
        b = builder or self.builder
        return b.load(self.word(self.context, self.object_slot(key), b), typ=PTR)

    def memory_of(self, key: Hashable, *, at_once: bool = False) -> Value:
        """The memory of the ctypes array named `key`; `at_once`: loaded as the function begins."""
        b = self.allocas if at_once else self.builder
        at = b.gep(self.object(key, b), [constant(CDATA_POINTER)], source_etype=I8)
        return b.load(at, typ=PTR)

    def at_release(self, act: Callable[[], None]) -> None:
        """Have `act` emit, as the function is finished, what gives back memory of the call."""
        self._releases.append(act)

    def at_exit(self, act: Callable[[], None]) -> None:
        """Have `act` emit what the function does last, also when it fails after `begin`."""
        self._last_acts.append(act)

    def runtime_object(self, index: int) -> Value:
        """A Python object that every program needs, borrowed (`RUNTIME_NONE` and others)."""
        return self.builder.load(self.word(self.runtime, index), typ=PTR)

    def item(self, index: int) -> Value:
        """Argument `index` as a Python object, borrowed."""
        at = self.builder.gep(self.items, [constant(index)], source_etype=PTR)
        return self.builder.load(at, typ=PTR)

    def handle_of(self, item: Value) -> Value:
        """Where the handle of a tensor lies that is a Python object."""
        return self.builder.gep(item, [constant(TENSOR_FIELD)], source_etype=I8)

    @contextmanager
    def _cold(self, condition: Value, name: str) -> Iterator[None]:
        """Emit into a block that runs only when `condition`; it must end the block itself."""
        taken = self.function.append_basic_block(name)
        after = self.function.append_basic_block("next")
        self.builder.cbranch(condition, taken, after)
        self.builder.position_at_end(taken)
        yield
        self.builder.position_at_end(after)

    @contextmanager
    def clocked(self, callee: str) -> Iterator[None]:
        """Add the nanoseconds that what is emitted inside takes to the clock of `callee`.

        An error that leaves the program leaves the clock as it was.
        """
        clock = self.home.word_of(clocks.SYMBOL_PREFIX + callee)
        start = self._now()
        yield
        self.builder.atomic_rmw("add", clock, self.builder.sub(self._now(), start), "monotonic")

    def _now(self) -> Value:
        """Nanoseconds of the monotonic clock."""
        b = self.builder
        room = self.alloca(I64, 2)
        read = self.declare("clock_gettime", I32, (I32, PTR))
        b.call(read, [I32(time.CLOCK_MONOTONIC), room])
        seconds = b.load(room, typ=I64)
        return b.add(b.mul(seconds, constant(10**9)), b.load(self.word(room, 1), typ=I64))

    def new_slots(self, count: int) -> int:
        """Reserve `count` consecutive owned handle slots, null at first; the index of the first.

        Whatever handle is stored in one is deleted at the exit, if not released before.
        """
        self._handles += count
        return self._handles - count

    def slot(self, index: int) -> Value:
        """The address of an owned handle slot."""
        return self.builder.gep(self._handle_slots, [constant(index)], source_etype=PTR)

    def own(self, rank: int, slot: int) -> HostTensor:
        """The tensor whose handle a call has just stored into the owned slot `slot`."""
        return HostTensor(self.builder.load(self.slot(slot), typ=PTR), rank, slot=slot)

    def release(self, tensor: HostTensor) -> None:
        """Delete an owned tensor's handle now instead of at the exit."""
        if tensor.slot is None:
            return
        one = [self.slot(tensor.slot), constant(1)]
        self.builder.call(self.support("irc_release_handles"), one)

    # Failure

    def call_python(self, key: Hashable, arguments: Sequence[Value]) -> Value:
        """Call the Python object `key` with i64, double, i1 values and tensors' handles (pointers).

        Returns the result object (a new reference) or null with a Python error set. i1 becomes
        bool; a pointer is a tensor handle.
        """
        payload = self.alloca(I64, max(1, len(arguments)))
        table = self._store_payload(payload, arguments)
        callee = self.support("irc_call_python")
        return self.builder.call(
            callee, [self.object(key), table, payload, constant(len(arguments))]
        )

    def _store_payload(self, payload: Value, arguments: Sequence[Value]) -> Value:
        """Write the arguments of a Python call; gives the table of their kinds."""
        for i, value in enumerate(arguments):
            stored = self.builder.zext(value, I64) if value.type == I1 else value
            self.builder.store(stored, self.word(payload, i))
        return self.constants([self._kind_of(value) for value in arguments], I8)

    @staticmethod
    def _kind_of(value: Value) -> int:
        if value.type == I1:
            return support.KIND_BOOL
        if value.type == F64:
            return support.KIND_FLOAT
        return support.KIND_TENSOR if isinstance(value.type, ir.PointerType) else support.KIND_INT

    def fail_if(self, condition: Value, key: Hashable, arguments: Sequence[Value]) -> None:
        """Leave the program when the i1 `condition` holds, with the error that `key` raises.

        The Python object `key` is called with `arguments` (as in `call_python`) and must raise.
        """
        with self._cold(condition, "failing"):
            table = self._store_payload(self._failure_payload, arguments)
            self._failure_room = max(self._failure_room, len(arguments))
            told = (constant(self.object_slot(key)), table, constant(len(arguments)))
            for phi, value in zip(self._failure, told, strict=True):
                phi.add_incoming(value, self.builder.block)
            self.builder.branch(self._failed)

    def _finish_failures(self) -> None:
        """The block in which all failed steps meet: it calls what raises."""
        self._failure_words.set(self._failure_room)
        b = ir.IRBuilder(self._failed)
        slot, table, count = self._failure
        if not slot.incomings:
            for phi in self._failure:
                self._failed.instructions.remove(phi)
            b.unreachable()
            return
        at = b.gep(self.context, [slot], source_etype=I64)
        arguments = [
            self.runtime, self.thread_state, b.load(at, typ=PTR), table,
            self._failure_payload, count,
        ]  # fmt: skip
        b.call(self.support("irc_fail"), arguments)
        b.branch(self._error)

    def fail_if_error(self, code: Value, key: Hashable, arguments: Sequence[Value]) -> None:
        """`fail_if` for the i32 return code of a C shim, 0 being success."""
        self.fail_if(self.builder.icmp_signed("!=", code, I32(0)), key, arguments)

    def error_if(self, condition: Value) -> None:
        """Leave the program when the i1 holds: a Python error is already set."""
        after = self.function.append_basic_block("made")
        self.builder.cbranch(condition, self._error, after)
        self.builder.position_at_end(after)

    def error_if_null(self, pointer: Value) -> None:
        """Leave the program when `pointer` is null: a Python error is already set."""
        self.error_if(self.builder.icmp_unsigned("==", pointer, PTR(None)))

    def unpack(self, result: Value, kinds: Sequence[int], out: Value) -> Value:
        """Store the items of the tuple `result` as words at `out`; i32, 0 for success."""
        arguments = [self.runtime, result, self.constants(kinds, I8), out, constant(len(kinds))]
        return self.builder.call(self.support("irc_unpack_results"), arguments)

    def unlock(self) -> None:
        """Let other Python threads run until `lock`: long kernels, and operators that may wait."""
        self._unlocks = True
        self.builder.call(self.support("irc_unlock"), [self.thread_state])

    def lock(self) -> None:
        """Take the interpreter lock again if `unlock` gave it away on the way here."""
        if self._unlocks:
            self.builder.call(self.support("irc_lock"), [self.thread_state])

    def asks_python(self) -> Value:
        """The word that a support function gives to `irc_lock` before it calls Python."""
        return self.thread_state

    def unlock_if(self, condition: Value) -> None:
        """`unlock` when the i1 `condition` holds and the lock is held."""
        with self.builder.if_then(condition):
            self.unlock()

    def drop_object(self, item: Value) -> None:
        """Give up a new reference to a Python object; the lock must be held."""
        self.builder.call(self.declare("Py_DecRef", VOID, (PTR,)), [item])

    # The way through

    def begin(self, *, below_autograd: bool = False, other_keys: Sequence[Value] = ()) -> None:
        """End of the argument checks. `below_autograd` when any ATen op is called.

        Turns grad mode off and excludes autograd and autocast (and the dispatch keys `other_keys`)
        on this thread until the exit.
        """
        self.began = True
        if not below_autograd:
            return
        b = self.builder
        is_enabled = self.declare("aoti_torch_grad_mode_is_enabled", I8, ())
        is_excluded = self.declare("irc_tls_is_excluded", I8, (I32,))
        self._guards = [(None, b.call(is_enabled, []))]
        own = (RUNTIME_AUTOGRAD_KEY, RUNTIME_AUTOCAST_KEY)
        keys = [b.load(self.word(self.runtime, word), typ=I64) for word in own]
        for wide in (*keys, *other_keys):
            key = b.trunc(wide, I32)
            self._guards.append((key, b.call(is_excluded, [key])))
        self._guards = [(key, self._spill(b.and_(was, I8(1)))) for key, was in self._guards]
        self._set_guards(lambda key, was: I32(0) if key is None else I32(1))

    def _spill(self, value: Value) -> Value:
        room = self.alloca(value.type)
        self.builder.store(value, room)
        return room

    def _set_guards(self, state_of: Callable[[Value | None, Value], Value]) -> None:
        set_enabled = self.declare("aoti_torch_grad_mode_set_enabled", VOID, (I32,))
        set_excluded = self.declare("irc_tls_set_excluded", VOID, (I32, I32))
        for key, was in self._guards:
            if key is None:
                self.builder.call(set_enabled, [state_of(key, was)])
            else:
                self.builder.call(set_excluded, [key, state_of(key, was)])

    def finish(self, results: Sequence[Callable[[], Value]]) -> None:
        """Return the results as a tuple and complete the function and its two entries."""
        self.lock()
        b = self.builder
        new_tuple = self.declare("PyTuple_New", PTR, (I64,))
        results_tuple = b.call(new_tuple, [constant(len(results))])
        b.store(results_tuple, self._result)
        self.error_if_null(results_tuple)
        set_item = self.declare("PyTuple_SetItem", I32, (PTR, I64, PTR))
        for i, make in enumerate(results):
            item = make()
            self.error_if_null(item)
            b.call(set_item, [results_tuple, constant(i), item])
        b.branch(self._cleanup)
        self._finish_failures()
        self._finish_exits()
        self.allocas.branch(self.function.blocks[1])
        self._handle_count.set(max(1, self._handles))
        self._handle_bytes.set(8 * self._handles)
        define_entries(self.home, self.function, self.arguments)

    def _finish_exits(self) -> None:
        b = self.builder
        b.position_at_end(self._error)
        partial = b.load(self._result, typ=PTR)
        with b.if_then(b.icmp_unsigned("!=", partial, PTR(None))):
            b.call(self.declare("Py_DecRef", VOID, (PTR,)), [partial])
            b.store(PTR(None), self._result)
        b.branch(self._cleanup)
        b.position_at_end(self._cleanup)
        if self._handles:
            every = [self._handle_slots, constant(self._handles)]
            b.call(self.support("irc_release_handles"), every)
        for release in self._releases:
            release()
        self._set_guards(lambda key, was: b.zext(b.load(was, typ=I8), I32))
        for act in self._last_acts:
            act()
        b.ret(b.load(self._result, typ=PTR))
        b.position_at_end(self.fallback)
        count = constant(self.arguments)
        b.ret(call_fallback(self.home, b, self.context, self.items, count))
