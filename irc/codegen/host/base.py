"""The lowest layer of the host emitter: values, constants, Python objects, failure, the lock.

`host_memory` adds tensors and scratch memory to it, `host_emitter` arguments, kernels and results.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

import attrs
from llvmlite import ir

from irc.codegen.host import support, support_gpu
from irc.codegen.host.names import CONTEXT_OBJECTS
from irc.program import clocks

if TYPE_CHECKING:
    from irc.boundary.cuda import Gpu

I1, I8, I32, I64 = ir.IntType(1), ir.IntType(8), ir.IntType(32), ir.IntType(64)
F64, PTR, VOID = ir.DoubleType(), ir.PointerType(), ir.VoidType()
_TYPES = {"i32": I32, "i64": I64, "ptr": PTR, "void": VOID}
_SUPPORT = {**support.SIGNATURES, **support_gpu.SIGNATURES}

#: Indices into `irc.boundary.torch_abi.runtime_table()`.
RUNTIME_NONE, RUNTIME_FORKED, RUNTIME_TRUE, RUNTIME_FALSE, RUNTIME_LIST = 2, 6, 7, 8, 9
RUNTIME_INT, RUNTIME_FLOAT, RUNTIME_AUTOGRAD_KEY, RUNTIME_AUTOCAST_KEY = 12, 13, 14, 15
TENSOR_FIELD, CDATA_POINTER, OBJECT_SIZE, OBJECT_TYPE = 16, 16, 16, 8

Value: TypeAlias = ir.Value
Size: TypeAlias = int | ir.Value


@attrs.frozen
class TensorSpec:
    """What an argument must be: dtype code, sizes and strides with None for "any, read it".

    `dtype` is torch's integer code (`torch_abi.dtype_code`); `strides` None accepts any.
    """

    dtype: int
    sizes: tuple[int | None, ...]
    strides: tuple[int | None, ...] | None = None

    def words(self) -> list[int]:
        """The table that `irc_check_tensor` reads."""
        strides = self.strides if self.strides is not None else (None,) * len(self.sizes)
        shape = [-1 if d is None else d for d in (*self.sizes, *strides)]
        return [self.dtype, len(self.sizes), int(self.strides is not None), *shape]


@attrs.define(eq=False)
class HostTensor:
    """A tensor in the program: its handle, and what has been read from it so far."""

    handle: Value
    rank: int
    data: Value | None = None
    sizes: Value | None = None
    strides: Value | None = None
    #: Memory with the three, for an argument.
    table: Value | None = None
    #: Index of the owned handle slot, None when borrowed.
    slot: int | None = None
    #: Index of the argument that it is, None when it isn't one.
    argument: int | None = None


@attrs.define(eq=False)
class Arena:
    """One block of scratch memory for the length of a call."""

    block: Value
    views: int = 0


class LateInt(ir.Constant):
    """An integer constant whose value is known when the function is finished."""

    def __init__(self) -> None:
        super().__init__(I64, 0)

    def set(self, value: int) -> None:
        """Fix the value: before the module is printed."""
        self.constant = value


def opaque(value: Value) -> Value:
    """llvmlite gives memory it makes a typed pointer; everything here uses opaque ones."""
    value.type = PTR
    return value


def constant(value: int) -> ir.Constant:
    """An i64 constant."""
    return ir.Constant(I64, value)


def as_value(value: Size) -> Value:
    """`value` as an i64: Python integers become constants."""
    return constant(value) if isinstance(value, int) else value


class HostBase:
    """Builds one host function in `module`."""

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
        #: Names of the functions that the loader must find.
        self.externals: set[str] = set()
        self._globals = 0
        self._handles = 0
        self._arenas: list[tuple[Value, LateInt, Arena]] = []
        #: How many results a call makes that may be large, and the constant that says so.
        self._large_results = 0
        self._large_results_count = LateInt()
        self._known_constants: dict[tuple[str, tuple[int | float, ...]], Value] = {}
        self._slot_numbers: dict[Hashable, int] = {}
        self._threads: Value | None = None
        #: What the function does last, however it ends.
        self._last_acts: list[Callable[[], None]] = []
        self._unlocks = False
        self._began = False
        function_type = ir.FunctionType(PTR, (PTR, PTR, PTR))
        self.function = ir.Function(module, function_type, f"{name}.body")
        self.function.linkage = "internal"
        self._self, self._items, self._owned = self.function.args
        self._allocas = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.builder = ir.IRBuilder(self.function.append_basic_block("start"))
        self._fallback = self.function.append_basic_block("fallback")
        self._failed = self.function.append_basic_block("failed")
        self._error = self.function.append_basic_block("error")
        self._cleanup = self.function.append_basic_block("cleanup")
        self._prepare()

    # Building blocks

    def _prepare(self) -> None:
        b = self._allocas
        at = b.gep(self._self, [constant(CDATA_POINTER)], source_etype=I8)
        self._context = b.load(at, typ=PTR)
        self._runtime = b.load(self._context, typ=PTR)
        self._handle_count = LateInt()
        self._handle_slots = opaque(b.alloca(PTR, size=self._handle_count, name="handles"))
        self._handle_bytes = LateInt()
        b.call(
            self.declare("memset", PTR, (PTR, I32, I64)),
            [self._handle_slots, ir.Constant(I32, 0), self._handle_bytes],
        )
        self._result = opaque(b.alloca(PTR, name="result"))
        b.store(PTR(None), self._result)
        self._thread_state = opaque(b.alloca(PTR, name="thread.state"))
        b.store(PTR(None), self._thread_state)
        self._guards: list[tuple[Value | None, Value]] = []
        #: What a failed step leaves on the way to the block that they share.
        self._failure_words = LateInt()
        self._failure_room = 1
        self._failure_payload = opaque(b.alloca(I64, size=self._failure_words, name="failure"))
        shared = ir.IRBuilder(self._failed)
        self._failure = (shared.phi(I64), shared.phi(PTR), shared.phi(I64))

    def declare(self, name: str, result: ir.Type, parameters: Sequence[ir.Type]) -> ir.Function:
        """The external function `name` in this module, declared once."""
        self.externals.add(name)
        known = self.module.globals.get(name)
        if known is not None:
            return known
        return ir.Function(self.module, ir.FunctionType(result, parameters), name)

    def _support(self, name: str) -> ir.Function:
        result, parameters = _SUPPORT[name]
        return self.declare(name, _TYPES[result], [_TYPES[p] for p in parameters])

    def alloca(self, type_: ir.Type, count: int | None = None) -> Value:
        """Stack memory that lives as long as the call (never inside a loop's growth)."""
        size = None if count is None else constant(count)
        return opaque(self._allocas.alloca(type_, size=size))

    def empty_slot(self) -> Value:
        """Stack memory for a pointer, null as the function begins."""
        room = self.alloca(PTR)
        self._allocas.store(PTR(None), room)
        return room

    def flag(self) -> Value:
        """Stack memory for an i32, 0 as the function begins."""
        room = self.alloca(I32)
        self._allocas.store(I32(0), room)
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

    def constants(self, values: Sequence[int | float], type_: ir.Type = I64) -> Value:
        """A pointer to a constant array in the module; equal ones are one."""
        known = self._known_constants.get((str(type_), tuple(values)))
        if known is not None:
            return known
        array = ir.ArrayType(type_, max(1, len(values)))
        words = list(values) or [0]
        data = ir.GlobalVariable(self.module, array, f"{self.name}.data.{self._globals}")
        self._globals += 1
        data.initializer = ir.Constant(array, [ir.Constant(type_, v) for v in words])
        data.linkage, data.global_constant = "internal", True
        self._known_constants[str(type_), tuple(values)] = opaque(data)
        return data

    def text(self, value: str) -> Value:
        """A pointer to `value` as a zero-ended UTF-8 string."""
        return self.constants([*value.encode(), 0], I8)

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
        return (builder or self.builder).gep(base, [constant(index)], source_etype=I64)

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
        return b.load(self.word(self._context, self.object_slot(key), b), typ=PTR)

    def memory_of(self, key: Hashable, *, at_once: bool = False) -> Value:
        """The memory of the ctypes array named `key`; `at_once`: loaded as the function begins."""
        b = self._allocas if at_once else self.builder
        at = b.gep(self.object(key, b), [constant(CDATA_POINTER)], source_etype=I8)
        return b.load(at, typ=PTR)

    def at_exit(self, act: Callable[[], None]) -> None:
        """Have `act` emit what the function does last, also when it fails after `begin`."""
        self._last_acts.append(act)

    def _runtime_object(self, index: int) -> Value:
        return self.builder.load(self.word(self._runtime, index), typ=PTR)

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
        name = clocks.SYMBOL_PREFIX + callee
        self.externals.add(name)
        clock = self.module.globals.get(name) or ir.GlobalVariable(self.module, I64, name)
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

    # Failure

    def call_python(self, key: Hashable, arguments: Sequence[Value]) -> Value:
        """Call the Python object `key` with i64, double, i1 values and tensors' handles (pointers).

        Returns the result object (a new reference) or null with a Python error set. i1 becomes
        bool; a pointer is a tensor handle.
        """
        payload = self.alloca(I64, max(1, len(arguments)))
        table = self._store_payload(payload, arguments)
        callee = self._support("irc_call_python")
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
        at = b.gep(self._context, [slot], source_etype=I64)
        arguments = [
            self._runtime, self._thread_state, b.load(at, typ=PTR), table,
            self._failure_payload, count,
        ]  # fmt: skip
        b.call(self._support("irc_fail"), arguments)
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
        arguments = [self._runtime, result, self.constants(kinds, I8), out, constant(len(kinds))]
        return self.builder.call(self._support("irc_unpack_results"), arguments)

    def unlock(self) -> None:
        """Let other Python threads run until `lock`: long kernels, and operators that may wait."""
        self._unlocks = True
        self.builder.call(self._support("irc_unlock"), [self._thread_state])

    def lock(self) -> None:
        """Take the interpreter lock again if `unlock` gave it away on the way here."""
        if self._unlocks:
            self.builder.call(self._support("irc_lock"), [self._thread_state])

    def asks_python(self) -> Value:
        """The word that a support function gives to `irc_lock` before it calls Python."""
        return self._thread_state

    def unlock_if(self, condition: Value) -> None:
        """`unlock` when the i1 `condition` holds and the lock is held."""
        with self.builder.if_then(condition):
            self.unlock()

    def drop_object(self, item: Value) -> None:
        """Give up a new reference to a Python object; the lock must be held."""
        self.builder.call(self.declare("Py_DecRef", VOID, (PTR,)), [item])
